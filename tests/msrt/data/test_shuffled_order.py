"""The order of dataloader.shuffle: true."""

import hashlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from msrt.data.shuffled import shuffled_order


@pytest.mark.parametrize(
    ("samples", "seed", "expected"),
    [
        (5, 1, [1, 0, 2, 3, 4]),
        (10, 42, [1, 6, 7, 0, 5, 9, 8, 2, 3, 4]),
        (11, 42, [4, 7, 2, 10, 8, 5, 1, 9, 6, 0, 3]),
    ],
)
def test_order_recorded_from_mindspore_for_one_rank(samples: int, seed: int, expected: list[int]) -> None:
    assert shuffled_order(samples, seed, 1).tolist() == expected


@pytest.mark.parametrize(
    ("samples", "seed", "expected"),
    [
        (5, 1, ([3, 2, 1], [0, 4])),
        (10, 42, ([6, 9, 2, 5, 3], [8, 4, 7, 1, 0])),
        (11, 42, ([7, 1, 6, 4, 2, 5], [9, 10, 0, 8, 3])),
    ],
)
def test_order_recorded_from_mindspore_for_two_ranks(
    samples: int, seed: int, expected: tuple[list[int], list[int]]
) -> None:
    order = shuffled_order(samples, seed, 2)
    assert (order[0::2].tolist(), order[1::2].tolist()) == expected


@pytest.mark.parametrize(
    ("samples", "digest"), [(65535, "95bb92e86dc74602"), (65536, "67dfcdd529e7c9ac"), (70000, "66fbc82ef719808a")]
)
def test_long_orders_recorded_from_mindspore(samples: int, digest: str) -> None:
    """Above 65,535 samples a word is too small for two swaps."""
    found = shuffled_order(samples, 42, 1)
    assert hashlib.sha256(found.astype("<i8").tobytes()).hexdigest()[:16] == digest


@given(st.integers(0, 300), st.integers(0, 2**32 - 1), st.integers(1, 3))
def test_every_sample_comes_once(samples: int, seed: int, data_parallel: int) -> None:
    assert np.array_equal(np.sort(shuffled_order(samples, seed, data_parallel)), np.arange(samples))
