"""Causal attention, and the cheap cutting and joining of heads around it."""

from typing import Any

import numpy as np
from mindspore import Tensor, ops
from numpy.typing import NDArray

from msrt.ops.autograd import Array, Function, array, tensor
from msrt.ops.device import on_cpu

_scores = ops.BatchMatMul(transpose_b=True)
_weighted = ops.BatchMatMul()
_transposed = ops.BatchMatMul(transpose_a=True)

HIDDEN = np.float32(-1e30)
"""Score of a key that a query must not see: its weight underflows to 0, and no difference of two is NaN."""


def causal_attention(query: Tensor, key: Tensor, value: Tensor, scale: float, hidden: Tensor | None = None) -> Tensor:
    """softmax(scale · query · keyᵀ) · value for each head, every position seeing itself and what stands before it.

    `query` and `key` are (batch, seq, heads, d), `value` is (batch, seq, heads, dv); the result has `value`'s shape.
    `hidden` (batch, 1, seq, seq) bool, True where a query (row) must not see a key, hides more than the future.
    """
    if on_cpu():
        return _CausalAttention.apply(query, key, value, scale, hidden)
    return causal_attention_composed(query, key, value, scale, hidden)


def causal_attention_composed(
    query: Tensor, key: Tensor, value: Tensor, scale: float, hidden: Tensor | None = None
) -> Tensor:
    """The same out of elementary operators."""
    q, k, v = (x.transpose((0, 2, 1, 3)) for x in (query, key, value))
    scores = _scores(q * scale, k) + tensor(_added_mask(query.shape[1], hidden))
    return _weighted(ops.softmax(scores, -1), v).transpose((0, 2, 1, 3))


def _added_mask(seq: int, hidden: Tensor | None) -> Array:
    """What is added to the scores: 0 or `HIDDEN`, (1 or batch, 1, seq, seq)."""
    unseen: NDArray[np.bool_] = np.triu(np.ones((1, 1, seq, seq), np.bool_), 1)
    if hidden is not None:
        unseen = unseen | array(hidden).astype(np.bool_)
    return np.where(unseen, HIDDEN, np.float32(0))


def _by_head(x: Tensor) -> Tensor:
    return tensor(array(x).transpose(0, 2, 1, 3))


def _by_position(x: Tensor) -> Tensor:
    return tensor(array(x).transpose(0, 2, 1, 3))


class _CausalAttention(Function):
    # Batched products and softmax stay in MindSpore (all threads); transposes and the mask are numpy's, in place on
    # fresh results.
    @staticmethod
    def forward(ctx: Any, query: Tensor, key: Tensor, value: Tensor, scale: float, hidden: Tensor | None) -> Tensor:
        q, k, v = _by_head(query), _by_head(key), _by_head(value)
        scores = _scores(q * scale, k)
        values = array(scores)
        values += _added_mask(query.shape[1], hidden)
        weights = ops.softmax(scores, -1)
        ctx.save_for_backward(q, k, v, weights)
        ctx.scale = scale
        return _by_position(_weighted(weights, v))

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, Tensor, None, None]:
        q, k, v, weights = ctx.saved_tensors
        upstream = _by_head(grad)
        grad_value = _transposed(weights, upstream)
        # Through the softmax: dS = P ∘ (dP - rowsum(P ∘ dP)).
        back = _scores(upstream, v)
        inner, shares = array(back), array(weights)
        inner -= np.einsum("bhqk,bhqk->bhq", inner, shares)[..., None]
        inner *= shares
        grad_query = _weighted(back, k) * ctx.scale
        grad_key = _transposed(back, q) * ctx.scale
        return _by_position(grad_query), _by_position(grad_key), _by_position(grad_value), None, None


def split_last(x: Tensor, sizes: tuple[int, ...]) -> tuple[Tensor, ...]:
    """`x` cut along its last axis into contiguous pieces of `sizes`."""
    pieces: tuple[Tensor, ...] = _SplitLast.apply(x, sizes) if on_cpu() else ops.split(x, list(sizes), axis=-1)
    return pieces


class _SplitLast(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, sizes: tuple[int, ...]) -> tuple[Tensor, ...]:
        return tuple(tensor(piece) for piece in np.split(array(x), np.cumsum(sizes)[:-1], axis=-1))

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        return tensor(np.concatenate([array(grad) for grad in grads], axis=-1)), None


def join_shared_key(own: Tensor, shared: Tensor) -> Tensor:
    """Keys whose last lanes are the same for all heads: (batch, seq, heads, n) and (batch, seq, 1, r) give n + r."""
    if on_cpu():
        return _JoinSharedKey.apply(own, shared)
    return ops.concat((own, ops.broadcast_to(shared, (*own.shape[:3], shared.shape[-1]))), -1)


class _JoinSharedKey(Function):
    @staticmethod
    def forward(ctx: Any, own: Tensor, shared: Tensor) -> Tensor:
        ctx.width = own.shape[-1]
        repeated = np.broadcast_to(array(shared), (*own.shape[:3], shared.shape[-1]))
        return tensor(np.concatenate([array(own), repeated], axis=-1))

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor]:
        upstream = array(grad)
        own, shared = upstream[..., : ctx.width], upstream[..., ctx.width :]
        return tensor(own), tensor(shared.sum(axis=2, keepdims=True))
