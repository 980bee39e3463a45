"""What a run consumes, as computed without running it, against what the loader hands to training."""

import hashlib
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from corpora import counting_corpus

from msmigrate.pynative.sections import Dataloader, TrainDataset
from msrt.data import SampleOrder, consumption, micro_batches_ahead, sample_order
from msrt.data.gpt_dataset import GPTDataset
from msrt.data.sample import GPTConfig


@pytest.mark.parametrize("shuffle", [False, True])
def test_consumption_is_what_training_reads(tmp_path: Path, shuffle: bool) -> None:
    source = GPTDataset(counting_corpus(tmp_path / "c", [90, 31]), range(2), GPTConfig(4), num_samples=None)
    assert len(source) == 30
    steps, ranks, accumulation = 5, 2, 2
    order = sample_order(
        TrainDataset(dataloader=Dataloader(shuffle=shuffle)),
        len(source),
        local_batch_size=3,
        accumulation=accumulation,
        data_parallel=ranks,
        seed=7,
    )
    read = np.empty((steps, ranks, accumulation, 3), np.int64)
    for rank in range(ranks):
        with micro_batches_ahead(source, order.micro_batches(rank), prefetch_size=2, workers=2) as batches:
            for number, batch in enumerate(islice(batches, steps * accumulation)):
                read[number // accumulation, rank, number % accumulation] = batch.indices
    found = consumption(order, steps)
    assert found.first == tuple(read[0].ravel().tolist())
    assert found.order_sha256 == hashlib.sha256(read.astype("<i8").tobytes()).hexdigest()
    assert (found.available, found.needed, found.epochs) == (30, 60, 2.0)
    # A pass is two steps of twelve, and all passes are alike.
    assert np.array_equal(read[0], read[2])
    assert len(np.unique(read[:2])) == 24
    assert (found.first == (0, 2, 4, 6, 8, 10, 1, 3, 5, 7, 9, 11)) is not shuffle


def test_shuffle_is_the_same_for_all_ranks_and_keeps_the_micro_batches() -> None:
    shuffled = np.asarray([5, 3, 1, 0, 2, 4], np.int64)
    order = SampleOrder(6, local_batch_size=1, accumulation=1, data_parallel=2, shuffled=shuffled)
    assert [row.tolist() for row in islice(order.micro_batches(0), 4)] == [[5], [1], [2], [5]]
    assert [row.tolist() for row in islice(order.micro_batches(1, first_step=1), 3)] == [[0], [4], [3]]
