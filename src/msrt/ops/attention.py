"""Causal attention, and the cheap cutting and joining of heads around it."""

from typing import Any

import numpy as np
from mindspore import Tensor, ops
from numpy.typing import NDArray

from msrt.ops.autograd import Array, Function, array, tensor
from msrt.ops.device import on_cpu
from msrt.ops.precision import FLOAT32, Precision, cast, round_in_place

_scores = ops.BatchMatMul(transpose_b=True)
_weighted = ops.BatchMatMul()
_transposed = ops.BatchMatMul(transpose_a=True)

HIDDEN = np.float32(-1e30)
"""Score of a key that a query must not see: its weight underflows to 0, and no difference of two is NaN."""


def causal_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    scale: float,
    hidden: Tensor | None = None,
    precision: Precision = FLOAT32,
) -> Tensor:
    """softmax(scale · query · keyᵀ) · value for each head, every position seeing itself and what stands before it.

    There may be more keys than queries: then the queries are those of the last positions.

    `query` is (batch, seq, heads, d), `key` (batch, seq, groups, d), `value` (batch, seq, groups, dv), where groups
    divides heads and heads / groups heads in a row share a key and a value; the result is (batch, seq, heads, dv).
    `hidden` (batch, 1, seq, seq) bool, True where a query (row) must not see a key, hides more than the future.
    Scores and weights have the type of `precision`'s computations, the softmax between them its own.
    """
    if on_cpu():
        return cast(_CausalAttention.apply(query, key, value, scale, hidden, precision), precision.compute)
    return causal_attention_composed(query, key, value, scale, hidden, precision)


def causal_attention_composed(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    scale: float,
    hidden: Tensor | None = None,
    precision: Precision = FLOAT32,
) -> Tensor:
    """The same out of elementary operators."""
    batch, seq, heads, width = query.shape
    q, k, v = (x.transpose((0, 2, 1, 3)) for x in (query * scale, key, value))
    scores = _scores(q.reshape((batch, key.shape[2], -1, width)), k)
    wide = cast(scores, precision.softmax)
    masked = wide.reshape((batch, heads, seq, -1)) + tensor(_added_mask(seq, key.shape[1], hidden)).astype(wide.dtype)
    weights = ops.softmax(masked, -1).reshape(scores.shape)
    return _weighted(cast(weights, precision.compute), v).reshape((batch, heads, seq, -1)).transpose((0, 2, 1, 3))


def _added_mask(queries: int, keys: int, hidden: Tensor | None) -> Array:
    """What is added to the scores: 0 or `HIDDEN`, (1 or batch, 1, queries, keys)."""
    unseen: NDArray[np.bool_] = np.triu(np.ones((1, 1, queries, keys), np.bool_), keys - queries + 1)
    if hidden is not None:
        unseen = unseen | array(hidden).astype(np.bool_)
    return np.where(unseen, HIDDEN, np.float32(0))


def _by_group(x: Tensor, groups: int) -> Tensor:
    """(batch, seq, heads, d), the heads of a group one below the other: (batch, groups, heads / groups · seq, d)."""
    values = array(x)
    batch, seq, heads, width = values.shape
    return tensor(values.transpose(0, 2, 1, 3).reshape(batch, groups, heads // groups * seq, width))


def _by_position(x: Tensor, seq: int) -> Tensor:
    """The inverse of `_by_group`."""
    values = array(x)
    batch, groups, rows, width = values.shape
    return tensor(values.reshape(batch, groups * (rows // seq), seq, width).transpose(0, 2, 1, 3))


class _CausalAttention(Function):
    # Batched products and softmax stay in MindSpore (all threads); transposes and the mask are numpy's, in place on
    # fresh results. The queries of a group are one matrix, so that keys and values are never repeated, and the
    # products of the backward pass sum over the heads of a group by themselves. In 16 bits the rounded weights serve
    # the softmax's gradient, too: keeping those before the rounding would double what is kept.
    @staticmethod
    def forward(
        ctx: Any,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        scale: float,
        hidden: Tensor | None,
        precision: Precision,
    ) -> Tensor:
        batch, seq, heads, _ = query.shape
        groups = key.shape[2]
        q, k, v = (_by_group(x, groups) for x in (query, key, value))
        scores = _scores(q * scale, k)
        round_in_place(array(scores), precision.compute)
        by_head = array(scores).reshape(batch, heads, seq, -1)
        by_head += _added_mask(seq, key.shape[1], hidden)
        weights = ops.softmax(scores, -1)
        for dtype in (precision.softmax, precision.compute):
            round_in_place(array(weights), dtype)
        ctx.save_for_backward(q, k, v, weights)
        ctx.scale, ctx.compute = scale, precision.compute
        return _by_position(_weighted(weights, v), seq)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, Tensor, None, None, None]:
        q, k, v, weights = ctx.saved_tensors
        upstream = _by_group(grad, k.shape[1])
        grad_value = _transposed(weights, upstream)
        # Through the softmax: dS = P ∘ (dP - rowsum(P ∘ dP)).
        back = _scores(upstream, v)
        inner, shares = array(back), array(weights)
        round_in_place(inner, ctx.compute)
        inner -= np.einsum("bhqk,bhqk->bhq", inner, shares)[..., None]
        inner *= shares
        round_in_place(inner, ctx.compute)
        grad_query = _weighted(back, k) * ctx.scale
        grad_key = _transposed(back, q) * ctx.scale
        keys = k.shape[2]
        return (
            _by_position(grad_query, grad.shape[1]), _by_position(grad_key, keys), _by_position(grad_value, keys),
            None, None, None,
        )  # fmt: skip


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


def join_last(left: Tensor, right: Tensor) -> Tensor:
    """Both side by side along the last axis: (..., n) and (..., m) give (..., n + m)."""
    return _JoinLast.apply(left, right) if on_cpu() else ops.concat((left, right), -1)


class _JoinLast(Function):
    @staticmethod
    def forward(ctx: Any, left: Tensor, right: Tensor) -> Tensor:
        ctx.width = left.shape[-1]
        return tensor(np.concatenate([array(left), array(right)], axis=-1))

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor]:
        upstream = array(grad)
        return tensor(upstream[..., : ctx.width]), tensor(upstream[..., ctx.width :])


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
