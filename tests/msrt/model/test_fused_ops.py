"""Every operator with a hand-written gradient against the same formula out of elementary operators."""

from collections.abc import Callable

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor, ops

from msrt.ops.attention import causal_attention, causal_attention_composed, join_shared_key, split_last
from msrt.ops.autograd import tensor
from msrt.ops.basic import linear
from msrt.ops.cross_entropy import cross_entropy, linear_cross_entropy
from msrt.ops.dispatch import assign, combine, grouped_matmul, permute
from msrt.ops.norm import rms_norm, rms_norm_composed
from msrt.ops.rotary import PairLayout, rotate, rotate_composed
from msrt.ops.sqrtsoftplus import sqrt_softplus
from msrt.ops.swiglu import swiglu, swiglu_composed

from . import tiny_model  # noqa: F401  (sets PyNative mode)


def random(*shape: int, seed: int = 0) -> Tensor:
    return tensor(np.random.default_rng(seed + sum(shape)).standard_normal(shape).astype(np.float32))


def assert_same(fused: Callable[..., Tensor], composed: Callable[..., Tensor], *inputs: Tensor) -> None:
    """Equal values, and equal gradients of a random weighting of the result by every input."""
    weights = random(*fused(*inputs).shape, seed=9)
    positions = tuple(range(len(inputs)))
    left, left_grads = ms.value_and_grad(lambda *x: (fused(*x) * weights).sum(), positions)(*inputs)
    right, right_grads = ms.value_and_grad(lambda *x: (composed(*x) * weights).sum(), positions)(*inputs)
    np.testing.assert_allclose(fused(*inputs).asnumpy(), composed(*inputs).asnumpy(), atol=2e-5)
    assert float(left) == pytest.approx(float(right), abs=1e-3)
    for one, other in zip(left_grads, right_grads, strict=True):
        np.testing.assert_allclose(one.asnumpy(), other.asnumpy(), atol=2e-5)


def test_rms_norm() -> None:
    assert_same(lambda x, w: rms_norm(x, w, 0.1), lambda x, w: rms_norm_composed(x, w, 0.1), random(2, 3, 8), random(8))


@pytest.mark.parametrize("layout", ["interleaved", "halves"])
def test_swiglu(layout: str) -> None:
    assert_same(lambda x: swiglu(x, layout), lambda x: swiglu_composed(x, layout), random(2, 3, 8))  # type: ignore[arg-type]  # a parametrized text


@pytest.mark.parametrize("layout", ["interleaved", "halves"])
def test_rotation(layout: PairLayout) -> None:
    angles = np.random.default_rng(0).standard_normal((2, 3, 2)).astype(np.float32)
    cos, sin = tensor(1.3 * np.cos(angles)), tensor(1.3 * np.sin(angles))
    assert_same(
        lambda x: rotate(x, cos, sin, layout), lambda x: rotate_composed(x, cos, sin, layout), random(2, 3, 4, 7)
    )


def test_pairs_of_lanes_by_hand() -> None:
    x = tensor(np.array([5, 1, 2, 3, 4], np.float32).reshape(1, 1, 1, 5))
    quarter = tensor(np.zeros((1, 1, 2), np.float32)), tensor(np.ones((1, 1, 2), np.float32))
    assert rotate(x, *quarter, "interleaved").asnumpy().ravel().tolist() == [5, -2, -4, 1, 3]
    assert rotate(x, *quarter, "halves").asnumpy().ravel().tolist() == [5, -3, -4, 1, 2]


@pytest.mark.parametrize("masked", [False, True])
def test_attention(masked: bool) -> None:
    hidden = None
    if masked:
        drawn = np.random.default_rng(4).random((2, 1, 5, 5)) < 0.4
        hidden = tensor(drawn & ~np.eye(5, dtype=np.bool_))
    assert_same(
        lambda q, k, v: causal_attention(q, k, v, 0.7, hidden),
        lambda q, k, v: causal_attention_composed(q, k, v, 0.7, hidden),
        random(2, 5, 3, 4), random(2, 5, 3, 4, seed=1), random(2, 5, 3, 6),
    )  # fmt: skip


