import math

import numpy as np
import pytest

from msrt.optim.clip import CHUNK, clip_by_global_norm, global_norm


def test_the_norm_of_three_and_four_is_five() -> None:
    assert global_norm(np.array([3.0, 4.0], np.float32)) == 5.0


def test_the_norm_of_many_elements_is_exact_to_a_millionth() -> None:
    values = np.random.default_rng(0).standard_normal(5 * CHUNK + 7).astype(np.float32)
    assert global_norm(values) == pytest.approx(math.sqrt(np.sum(values.astype(np.float64) ** 2)), rel=1e-6)


def test_gradients_above_the_limit_are_scaled() -> None:
    gradients = np.array([3.0, 4.0], np.float32)
    assert clip_by_global_norm(gradients, 1.0) == 5.0
    np.testing.assert_allclose(gradients, [3 / 5.000001, 4 / 5.000001], rtol=1e-7)


def test_gradients_below_the_limit_are_untouched() -> None:
    gradients = np.array([0.3, 0.4], np.float32)
    assert clip_by_global_norm(gradients, 1.0) == pytest.approx(0.5)
    np.testing.assert_array_equal(gradients, np.array([0.3, 0.4], np.float32))


def test_a_limit_of_zero_removes_the_gradients() -> None:
    gradients = np.array([3.0, 4.0], np.float32)
    assert clip_by_global_norm(gradients, 0.0) == 5.0
    assert not gradients.any()


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_a_norm_that_is_not_finite_is_reported_and_changes_nothing(bad: float) -> None:
    gradients = np.array([bad, 4.0], np.float32)
    assert not math.isfinite(clip_by_global_norm(gradients, 1.0))
    assert gradients[1] == 4.0
