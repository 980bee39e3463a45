import mindspore as ms
import numpy as np
import pytest
from fake_model import COUNTS, VOCAB, Bigram, batch
from numpy.typing import NDArray

from msrt.optim.flat import FlatParameters
from msrt.train.gradients import Gradients


def gradients_of(model: Bigram, accumulation: int) -> tuple[Gradients, FlatParameters]:
    flat = FlatParameters(model.trainable_params(), [True])
    return Gradients(model, flat, accumulation), flat


def by_hand(table: NDArray[np.float64], number: int, masked: int) -> tuple[float, NDArray[np.float64]]:
    """Main loss of one micro-batch; gradient of main + aux: (softmax - one hot) · mask / Σmask + 0.02 w / n."""
    given = batch(number, masked)
    mask = given.loss_mask.reshape(-1).astype(np.float64)
    gradient, total = 0.02 * table / table.size, 0.0
    for token, label, weight in zip(given.input_ids.reshape(-1), given.labels.reshape(-1), mask, strict=True):
        probabilities = np.exp(table[token]) / np.exp(table[token]).sum()
        total -= weight * np.log(probabilities[label])
        gradient[token] += weight * (probabilities - np.eye(VOCAB)[label]) / mask.sum()
    return float(total / mask.sum()), gradient


def test_gradients_are_the_mean_over_micro_batches() -> None:
    model = Bigram()
    table = model.table.asnumpy().astype(np.float64)
    compute, flat = gradients_of(model, 2)
    # Different masks: the mean of the two token means is not the mean over all tokens.
    loss = compute([batch(1), batch(2, masked=3)])
    (loss_1, gradient_1), (loss_2, gradient_2) = by_hand(table, 1, 0), by_hand(table, 2, 3)
    assert loss.main == pytest.approx((loss_1 + loss_2) / 2, rel=1e-6)
    np.testing.assert_allclose(flat.gradients[:25].reshape(5, 5), (gradient_1 + gradient_2) / 2, rtol=1e-5, atol=1e-6)


def test_expert_counts_are_summed_and_the_balance_is_averaged() -> None:
    model = Bigram()
    compute, _ = gradients_of(model, 3)
    loss = compute([batch(1), batch(2), batch(3)])
    np.testing.assert_array_equal(loss.tokens_per_expert, 3 * COUNTS)
    assert loss.load_balancing == 1.25
    assert model.started == 1


def test_multi_token_prediction_is_averaged_and_not_part_of_the_loss() -> None:
    batches = [batch(1), batch(2, masked=3)]
    without, with_it = gradients_of(Bigram(), 2)[0](batches), gradients_of(Bigram(mtp=1.5), 2)[0](batches)
    assert without.mtp == ()
    assert with_it.main == without.main
    assert with_it.mtp == pytest.approx((1.5 * without.main,), rel=1e-6)


def test_each_step_starts_from_zero_gradients() -> None:
    compute, flat = gradients_of(Bigram(), 1)
    compute([batch(1)])
    first = flat.gradients.copy()
    compute([batch(1)])
    np.testing.assert_array_equal(flat.gradients, first)


def test_the_model_has_the_updated_weights_in_the_next_step() -> None:
    model = Bigram()
    compute, flat = gradients_of(model, 1)
    before = compute([batch(1)]).main
    flat.values -= flat.gradients
    after = compute([batch(1)]).main
    assert after < before
    assert isinstance(model.table, ms.Parameter)