@pytest.mark.parametrize("groups", [1, 2, 4])
def test_grouped_attention_is_attention_with_repeated_keys(groups: int) -> None:
    def repeated(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        keys, values = (ops.repeat_interleave(x, 4 // groups, 2) for x in (k, v))
        return causal_attention_composed(q, keys, values, 0.7)

    inputs = random(2, 5, 4, 3), random(2, 5, groups, 3, seed=1), random(2, 5, groups, 6)
    assert_same(lambda q, k, v: causal_attention(q, k, v, 0.7), repeated, *inputs)
    assert_same(lambda q, k, v: causal_attention_composed(q, k, v, 0.7), repeated, *inputs)


def test_attention_does_not_see_the_future() -> None:
    q, k, v = random(1, 5, 2, 4), random(1, 5, 2, 4, seed=1), random(1, 5, 2, 3)
    whole = causal_attention(q, k, v, 0.7).asnumpy()
    start = causal_attention(q[:, :3], k[:, :3], v[:, :3], 0.7).asnumpy()
    np.testing.assert_allclose(whole[:, :3], start, atol=1e-6)


def test_splitting_and_joining_heads() -> None:
    for piece in range(3):
        assert_same(
            lambda x, i=piece: split_last(x, (2, 3, 1))[i] * 1.0,
            lambda x, i=piece: ops.split(x, [2, 3, 1], axis=-1)[i] * 1.0,
            random(2, 4, 6),
        )
    assert_same(
        join_shared_key,
        lambda own, shared: ops.concat((own, ops.broadcast_to(shared, (2, 3, 4, 2))), -1),
        random(2, 3, 4, 5), random(2, 3, 1, 2),
    )  # fmt: skip


def test_linear_cross_entropy() -> None:
    labels, shares = tensor(np.array([0, 4, 2, 6, 1], np.int32)), tensor(np.array([0.1, 0, 0.5, 0.2, 0.3], np.float32))
    assert_same(
        lambda x, w: linear_cross_entropy(x, w, labels, shares) * 3.0,
        lambda x, w: (cross_entropy(linear(x, w), labels) * shares).sum() * 3.0,
        random(5, 4), random(7, 4),
    )  # fmt: skip


INDICES = np.array([[0, 3], [3, 4], [0, 4], [0, 3]], np.int32)
"""Expert choices of four tokens; of five experts, 1 and 2 get none."""


def test_slots_are_sorted_by_expert_and_find_their_way_back() -> None:
    assignment = assign(tensor(INDICES), 5)
    assert assignment.counts.tolist() == [3, 0, 0, 3, 2]
    assert assignment.source.tolist() == [0, 2, 3, 0, 1, 3, 1, 2]
    assert (assignment.source[assignment.place] == np.arange(4)[:, None]).all()
    rows = np.repeat([0, 3, 4], [3, 3, 2])
    assert (rows[assignment.place] == INDICES).all()


def test_experts_from_dispatch_to_weighted_sum() -> None:
    assignment = assign(tensor(INDICES), 5)

    def fast(x: Tensor, w: Tensor, shares: Tensor) -> Tensor:
        return combine(grouped_matmul(permute(x, assignment), w, assignment.counts), shares, assignment)

    def plain(x: Tensor, w: Tensor, shares: Tensor) -> Tensor:
        rows = []
        for token, chosen in enumerate(INDICES):
            row = x[token : token + 1]
            rows.append(sum(ops.matmul(row, w[int(e)]) * shares[token, c] for c, e in enumerate(chosen)))
        return ops.concat(rows, 0)

    assert_same(fast, plain, random(4, 3), random(5, 3, 6), random(4, 2))


def test_square_root_of_softplus_is_finite_everywhere() -> None:
    x = np.array([-200.0, -30.0, -1.0, 0.0, 2.0, 100.0], np.float32)
    values, grads = sqrt_softplus(tensor(x)).asnumpy(), ms.grad(lambda v: sqrt_softplus(v).sum())(tensor(x)).asnumpy()
    wide = x[1:].astype(np.float64)
    np.testing.assert_allclose(values[1:], np.sqrt(np.logaddexp(0, wide)), rtol=1e-5)
    np.testing.assert_allclose(grads[1:], 1 / (1 + np.exp(-wide)) / 2 / np.sqrt(np.logaddexp(0, wide)), rtol=1e-5)
    assert np.isfinite(grads).all()
