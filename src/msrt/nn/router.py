"""The router of a mixture of experts: scores, group-limited choice, weights (DeepSeek-V3, section 2.1.2)."""

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from mindspore import Tensor, nn
from numpy.typing import NDArray

from msrt.nn.linear import empty_parameter
from msrt.ops.autograd import Array, array, tensor
from msrt.ops.basic import gather_last, linear, sigmoid, softmax
from msrt.ops.precision import FLOAT32, cast
from msrt.ops.sqrtsoftplus import sqrt_softplus

ScoreFunction = Literal["sigmoid", "softmax", "sqrtsoftplus"]

EPSILON = 1e-20
"""Keeps the sum of scores that all underflowed from dividing by zero."""


@dataclass(frozen=True)
class RouterSpec:
    """How a token finds its experts. `n_group` 0: no groups."""

    num_experts: int
    num_experts_per_tok: int
    n_group: int
    topk_group: int
    score_function: ScoreFunction
    norm_topk_prob: bool
    routed_scaling_factor: float


class Routing(NamedTuple):
    """One router's answer for a batch of tokens: `logits` and `scores` (tokens, experts), `topk_indices` (tokens, k)
    int32 in ascending order, `topk_weights` (tokens, k)."""

    logits: Tensor
    scores: Tensor
    topk_indices: Tensor
    topk_weights: Tensor


class Router(nn.Cell):
    """Chooses by score plus bias, weighs by score alone; `weight` is (experts, hidden)."""

    precision = FLOAT32

    def __init__(self, spec: RouterSpec, hidden_size: int) -> None:
        super().__init__()
        self.spec = spec
        self.weight = empty_parameter(spec.num_experts, hidden_size)

    def construct(self, x: Tensor, expert_bias: Tensor | None) -> Routing:
        """Routing of `x` (tokens, hidden); `expert_bias` (experts,) steers the choice only."""
        spec = self.spec
        dtype = self.precision.router
        logits = cast(cast(linear(cast(x, dtype), cast(self.weight, dtype)), dtype), "float32")
        scores = score(logits, spec.score_function)
        choice = array(scores) if expert_bias is None else array(scores) + array(expert_bias)
        indices = tensor(choose_experts(choice, spec))
        weights = gather_last(scores, indices)
        if spec.norm_topk_prob:
            weights = weights / (weights.sum(-1, keepdims=True) + EPSILON)
        return Routing(logits, scores, indices, weights * spec.routed_scaling_factor)


def score(logits: Tensor, function: ScoreFunction) -> Tensor:
    """Scores of the experts from their logits, (tokens, experts)."""
    if function == "sigmoid":
        return sigmoid(logits)
    if function == "softmax":
        return softmax(logits)
    return sqrt_softplus(logits)


def choose_experts(choice: Array, spec: RouterSpec) -> NDArray[np.int32]:
    """The k best experts of each token by `choice` (tokens, experts), ascending: (tokens, k) int32.

    With groups, only experts of the `topk_group` groups count whose two best experts have the largest sum.
    """
    if spec.n_group > 1:
        choice = np.where(_allowed(choice, spec), choice, -np.inf)
    return np.sort(largest(choice, spec.num_experts_per_tok), axis=-1).astype(np.int32)


def _allowed(choice: Array, spec: RouterSpec) -> NDArray[np.bool_]:
    """Which experts stand in a token's best groups: (tokens, experts)."""
    size = spec.num_experts // spec.n_group
    groups = choice.reshape(-1, spec.n_group, size)
    best = largest(np.sort(groups, axis=-1)[..., -2:].sum(-1), spec.topk_group)
    chosen = np.zeros((choice.shape[0], spec.n_group), np.bool_)
    np.put_along_axis(chosen, best, True, axis=-1)
    return np.repeat(chosen, size, axis=-1)


def largest(values: Array, count: int) -> NDArray[np.intp]:
    """Indices of the `count` largest of each row; of equal values the first."""
    return np.argsort(-values, axis=-1, kind="stable")[:, :count]
