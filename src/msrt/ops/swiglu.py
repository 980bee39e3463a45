"""The gated activation of the MLPs: SwiGLU (Shazeer, 2020)."""

from typing import Any, Literal

import numpy as np
from mindspore import Tensor, ops

from msrt.ops.autograd import Function, array, tensor
from msrt.ops.basic import silu
from msrt.ops.device import on_cpu

GateLayout = Literal["interleaved", "halves"]
"""Order of the lanes of the first product: gate0, up0, gate1, up1, … or all gates, then all ups."""


def swiglu(x: Tensor, layout: GateLayout) -> Tensor:
    """silu(gate) · up: (..., 2·n) in `layout` gives (..., n)."""
    return _SwiGlu.apply(x, layout) if on_cpu() else swiglu_composed(x, layout)


def swiglu_composed(x: Tensor, layout: GateLayout) -> Tensor:
    """The same out of elementary operators."""
    gates, ups = _lanes(layout, x.shape[-1])
    return silu(x[..., gates]) * x[..., ups]


def _lanes(layout: GateLayout, width: int) -> tuple[slice, slice]:
    if layout == "interleaved":
        return slice(0, None, 2), slice(1, None, 2)
    return slice(0, width // 2), slice(width // 2, None)


class _SwiGlu(Function):
    # The lanes are copied apart by numpy (MindSpore's slice copy is ten times slower); the arithmetic stays in
    # MindSpore, whose exp runs on all threads.
    @staticmethod
    def forward(ctx: Any, x: Tensor, layout: GateLayout) -> Tensor:
        ctx.save_for_backward(x)
        ctx.layout = layout
        gates, ups = _lanes(layout, x.shape[-1])
        values = array(x)
        return silu(tensor(values[..., gates])) * tensor(values[..., ups])

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        (x,) = ctx.saved_tensors
        gates, ups = _lanes(ctx.layout, x.shape[-1])
        values = array(x)
        gate, up = tensor(values[..., gates]), tensor(values[..., ups])
        share = ops.sigmoid(gate)
        activated = gate * share
        back = np.empty_like(values)
        back[..., ups] = array(grad * activated)
        # silu'(g) = σ(g) + silu(g)·(1 - σ(g))
        back[..., gates] = array(grad * up * (share + activated - activated * share))
        return tensor(back), None
