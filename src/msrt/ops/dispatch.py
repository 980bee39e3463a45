"""Tokens to their experts and back: sorting by expert, grouped products, weighted sum.

The work is per expert, never per token, and no token is dropped.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from mindspore import Tensor, ops
from numpy.typing import NDArray

from msrt.ops.autograd import Array, Function, array, tensor

_product = ops.MatMul()
_transposed_left = ops.MatMul(transpose_a=True)
_transposed_right = ops.MatMul(transpose_b=True)


@dataclass(frozen=True)
class Assignment:
    """Which rows go to which expert. A slot is one (token, choice) pair; slots are sorted by expert, then token.

    `source` (slots,): the token of each sorted slot. `place` (tokens, k): the sorted slot of each choice.
    `counts` (experts,): slots of each expert.
    """

    source: NDArray[np.int64]
    place: NDArray[np.int64]
    counts: NDArray[np.int64]


def assign(indices: Tensor, num_experts: int) -> Assignment:
    """The assignment for the chosen experts `indices` (tokens, k) int."""
    chosen = array(indices)
    order = np.argsort(chosen.reshape(-1), kind="stable")
    place = np.empty_like(order)
    place[order] = np.arange(order.size)
    counts = np.bincount(chosen.reshape(-1), minlength=num_experts)
    return Assignment(order // chosen.shape[1], place.reshape(chosen.shape), counts)


def permute(x: Tensor, assignment: Assignment) -> Tensor:
    """Rows of `x` (tokens, n), once per choice, sorted by expert: (slots, n)."""
    return _Permute.apply(x, assignment)


class _Permute(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, assignment: Assignment) -> Tensor:
        ctx.place = assignment.place
        return tensor(array(x)[assignment.source])

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        upstream = array(grad)
        total = upstream[ctx.place[:, 0]]
        for choice in range(1, ctx.place.shape[1]):
            total += upstream[ctx.place[:, choice]]
        return tensor(total), None


def combine(y: Tensor, weights: Tensor, assignment: Assignment) -> Tensor:
    """Σ over a token's choices of weight · expert output: (slots, n) and (tokens, k) give (tokens, n)."""
    return _Combine.apply(y, weights, assignment)


class _Combine(Function):
    @staticmethod
    def forward(ctx: Any, y: Tensor, weights: Tensor, assignment: Assignment) -> Tensor:
        ctx.save_for_backward(y, weights)
        ctx.place = assignment.place
        outputs, shares = array(y), array(weights)
        total = np.zeros((shares.shape[0], outputs.shape[1]), outputs.dtype)
        for choice in range(shares.shape[1]):
            total += outputs[ctx.place[:, choice]] * shares[:, choice, None]
        return tensor(total)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, None]:
        y, weights = ctx.saved_tensors
        outputs, shares, upstream = array(y), array(weights), array(grad)
        grad_outputs, grad_weights = np.empty_like(outputs), np.empty_like(shares)
        for choice in range(shares.shape[1]):
            slots = ctx.place[:, choice]
            grad_outputs[slots] = upstream * shares[:, choice, None]
            grad_weights[:, choice] = np.einsum("ij,ij->i", upstream, outputs[slots])
        return tensor(grad_outputs), tensor(grad_weights), None


def grouped_matmul(x: Tensor, weight: Tensor, counts: NDArray[np.int64]) -> Tensor:
    """Each expert's rows times its own matrix: (slots, in) sorted by expert, (experts, in, out): (slots, out)."""
    return _GroupedMatmul.apply(x, weight, counts)


def _groups(counts: NDArray[np.int64]) -> list[tuple[int, slice]]:
    """(expert, its rows) of the experts that have any."""
    ends = np.cumsum(counts)
    return [(e, slice(int(ends[e] - n), int(ends[e]))) for e, n in enumerate(counts) if n]


class _GroupedMatmul(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, counts: NDArray[np.int64]) -> Tensor:
        ctx.save_for_backward(x, weight)
        ctx.groups = _groups(counts)
        rows, matrices = array(x), array(weight)
        out: Array = np.empty((rows.shape[0], matrices.shape[2]), rows.dtype)
        for expert, span in ctx.groups:
            out[span] = array(_product(tensor(rows[span]), tensor(matrices[expert])))
        return tensor(out)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, None]:
        x, weight = ctx.saved_tensors
        rows, matrices, upstream = array(x), array(weight), array(grad)
        grad_rows, grad_matrices = np.empty_like(rows), np.zeros_like(matrices)
        for expert, span in ctx.groups:
            part = tensor(upstream[span])
            grad_rows[span] = array(_transposed_right(part, tensor(matrices[expert])))
            grad_matrices[expert] = array(_transposed_left(tensor(rows[span]), part))
        return tensor(grad_rows), tensor(grad_matrices), None
