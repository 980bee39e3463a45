"""Rotary positions on queries and keys."""

from typing import Any, Literal

import numpy as np
from mindspore import Tensor, ops

from msrt.ops.autograd import Array, Function, array, tensor
from msrt.ops.device import on_cpu

PairLayout = Literal["interleaved", "halves"]
"""Which lanes turn together, of 2·n: lanes 2j and 2j + 1, or lanes j and n + j."""


def rotate(x: Tensor, cos: Tensor, sin: Tensor, layout: PairLayout) -> Tensor:
    """`x` with its last 2·n lanes rotated: pair j, by `layout`, turns by angle j (Su et al., 2021, eq. 34).

    `x` is (batch, seq, heads, lanes), `cos` and `sin` are (batch, seq, n); leading lanes stay as they are. The rotated
    lanes come out as halves: all first lanes of the pairs, then all second ones. Where pairs were interleaved, queries
    and keys are permuted alike, so that attention scores do not change.
    """
    return _Rotate.apply(x, cos, sin, layout) if on_cpu() else rotate_composed(x, cos, sin, layout)


def rotate_composed(x: Tensor, cos: Tensor, sin: Tensor, layout: PairLayout) -> Tensor:
    """The same out of elementary operators."""
    kept = x.shape[-1] - 2 * cos.shape[-1]
    firsts, seconds = _pairs(layout, kept, cos.shape[-1])
    first, second = x[..., firsts], x[..., seconds]
    cos, sin = cos.expand_dims(2), sin.expand_dims(2)
    return ops.concat((x[..., :kept], first * cos - second * sin, second * cos + first * sin), -1)


def _pairs(layout: PairLayout, kept: int, n: int) -> tuple[slice, slice]:
    """The first and the second lanes of all pairs."""
    if layout == "interleaved":
        return slice(kept, None, 2), slice(kept + 1, None, 2)
    return slice(kept, kept + n), slice(kept + n, None)


class _Rotate(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, cos: Tensor, sin: Tensor, layout: PairLayout) -> Tensor:
        ctx.save_for_backward(cos, sin)
        ctx.layout = layout
        values, c, s = array(x), _per_head(cos), _per_head(sin)
        n = c.shape[-1]
        kept = values.shape[-1] - 2 * n
        firsts, seconds = _pairs(layout, kept, n)
        first, second = values[..., firsts], values[..., seconds]
        turned = np.empty_like(values)
        turned[..., :kept] = values[..., :kept]
        turned[..., kept : kept + n] = first * c - second * s
        turned[..., kept + n :] = second * c + first * s
        return tensor(turned)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None, None]:
        cos, sin = ctx.saved_tensors
        upstream, c, s = array(grad), _per_head(cos), _per_head(sin)
        n = c.shape[-1]
        kept = upstream.shape[-1] - 2 * n
        firsts, seconds = _pairs(ctx.layout, kept, n)
        first, second = upstream[..., kept : kept + n], upstream[..., kept + n :]
        back = np.empty_like(upstream)
        back[..., :kept] = upstream[..., :kept]
        back[..., firsts] = first * c + second * s
        back[..., seconds] = second * c - first * s
        return tensor(back), None, None, None


def _per_head(table: Tensor) -> Array:
    return array(table)[:, :, None, :]
