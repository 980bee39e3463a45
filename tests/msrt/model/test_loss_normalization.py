"""One pass of four sequences against four passes of one, under both rules of the loss."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from msrt.data import MicroBatch
from msrt.models.batch import count_tokens
from msrt.ops.autograd import tensor
from msrt.optim.clip import global_norm
from msrt.optim.flat import FlatParameters
from msrt.train.gradients import Gradients, StepLoss

from .tiny_model import model

ROWS, SEQ = 4, 7
MTP: dict[str, Any] = {"num_nextn_predict_layers": 1, "mtp_loss_scaling_factor": 0.3}
RAGGED = np.array([[1] * 7, [1] * 2 + [0] * 5, [0] * 3 + [1] * 4, [1, 0, 0, 0, 0, 0, 0]], np.float32)
"""Documents of different length: 7, 2, 4 and 1 counted tokens; 6, 1, 4 and 0 one position further."""


def four(mask: NDArray[np.float32]) -> MicroBatch:
    tokens = np.random.default_rng(2).integers(0, 19, (ROWS, SEQ + 1)).astype(np.int32)
    positions = np.tile(np.arange(SEQ, dtype=np.int32), (ROWS, 1))
    return MicroBatch(tokens[:, :-1].copy(), tokens[:, 1:].copy(), mask, positions, None, np.arange(ROWS))


def one(batch: MicroBatch, row: int) -> MicroBatch:
    rows = slice(row, row + 1)
    return MicroBatch(
        batch.input_ids[rows], batch.labels[rows], batch.loss_mask[rows], batch.position_ids[rows], None,
        batch.indices[rows],
    )  # fmt: skip


def step(batches: list[MicroBatch], rule: str) -> tuple[StepLoss, float, NDArray[np.float32]]:
    built = model(**MTP)
    flat = FlatParameters(list(built.trainable_params()), [True] * len(built.trainable_params()))
    loss = Gradients(built, flat, len(batches), rule)(batches)
    return loss, global_norm(flat.gradients), flat.gradients


def both(mask: NDArray[np.float32], rule: str) -> tuple[Any, Any]:
    whole = four(mask)
    return step([whole], rule), step([one(whole, row) for row in range(ROWS)], rule)


@pytest.mark.parametrize(
    ("mask", "rule"),
    [
        (np.ones((ROWS, SEQ), np.float32), "micro_batch"),
        (np.ones((ROWS, SEQ), np.float32), "global_tokens"),
        (RAGGED, "global_tokens"),
    ],
)
def test_one_pass_and_four_passes_agree(mask: NDArray[np.float32], rule: str) -> None:
    (once, once_norm, once_gradients), (often, often_norm, often_gradients) = both(mask, rule)
    assert once.main == pytest.approx(often.main, rel=1e-5)
    assert once.mtp == pytest.approx(often.mtp, rel=1e-5)
    assert once.load_balancing == pytest.approx(often.load_balancing, rel=1e-5)
    assert once_norm == pytest.approx(often_norm, rel=1e-5)
    np.testing.assert_allclose(once_gradients, often_gradients, atol=1e-5 * float(np.abs(once_gradients).max()))


def test_mindformers_rule_is_the_mean_of_the_passes_means() -> None:
    whole = four(RAGGED)
    (once, once_norm, _), (often, often_norm, _) = both(RAGGED, "micro_batch")
    alone = [step([one(whole, row)], "micro_batch")[0] for row in range(ROWS)]
    counts = RAGGED.sum(1)
    assert often.main == pytest.approx(float(np.mean([loss.main for loss in alone])), rel=1e-6)
    assert once.main == pytest.approx(float(np.dot([loss.main for loss in alone], counts) / counts.sum()), rel=1e-5)
    assert often.main != pytest.approx(once.main, rel=1e-2)
    assert often_norm != pytest.approx(once_norm, rel=1e-2)
    assert once.load_balancing == pytest.approx(often.load_balancing, rel=1e-5)


def test_the_rules_are_the_same_bits_for_one_micro_batch_without_masked_tokens() -> None:
    whole = four(np.ones((ROWS, SEQ), np.float32))
    (plain, _, plain_gradients), (global_, _, global_gradients) = (
        step([whole], rule) for rule in ("micro_batch", "global_tokens")
    )
    assert plain.main == global_.main
    np.testing.assert_array_equal(plain_gradients, global_gradients)


def test_prediction_two_ahead_counts_one_token_less_and_ignored_labels_are_none() -> None:
    whole = four(RAGGED)
    assert count_tokens(whole.labels, whole.loss_mask) == (14, 11)
    labels = whole.labels.copy()
    labels[0, 0] = -100
    assert count_tokens(labels, whole.loss_mask) == (13, 11)


def test_a_micro_batch_without_counted_tokens_pulls_the_default_down_and_not_the_global_mean() -> None:
    whole = four(np.ones((ROWS, SEQ), np.float32))
    full, empty = one(whole, 0), replace(one(whole, 1), loss_mask=np.zeros((1, SEQ), np.float32))
    alone = step([full], "micro_batch")[0].main
    assert step([full, empty], "micro_batch")[0].main == pytest.approx(alone / 2, rel=1e-6)
    assert step([full, empty], "global_tokens")[0].main == pytest.approx(alone, rel=1e-6)


def test_a_step_without_any_counted_token_has_loss_zero() -> None:
    batch = four(np.zeros((ROWS, SEQ), np.float32))
    assert tensor(batch.loss_mask).sum() == 0
    assert [step([batch], rule)[0].main for rule in ("micro_batch", "global_tokens")] == [0.0, 0.0]
