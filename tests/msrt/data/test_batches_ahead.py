"""Micro-batches made ahead of training."""

import os
import signal
import threading
import time
from collections.abc import Iterator
from itertools import count, islice
from pathlib import Path

import numpy as np
import pytest
from corpora import counting_corpus
from processes import wait_until

from msmigrate.problems import UserError
from msrt.data import MicroBatch, Sample, SampleOrder, SampleSource, micro_batches, micro_batches_ahead
from msrt.data.blend import build_part
from msrt.data.data_path import parse_data_path
from msrt.data.sample import GPTConfig, make_sample
from msrt.data.split import parse_split
from msrt.data.workers import WorkerProcesses


class Numbered:
    """Sample i holds the token 10 * i + position; `bad` cannot be made; `made` are those asked for in this process."""

    def __init__(self, bad: int = -1) -> None:
        self.bad, self.made = bad, list[int]()

    def __len__(self) -> int:
        return 1000

    def __getitem__(self, index: int) -> Sample:
        if index == self.bad:
            raise OSError("disk gone")
        time.sleep(0.001 * (index % 3))
        self.made.append(index)
        return make_sample(10 * index + np.arange(4), GPTConfig(3))


def rows(batches: int, size: int = 2) -> Iterator[np.ndarray[tuple[int], np.dtype[np.int64]]]:
    return iter(np.arange(batches * size, dtype=np.int64).reshape(batches, size))


def prefetch_threads() -> int:
    return sum(thread.name.startswith("prefetch") for thread in threading.enumerate())


def first_tokens(batches: Iterator[MicroBatch]) -> list[list[int]]:
    return [batch.input_ids[:, 0].tolist() for batch in batches]


SETTINGS = [(0, 4, False), (1, 1, False), (3, 4, False), (1, 2, True), (2, 3, True)]


@pytest.mark.parametrize(("prefetch_size", "workers", "processes"), SETTINGS)
def test_order_does_not_depend_on_who_makes_them(prefetch_size: int, workers: int, processes: bool) -> None:
    with micro_batches_ahead(
        Numbered(), rows(20), prefetch_size=prefetch_size, workers=workers, processes=processes
    ) as batches:
        assert first_tokens(batches) == [[20 * batch, 20 * batch + 10] for batch in range(20)]


@pytest.mark.parametrize(("prefetch_size", "workers", "processes"), SETTINGS)
def test_a_sample_that_cannot_be_made_is_named_in_its_place(prefetch_size: int, workers: int, processes: bool) -> None:
    with micro_batches_ahead(
        Numbered(bad=7), rows(20), prefetch_size=prefetch_size, workers=workers, processes=processes
    ) as batches:
        assert first_tokens(islice(batches, 3)) == [[0, 10], [20, 30], [40, 50]]
        with pytest.raises(UserError, match=r"Sample 7 of the training data cannot be made: OSError: disk gone"):
            next(batches)


def test_threads_run_ahead_by_their_number_times_the_size_and_no_further() -> None:
    source = Numbered()
    with micro_batches_ahead(source, rows(100, 1), prefetch_size=2, workers=3) as batches:
        next(batches)
        wait_until(lambda: len(source.made) == 7)
        next(batches)
        wait_until(lambda: len(source.made) == 8)
        time.sleep(0.05)
        assert sorted(source.made) == list(range(8))
        assert 1 <= prefetch_threads() <= 3
    assert prefetch_threads() == 0


def test_nothing_is_made_ahead_with_size_zero() -> None:
    source = Numbered()
    with micro_batches_ahead(source, rows(10, 1), prefetch_size=0, workers=3) as batches:
        next(batches)
        assert source.made == [0]
        assert prefetch_threads() == 0


def test_leaving_the_block_early_ends_the_threads() -> None:
    with micro_batches_ahead(Numbered(), rows(99), prefetch_size=1, workers=2) as batches:
        next(batches)
        assert prefetch_threads() > 0
    assert prefetch_threads() == 0


def test_a_killed_worker_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    pids: list[int] = []
    start = WorkerProcesses.__enter__

    def noted(pool: WorkerProcesses[object, object]) -> WorkerProcesses[object, object]:
        pids.extend(pool.pids)
        return start(pool)

    monkeypatch.setattr(WorkerProcesses, "__enter__", noted)
    endless = (np.asarray([number % 1000]) for number in count())
    with micro_batches_ahead(Numbered(), endless, prefetch_size=1, workers=2, processes=True) as batches:
        next(batches)
        os.kill(pids[0], signal.SIGKILL)
        with pytest.raises(UserError, match=rf"Data worker 1 of 2 \(process {pids[0]}\) ended by signal 9"):
            first_tokens(islice(batches, 10))


@pytest.mark.parametrize("cached", [True, False])
def test_processes_read_the_same_corpus(tmp_path: Path, cached: bool) -> None:
    """Also from a blend, and also when the indices are kept in files that the processes map."""
    for name, first in (("a", 1000), ("b", 5000)):
        counting_corpus(tmp_path / name, [7, 30, 12], first=first)
    source = build_part(
        parse_data_path([0.3, str(tmp_path / "a"), 0.7, str(tmp_path / "b")]),
        parse_split("1"),
        "train",
        50,
        GPTConfig(8, create_attention_mask=True),
        cache_dir=tmp_path / "cache" if cached else None,
    )
    assert source is not None
    order = SampleOrder(len(source), local_batch_size=2, accumulation=2, data_parallel=2)
    expected = list(islice(micro_batches(source, local_batch_size=2, accumulation=2, data_parallel=2, rank=1), 16))
    with micro_batches_ahead(
        source, order.micro_batches(rank=1), prefetch_size=1, workers=2, processes=True
    ) as batches:
        found = list(islice(batches, 16))
    for ours, theirs in zip(expected, found, strict=True):
        for name in ("input_ids", "labels", "loss_mask", "position_ids", "attention_mask", "indices"):
            assert np.array_equal(getattr(ours, name), getattr(theirs, name))


def test_ranks_together_read_every_sample_of_a_pass(tmp_path: Path) -> None:
    corpus = counting_corpus(tmp_path / "c", [40, 40, 41])
    source = build_part(parse_data_path(corpus.prefix), parse_split("1"), "train", None, GPTConfig(4))
    assert source is not None
    assert len(source) == 30
    seen: list[tuple[int, ...]] = []
    for rank in range(3):
        order = SampleOrder(len(source), local_batch_size=2, accumulation=1, data_parallel=3)
        with micro_batches_ahead(source, order.micro_batches(rank), prefetch_size=1, workers=1) as batches:
            seen += [tuple(row) for batch in islice(batches, 5) for row in batch.input_ids.tolist()]
    assert sorted(seen) == sorted(tuple(sample.tokens.tolist()) for sample in every(source))


def every(source: SampleSource) -> Iterator[Sample]:
    return (source[index] for index in range(len(source)))
