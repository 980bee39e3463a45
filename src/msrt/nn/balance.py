"""Load-balancing losses of a mixture of experts, as MindFormers' PyNative router has them."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from mindspore import Tensor
from numpy.typing import NDArray

from msrt.nn.router import EPSILON, Routing, ScoreFunction, largest
from msrt.ops.autograd import Array, array, tensor

BalanceKind = Literal["seq_aux_loss", "aux_loss", "global_aux_loss"]


@dataclass(frozen=True)
class BalanceSpec:
    """Which loss, and its weight in the total; a coefficient of 0 leaves it out."""

    kind: BalanceKind
    coefficient: float
    score_function: ScoreFunction
    num_experts_per_tok: int


@dataclass(frozen=True)
class Balance:
    """`loss`: a scalar without the coefficient, 1 when every expert is used alike. `counts` (experts,): how often each
    was among the best of the unbiased, ungrouped scores."""

    loss: Tensor
    counts: Array


def balance(routing: Routing, batch: int, spec: BalanceSpec, history: Array) -> Balance:
    """The balancing loss of one layer: experts · Σ_e fraction_e · mean probability_e (Switch Transformer, eq. 4).

    Fractions are of `seq_aux_loss` each sequence's (mean over the batch; DeepSeek-V3, eq. 17 to 20), of `aux_loss` the
    micro-batch's, of `global_aux_loss` those of this and the step's earlier micro-batches: `history` (experts,) is the
    sum of their counts. Fractions carry no gradient.
    """
    experts = routing.scores.shape[-1]
    probabilities = routing.scores
    if spec.score_function != "softmax":
        probabilities = probabilities / (probabilities.sum(-1, keepdims=True) + EPSILON)
    probabilities = probabilities.reshape((batch, -1, experts))
    counts = _counts(array(probabilities), spec.num_experts_per_tok)
    fractions = _fractions(counts, spec.kind, history)
    loss = (probabilities.mean(1) * tensor(fractions)).sum() * (experts / batch)
    return Balance(loss, counts.sum(0))


def _counts(probabilities: Array, k: int) -> Array:
    """How often each expert is among a token's best `k`, by sequence: (batch, experts)."""
    batch, seq, experts = probabilities.shape
    chosen = largest(probabilities.reshape(-1, experts), k) + np.repeat(np.arange(batch) * experts, seq)[:, None]
    counts: NDArray[np.int64] = np.bincount(chosen.reshape(-1), minlength=batch * experts)
    return counts.reshape(batch, experts).astype(np.float32)


def _fractions(counts: Array, kind: BalanceKind, history: Array) -> Array:
    """Each expert's share of the slots, (batch, experts)."""
    if kind == "seq_aux_loss":
        shares: Array = counts / counts.sum(-1, keepdims=True)
        return shares
    total = counts.sum(0) + (history if kind == "global_aux_loss" else 0)
    return np.broadcast_to(total / total.sum(), counts.shape)
