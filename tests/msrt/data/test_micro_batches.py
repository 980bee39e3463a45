"""Which samples each rank consumes, and how they are stacked."""

import hashlib
import struct
from itertools import islice

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from msmigrate.problems import UserError
from msrt.data import Sample, SampleOrder, micro_batches
from msrt.data.sample import GPTConfig, make_sample


class Numbered:
    """A source whose sample i holds the token 10 * i + position."""

    def __init__(self, samples: int, mask: bool = False) -> None:
        self._samples, self._config = samples, GPTConfig(3, create_attention_mask=mask)

    def __len__(self) -> int:
        return self._samples

    def __getitem__(self, index: int) -> Sample:
        return make_sample(10 * index + np.arange(4), self._config)


def consumed(
    samples: int, batches: int, *, lbs: int, ga: int, dp: int, rank: int, first_step: int = 0
) -> list[list[int]]:
    stream = micro_batches(
        Numbered(samples), local_batch_size=lbs, accumulation=ga, data_parallel=dp, rank=rank, first_step=first_step
    )
    return [batch.indices.tolist() for batch in islice(stream, batches)]


def test_ranks_take_turns_and_cut_consecutive_micro_batches() -> None:
    assert consumed(100, 4, lbs=2, ga=2, dp=2, rank=0) == [[0, 2], [4, 6], [8, 10], [12, 14]]
    assert consumed(100, 4, lbs=2, ga=2, dp=2, rank=1) == [[1, 3], [5, 7], [9, 11], [13, 15]]


def test_incomplete_global_batch_is_dropped_and_the_pass_repeats() -> None:
    assert consumed(11, 6, lbs=1, ga=2, dp=2, rank=1) == [[1], [3], [5], [7], [1], [3]]


def test_order_over_ranks_is_rank_then_micro_batch_then_row() -> None:
    order = SampleOrder(20, local_batch_size=2, accumulation=2, data_parallel=2)
    assert order.step(0).ravel().tolist() == [0, 2, 4, 6, 1, 3, 5, 7]
    assert order.step(1).ravel().tolist() == [8, 10, 12, 14, 9, 11, 13, 15]
    assert order.step(2).tolist() == order.step(0).tolist()
    assert (order.global_batch_size, order.steps_per_pass) == (8, 2)


def test_digest_is_over_little_endian_int64() -> None:
    order = SampleOrder(4, local_batch_size=1, accumulation=1, data_parallel=2)
    expected = hashlib.sha256(struct.pack("<6q", 0, 1, 2, 3, 0, 1)).hexdigest()
    assert order.sha256(3) == expected


@given(
    st.integers(1, 3), st.integers(1, 3), st.integers(1, 4), st.integers(0, 30), st.integers(0, 6), st.integers(1, 6)
)
def test_a_step_consumes_the_next_global_batch(lbs: int, ga: int, dp: int, spare: int, first: int, steps: int) -> None:
    """Step k of all ranks together reads the k-th run of samples, however the work is divided or the run resumed."""
    batch = lbs * ga * dp
    samples = batch + spare
    ranks = [consumed(samples, steps * ga, lbs=lbs, ga=ga, dp=dp, rank=rank, first_step=first) for rank in range(dp)]
    for step in range(steps):
        start = (first + step) % (samples // batch) * batch
        rows = [row for rank in ranks for micro in rank[step * ga : (step + 1) * ga] for row in micro]
        assert sorted(rows) == list(range(start, start + batch))


def test_stacked_arrays() -> None:
    stream = micro_batches(Numbered(8, mask=True), local_batch_size=2, accumulation=1, data_parallel=2, rank=1)
    batch = next(stream)
    assert batch.input_ids.tolist() == [[10, 11, 12], [30, 31, 32]]
    assert batch.labels.tolist() == [[11, 12, 13], [31, 32, 33]]
    assert batch.loss_mask.tolist() == [[1, 1, 1], [1, 1, 1]]
    assert batch.position_ids.tolist() == [[0, 1, 2], [0, 1, 2]]
    assert batch.attention_mask is not None
    assert batch.attention_mask.shape == (2, 1, 3, 3)
    for array in (batch.input_ids, batch.labels, batch.position_ids):
        assert array.dtype == np.int32
    assert batch.loss_mask.dtype == np.float32
    assert batch.attention_mask.dtype == np.bool_
    assert batch.indices.dtype == np.int64
    plain = next(micro_batches(Numbered(8), local_batch_size=2, accumulation=1, data_parallel=1))
    assert plain.attention_mask is None


def test_fewer_samples_than_a_global_batch() -> None:
    with pytest.raises(UserError, match=r"has 7 samples, but one step needs 8 \(2 per micro-batch x 2 .* x 2 data"):
        micro_batches(Numbered(7), local_batch_size=2, accumulation=2, data_parallel=2)


@pytest.mark.parametrize(("rank", "first_step"), [(2, 0), (-1, 0), (0, -1)])
def test_numbers_that_cannot_be(rank: int, first_step: int) -> None:
    with pytest.raises(ValueError, match="must count from 0"):
        micro_batches(
            Numbered(8), local_batch_size=1, accumulation=1, data_parallel=2, rank=rank, first_step=first_step
        )
    with pytest.raises(ValueError, match="1 or more"):
        SampleOrder(8, local_batch_size=0, accumulation=1, data_parallel=1)
