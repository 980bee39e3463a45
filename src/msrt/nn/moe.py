"""A mixture-of-experts layer: router, routed experts, shared experts, load balance."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from mindspore import Tensor, nn

from msrt.nn.balance import BalanceSpec, balance
from msrt.nn.experts import Experts
from msrt.nn.linear import empty_parameter
from msrt.nn.mlp import MLP
from msrt.nn.router import Router, RouterSpec
from msrt.ops.autograd import Array, Ints, array, tensor
from msrt.ops.basic import zero
from msrt.ops.dispatch import assign, combine, permute
from msrt.ops.precision import FLOAT32, cast


@dataclass(frozen=True)
class MoESpec:
    """Shape and routing of one layer. `shared_intermediate_size` 0: no shared experts. `balance` None: no loss."""

    hidden_size: int
    intermediate_size: int
    shared_intermediate_size: int
    router: RouterSpec
    expert_bias: bool
    balance: BalanceSpec | None


class MoEStats(NamedTuple):
    """What a layer tells besides its output. All are tensors, so that recomputation can pass them through."""

    balance_loss: Tensor
    """Load-balancing loss without its coefficient, a scalar; 0 without one."""
    balance_counts: Tensor
    """(experts,) float32, what `global_aux_loss` remembers."""
    tokens_per_expert: Tensor
    """(experts,) int64, slots of the real choice."""
    logits: Tensor
    topk_indices: Tensor
    topk_weights: Tensor


class MoE(nn.Cell):
    """Σ over chosen experts of weight · expert(x), plus shared experts. No capacity: no token is dropped."""

    precision = FLOAT32

    def __init__(self, spec: MoESpec) -> None:
        super().__init__()
        self.spec = spec
        self.router = Router(spec.router, spec.hidden_size)
        self.experts = Experts(spec.router.num_experts, spec.hidden_size, spec.intermediate_size)
        self.expert_bias = empty_parameter(spec.router.num_experts, trainable=False) if spec.expert_bias else None
        self.shared_experts = None
        if spec.shared_intermediate_size:
            self.shared_experts = MLP(spec.hidden_size, spec.shared_intermediate_size)

    def construct(self, x: Tensor, history: Tensor) -> tuple[Tensor, MoEStats]:
        """(batch, seq, hidden) and the balance counts of earlier micro-batches (experts,): `x`'s shape, and stats."""
        batch, _, width = x.shape
        rows = x.reshape((-1, width))
        routing = self.router(rows, self.expert_bias)
        assignment = assign(routing.topk_indices, self.spec.router.num_experts)
        routed = self.experts(permute(rows, assignment), assignment.counts)
        dtype = self.precision.compute
        out = cast(combine(routed, routing.topk_weights, assignment), dtype)
        if self.shared_experts is not None:
            out = cast(out + self.shared_experts(rows), dtype)
        loss, counts = zero(), history
        if self.spec.balance is not None:
            balanced = balance(routing, batch, self.spec.balance, array(history))
            loss, counts = balanced.loss, tensor(balanced.counts)
        stats = MoEStats(
            loss, counts, tensor(assignment.counts), routing.logits, routing.topk_indices, routing.topk_weights
        )
        return out.reshape(x.shape), stats


def updated_bias(bias: Array, counts: Ints, rate: float) -> Array:
    """The expert bias after one step: + rate for experts below the mean load, - rate above (DeepSeek-V3, 2.1.2).

    `bias` and `counts` are (experts,); an expert at the mean keeps its bias.
    """
    moved: Array = bias + np.float32(rate) * np.sign(counts.mean() - counts).astype(np.float32)
    return moved
