"""Batch, steps and warm-up against a slow count of what graph mode does."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from msmigrate.mapping.schedule import BatchFactors, global_batch, steps_per_epoch, total_steps, warmup_ratio


@settings(max_examples=500)
@given(st.integers(1, 5000).flatmap(lambda steps: st.tuples(st.just(steps), st.integers(0, steps))))
def test_a_ratio_resolves_to_its_steps(pair: tuple[int, int]) -> None:
    steps, warm = pair
    ratio = warmup_ratio(steps, warm)
    assert 0 <= ratio <= 1
    assert int(steps * ratio) == warm


def test_ratios_that_plain_division_gets_wrong() -> None:
    for steps in range(1, 400):
        for warm in range(steps + 1):
            assert int(steps * warmup_ratio(steps, warm)) == warm
    assert int(22 * (15 / 22)) == 14  # why the fix is needed


@given(st.integers(1, 3000), st.integers(1, 64), st.booleans(), st.integers(1, 3))
def test_steps_per_epoch_counts_batches(samples: int, batch: int, drop: bool, repeat: int) -> None:
    rows = list(range(samples))
    batches = [rows[start : start + batch] for start in range(0, samples, batch)]
    whole = [one for one in batches if len(one) == batch or not drop]
    found = steps_per_epoch(samples, batch, drop_remainder=drop, repeat=repeat, whole_batches_only=False)
    assert found.value == len(whole) * repeat
    megatron = steps_per_epoch(samples, batch, drop_remainder=drop, repeat=repeat, whole_batches_only=True)
    assert megatron.value == sum(len(one) == batch for one in batches)


@given(st.integers(1, 2000), st.integers(1, 5), st.integers(1, 50))
def test_sinking_rounds_down_to_whole_sinks(per_epoch: int, epochs: int, sink: int) -> None:
    found = total_steps(per_epoch, epochs, sink_mode=True, sink_size=sink).value
    assert found % sink == 0
    assert math.isclose(found, per_epoch * epochs, abs_tol=sink)
    assert total_steps(per_epoch, epochs, sink_mode=True, sink_size=-1).value == per_epoch * epochs
    assert total_steps(per_epoch, epochs, sink_mode=False, sink_size=sink).value == per_epoch * epochs


@pytest.mark.parametrize(
    ("factors", "expected"),
    [
        (BatchFactors(1, 4, 8, 32, 1, 9, True, 256), 1 * 4 * 32),
        (BatchFactors(2, 8, 1, 64, 1, 1, True, 8), 2 * 8),
        (BatchFactors(1, 8, 1, 1, 2, 8, True, 8), 1 * 8 * 8 * 2),
        (BatchFactors(3, 8, 4, 5, 2, 7, False, 16), 3 * 16),
        (BatchFactors(3, 8, 4, 5, 2, 7, False, None), None),
    ],
)
def test_global_batch(factors: BatchFactors, expected: int | None) -> None:
    found = global_batch(factors)
    assert (found.value if found else None) == expected
