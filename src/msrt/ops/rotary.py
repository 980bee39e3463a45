"""Rotary positions on queries and keys."""

from typing import Any

import numpy as np
from mindspore import Tensor, ops

from msrt.ops.autograd import Array, Function, array, tensor
from msrt.ops.device import on_cpu


def rotate_interleaved(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """`x` with its last 2·n lanes rotated: lanes (2j, 2j+1) turn by angle j (Su et al., 2021, eq. 34).

    `x` is (batch, seq, heads, lanes), `cos` and `sin` are (batch, seq, n); leading lanes stay as they are. The rotated
    lanes come out de-interleaved: all first lanes of the pairs, then all second ones. Queries and keys are permuted
    alike, so that attention scores do not change.
    """
    return _Rotate.apply(x, cos, sin) if on_cpu() else rotate_interleaved_composed(x, cos, sin)


def rotate_interleaved_composed(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """The same out of elementary operators."""
    kept = x.shape[-1] - 2 * cos.shape[-1]
    first, second = x[..., kept::2], x[..., kept + 1 :: 2]
    cos, sin = cos.expand_dims(2), sin.expand_dims(2)
    return ops.concat((x[..., :kept], first * cos - second * sin, second * cos + first * sin), -1)


class _Rotate(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        ctx.save_for_backward(cos, sin)
        values, c, s = array(x), _per_head(cos), _per_head(sin)
        n = c.shape[-1]
        kept = values.shape[-1] - 2 * n
        first, second = values[..., kept::2], values[..., kept + 1 :: 2]
        turned = np.empty_like(values)
        turned[..., :kept] = values[..., :kept]
        turned[..., kept : kept + n] = first * c - second * s
        turned[..., kept + n :] = second * c + first * s
        return tensor(turned)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        cos, sin = ctx.saved_tensors
        upstream, c, s = array(grad), _per_head(cos), _per_head(sin)
        n = c.shape[-1]
        kept = upstream.shape[-1] - 2 * n
        first, second = upstream[..., kept : kept + n], upstream[..., kept + n :]
        back = np.empty_like(upstream)
        back[..., :kept] = upstream[..., :kept]
        back[..., kept::2] = first * c + second * s
        back[..., kept + 1 :: 2] = second * c - first * s
        return tensor(back), None, None


def _per_head(table: Tensor) -> Array:
    return array(table)[:, :, None, :]
