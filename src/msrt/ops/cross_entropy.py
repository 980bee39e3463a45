"""Cross entropy of next-token predictions."""

from typing import Any

import numpy as np
from mindspore import Tensor, ops

from msrt.ops.autograd import Array, Function, array, tensor
from msrt.ops.basic import linear
from msrt.ops.device import on_cpu

_product = ops.MatMul()
_transposed_left = ops.MatMul(transpose_a=True)

CHUNK_ELEMENTS = 1 << 24
"""Logits held at once by `linear_cross_entropy`: 64 MiB of float32."""


def cross_entropy(logits: Tensor, labels: Tensor) -> Tensor:
    """-log softmax(logits)[label] for each row: (rows, vocab) and (rows,) int give (rows,)."""
    return -ops.gather_elements(ops.log_softmax(logits, -1), 1, labels.reshape((-1, 1))).reshape((-1,))


def linear_cross_entropy(x: Tensor, weight: Tensor, labels: Tensor, row_weights: Tensor) -> Tensor:
    """Σ row_weight · cross entropy of the logits x · weightᵀ: a scalar.

    `x` (rows, hidden), `weight` (vocab, hidden), `labels` (rows,) int in [0, vocab), `row_weights` (rows,) without
    gradient. The logits are made in chunks of rows and never held whole.
    """
    if on_cpu():
        return _LinearCrossEntropy.apply(x, weight, labels, row_weights)
    return (cross_entropy(linear(x, weight), labels) * row_weights).sum()


class _LinearCrossEntropy(Function):
    # The gradient is made with the loss, while a chunk's logits are at hand: keeping or making them again costs more.
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, labels: Tensor, row_weights: Tensor) -> Tensor:
        rows, targets, shares = array(x), array(labels), array(row_weights)
        chunk = max(1, CHUNK_ELEMENTS // weight.shape[0])
        total = np.float32(0)
        grad_x: Array = np.empty_like(rows)
        grad_weight: Tensor | None = None
        for start in range(0, rows.shape[0], chunk):
            span = slice(start, start + chunk)
            part = tensor(rows[span])
            loss, grad_logits = _chunk(linear(part, weight), targets[span], shares[span])
            total += loss
            grad_x[span] = array(_product(grad_logits, weight))
            share = _transposed_left(grad_logits, part)
            grad_weight = share if grad_weight is None else grad_weight + share
        ctx.save_for_backward(tensor(grad_x), grad_weight)
        return tensor(np.asarray(total, np.float32))

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, None, None]:
        grad_x, grad_weight = ctx.saved_tensors
        return grad_x * grad, grad_weight * grad, None, None


def _chunk(logits: Tensor, labels: Array, row_weights: Array) -> tuple[np.float32, Tensor]:
    """The weighted loss of some rows, and its gradient by their logits: (softmax - one_hot(label)) · row_weight."""
    picked = np.arange(labels.size)
    log_probs = ops.log_softmax(logits, -1)
    loss = -np.dot(array(log_probs)[picked, labels], row_weights)
    grad_logits = ops.exp(log_probs)
    values = array(grad_logits)
    values[picked, labels] -= 1.0
    values *= row_weights[:, None]
    return loss, grad_logits
