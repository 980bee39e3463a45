"""Choosing experts, weighing them, and the load-balancing losses, against plain loops."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from msrt.nn.balance import BalanceSpec, balance
from msrt.nn.moe import updated_bias
from msrt.nn.router import Router, RouterSpec, Routing, choose_experts
from msrt.ops.autograd import array, tensor

from . import float64_oracle as oracle
from . import tiny_model

F64 = NDArray[np.float64]

SPEC = RouterSpec(8, 2, 4, 2, "sigmoid", True, 2.5)


@given(st.integers(0, 10_000), st.sampled_from([(0, 0, 3), (1, 1, 5), (4, 2, 2), (4, 2, 4), (2, 1, 3)]))
@settings(max_examples=60, deadline=None)
def test_choice_is_that_of_sorting_groups_by_hand(seed: int, groups: tuple[int, int, int]) -> None:
    n_group, topk_group, k = groups
    spec = replace(SPEC, n_group=n_group, topk_group=topk_group, num_experts_per_tok=k)
    choice = np.random.default_rng(seed).standard_normal((6, 8)).astype(np.float32)
    config = tiny_model.config()
    by_hand = replace(config, moe=replace(config.moe, router=spec))
    expected = [oracle.choose(row.astype(np.float64), by_hand) for row in choice]
    assert choose_experts(choice, spec).tolist() == expected


def test_of_equal_scores_the_first_experts_win() -> None:
    assert choose_experts(np.zeros((1, 8), np.float32), SPEC).tolist() == [[0, 1]]


def test_experts_outside_the_chosen_groups_never_win_over_negative_choices() -> None:
    choice = np.array([[-1.0, -2.0, -9.0, -9.0, -3.0, 4.0, -9.0, -9.0]], np.float32)
    assert choose_experts(choice, replace(SPEC, num_experts_per_tok=4)).tolist() == [[0, 1, 4, 5]]


def test_the_bias_steers_the_choice_and_not_the_weight() -> None:
    router = Router(replace(SPEC, n_group=0, norm_topk_prob=False, num_experts_per_tok=1), 8)
    router.weight.set_data(tensor(np.eye(8, dtype=np.float32)))
    x = tensor(np.array([[3, 1, 0, 0, 0, 0, 0, 0]], np.float32))
    bias = np.zeros(8, np.float32)
    assert router(x, tensor(bias)).topk_indices.asnumpy().tolist() == [[0]]
    bias[1] = 1.0
    routing = router(x, tensor(bias))
    assert routing.topk_indices.asnumpy().tolist() == [[1]]
    assert float(routing.topk_weights[0, 0]) == pytest.approx(2.5 / (1 + np.exp(-1)), rel=1e-6)


def routing_of(scores: F64) -> Routing:
    one = tensor(scores.astype(np.float32))
    return Routing(one, one, one, one)


def losses(scores: F64, batch: int, kind: str, function: str, history: F64) -> float:
    spec = BalanceSpec(kind, 0.1, function, 2)  # type: ignore[arg-type]  # parametrized texts
    return float(balance(routing_of(scores), batch, spec, history.astype(np.float32)).loss)


@pytest.mark.parametrize("function", ["sigmoid", "softmax"])
def test_sequence_loss_is_the_mean_over_sequences(function: str) -> None:
    logits = np.random.default_rng(0).standard_normal((12, 8))
    scores = np.array([oracle.scores_of(row, function) for row in logits])
    expected = np.mean([oracle.sequence_balance(list(scores[s : s + 4]), 2, function) for s in (0, 4, 8)])
    assert losses(scores, 3, "seq_aux_loss", function, np.zeros(8)) == pytest.approx(expected, rel=1e-5)


def test_batch_loss_takes_all_tokens_as_one_sequence() -> None:
    scores = np.random.default_rng(1).random((12, 8))
    expected = oracle.sequence_balance(list(scores), 2, "sigmoid")
    assert losses(scores, 3, "aux_loss", "sigmoid", np.zeros(8)) == pytest.approx(expected, rel=1e-5)
    assert losses(scores, 3, "global_aux_loss", "sigmoid", np.zeros(8)) == pytest.approx(expected, rel=1e-5)


def test_even_load_gives_one() -> None:
    scores = np.full((8, 8), 0.1)
    for token in range(8):
        scores[token, [token, (token + 1) % 8]] = 0.9
    for kind in ("seq_aux_loss", "aux_loss"):
        assert losses(scores, 1, kind, "sigmoid", np.zeros(8)) == pytest.approx(1.0, rel=1e-6)


def test_global_loss_remembers_the_counts_of_the_steps_earlier_micro_batches() -> None:
    scores = np.random.default_rng(2).random((6, 8))
    shares = scores / scores.sum(1, keepdims=True)
    counts = np.bincount(np.argsort(-shares, 1)[:, :2].reshape(-1), minlength=8)
    earlier = np.array([12.0, 0, 0, 0, 0, 0, 0, 0])
    mean = (counts + earlier) / 2
    expected = (mean * shares.sum(0)).sum() * 8 / (2 * 6 * 6)
    assert losses(scores, 2, "global_aux_loss", "sigmoid", earlier) == pytest.approx(expected, rel=1e-5)


def test_the_model_forgets_the_counts_when_a_step_starts() -> None:
    built = tiny_model.model(moe_router_load_balancing_type="global_aux_loss")
    first, second = tiny_model.batch(seed=1), tiny_model.batch(seed=2)
    alone = float(built.loss(*second).aux)
    built.start_step()
    built.loss(*first)
    after_first = float(built.loss(*second).aux)
    built.start_step()
    assert float(built.loss(*second).aux) == pytest.approx(alone, rel=1e-6)
    assert after_first != pytest.approx(alone, rel=1e-6)


def test_bias_update_follows_the_sign_of_the_missing_load() -> None:
    bias = np.array([0.5, -0.5, 0.0, 0.0], np.float32)
    moved = updated_bias(bias, np.array([1, 7, 4, 4]), 0.001)
    np.testing.assert_allclose(moved, [0.501, -0.501, 0.0, 0.0], atol=1e-7)


def test_routing_weights_sum_to_the_scaling_factor() -> None:
    router = Router(SPEC, 5)
    router.weight.set_data(tensor(np.random.default_rng(0).standard_normal((8, 5)).astype(np.float32)))
    routing = router(tensor(np.random.default_rng(1).standard_normal((10, 5)).astype(np.float32)), None)
    np.testing.assert_allclose(array(routing.topk_weights).sum(1), 2.5, rtol=1e-6)
