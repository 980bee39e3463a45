"""Cross entropy of next-token predictions."""

from typing import Any

import numpy as np
from mindspore import Tensor, ops

from msrt.ops.autograd import Array, Function, array, tensor
from msrt.ops.basic import linear
from msrt.ops.device import on_cpu
from msrt.ops.precision import Dtype, cast, round_in_place

_product = ops.MatMul()
_transposed_left = ops.MatMul(transpose_a=True)

CHUNK_ELEMENTS = 1 << 24
"""Logits held at once by `linear_cross_entropy`: 64 MiB of float32."""


def cross_entropy(logits: Tensor, labels: Tensor) -> Tensor:
    """-log softmax(logits)[label] for each row: (rows, vocab) and (rows,) int give (rows,)."""
    return -ops.gather_elements(ops.log_softmax(logits, -1), 1, labels.reshape((-1, 1))).reshape((-1,))


def linear_cross_entropy(
    x: Tensor, weight: Tensor, labels: Tensor, row_weights: Tensor, dtype: Dtype = "float32"
) -> Tensor:
    """Σ row_weight · cross entropy of the logits x · weightᵀ: a scalar.

    `x` (rows, hidden), `weight` (vocab, hidden), `labels` (rows,) int in [0, vocab), `row_weights` (rows,) without
    gradient. The logits are made in chunks of rows and never held whole; they are of type `dtype`, as `x` and `weight`
    should be, and what is computed from them is float32.
    """
    if on_cpu():
        return _LinearCrossEntropy.apply(x, weight, labels, row_weights, dtype)
    return (cross_entropy(cast(linear(x, weight), "float32"), labels) * row_weights).sum()


class _LinearCrossEntropy(Function):
    # The gradient is made with the loss, while a chunk's logits are at hand: keeping or making them again costs more.
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, labels: Tensor, row_weights: Tensor, dtype: Dtype) -> Tensor:
        rows, targets, shares = array(x), array(labels), array(row_weights)
        chunk = max(1, CHUNK_ELEMENTS // weight.shape[0])
        total = np.float32(0)
        grad_x: Array = np.empty_like(rows)
        grad_weight: Tensor | None = None
        for start in range(0, rows.shape[0], chunk):
            span = slice(start, start + chunk)
            part = tensor(rows[span])
            loss, grad_logits = _chunk(part, weight, targets[span], shares[span], dtype)
            total += loss
            grad_x[span] = array(_product(grad_logits, weight))
            share = _transposed_left(grad_logits, part)
            if grad_weight is None:
                grad_weight = share
            else:
                summed = array(grad_weight)  # of the first chunk, made here
                summed += array(share)
        ctx.save_for_backward(tensor(grad_x), grad_weight)
        return tensor(np.asarray(total, np.float32))

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, None, None, None]:
        grad_x, grad_weight = ctx.saved_tensors
        return grad_x * grad, grad_weight * grad, None, None, None


def _chunk(x: Tensor, weight: Tensor, labels: Array, row_weights: Array, dtype: Dtype) -> tuple[np.float32, Tensor]:
    """The weighted loss of some rows, and its gradient by their logits: (softmax - one_hot(label)) · row_weight."""
    picked = np.arange(labels.size)
    log_probs = _log_probabilities(x, weight, dtype)
    loss = -np.dot(array(log_probs)[picked, labels], row_weights)
    grad_logits = ops.exp(log_probs)
    values = array(grad_logits)
    values[picked, labels] -= 1.0
    values *= row_weights[:, None]
    round_in_place(values, dtype)
    return loss, grad_logits


def _log_probabilities(x: Tensor, weight: Tensor, dtype: Dtype) -> Tensor:
    # The logits end here: two arrays of their size exist at once, not three.
    logits = linear(x, weight)
    round_in_place(array(logits), dtype)
    return ops.log_softmax(logits, -1)
