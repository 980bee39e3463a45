"""Operators that one MindSpore call answers on every device, under the names the model uses."""

import mindspore as ms
from mindspore import Tensor, mint, ops

_multiply_transposed = ops.MatMul(transpose_b=True)
_gather_rows = ops.Gather()


def linear(x: Tensor, weight: Tensor) -> Tensor:
    """x · weightᵀ: (..., in) and (out, in) give (..., out)."""
    rows = x.reshape((-1, x.shape[-1]))
    return _multiply_transposed(rows, weight).reshape((*x.shape[:-1], weight.shape[0]))


def embedding(ids: Tensor, weight: Tensor) -> Tensor:
    """Rows of `weight` (vocab, hidden) at `ids` (batch, seq) int: (batch, seq, hidden)."""
    return _gather_rows(weight, ids, 0)


def sigmoid(x: Tensor) -> Tensor:
    """1 / (1 + exp(-x)), any shape."""
    return mint.sigmoid(x)


def softmax(x: Tensor) -> Tensor:
    """exp(x) / Σ exp(x) over the last axis."""
    return ops.softmax(x, -1)


def silu(x: Tensor) -> Tensor:
    """x · sigmoid(x), any shape."""
    return mint.nn.functional.silu(x)


def gather_last(x: Tensor, indices: Tensor) -> Tensor:
    """Elements of the last axis: (rows, n) at (rows, k) int gives (rows, k)."""
    return ops.gather_elements(x, 1, indices)


def zero() -> Tensor:
    """The float32 scalar 0."""
    return Tensor(0.0, ms.float32)
