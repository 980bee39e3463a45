"""Root-mean-square normalisation."""

from typing import Any

import numpy as np
from mindspore import Tensor, ops

from msrt.ops.autograd import Array, Function, array, tensor
from msrt.ops.device import on_cpu


def rms_norm(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    """x / √(mean(x²) + eps) · weight over the last axis (Zhang and Sennrich, 2019, eq. 4); (..., n) and (n,)."""
    return _RmsNorm.apply(x, weight, eps) if on_cpu() else rms_norm_composed(x, weight, eps)


def rms_norm_composed(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    """The same out of elementary operators: for devices other than a CPU, where a broadcast costs nothing."""
    return x * ops.rsqrt((x * x).mean(-1, keep_dims=True) + eps) * weight


def _inverse_rms(rows: Array, eps: float) -> Array:
    squares = np.einsum("ij,ij->i", rows, rows)
    scale: Array = 1.0 / np.sqrt(squares / rows.shape[1] + np.float32(eps))
    return scale[:, None]


class _RmsNorm(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, eps: float) -> Tensor:
        ctx.save_for_backward(x, weight)
        ctx.eps = eps
        rows = array(x).reshape(-1, x.shape[-1])
        normed = rows * _inverse_rms(rows, eps)
        normed *= array(weight)
        return tensor(normed.reshape(x.shape))

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, None]:
        x, weight = ctx.saved_tensors
        rows, upstream = array(x).reshape(-1, x.shape[-1]), array(grad).reshape(-1, x.shape[-1])
        inverse = _inverse_rms(rows, ctx.eps)
        normed = rows * inverse
        grad_weight = np.einsum("ij,ij->j", upstream, normed)
        # d/dx of x·r with r = (mean(x²)+eps)^-1/2: r·(g - n·mean(g·n)), n = x·r.
        scaled = upstream * array(weight)
        along = np.einsum("ij,ij->i", scaled, normed)[:, None] / rows.shape[1]
        normed *= along
        scaled -= normed
        scaled *= inverse
        return tensor(scaled.reshape(x.shape)), tensor(grad_weight), None
