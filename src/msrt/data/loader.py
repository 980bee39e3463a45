"""Micro-batches made ahead of training, by threads or processes."""

import logging
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial

import numpy as np
from numpy.typing import NDArray

from msrt.data.stream import MicroBatch, SampleSource, stack_samples
from msrt.data.workers import WorkerProcesses, in_order

Rows = NDArray[np.int64]


@contextmanager
def micro_batches_ahead(
    source: SampleSource, rows: Iterable[Rows], *, prefetch_size: int, workers: int, processes: bool = False
) -> Iterator[Iterator[MicroBatch]]:
    """An iterator over the micro-batches of `rows`, (batch,) sample numbers each, in the order of `rows`.

    `workers` threads, or processes, make them, and each has up to `prefetch_size` ready or under way beyond the one
    that is asked for; with `prefetch_size` 0 each is made when it is asked for. The order never depends on these
    numbers. An error appears at the place of its micro-batch, as a `UserError` that names the sample, or the process
    that ended. The end of the block ends the workers.
    """
    if prefetch_size == 0:
        yield (stack_samples(source, indices) for indices in rows)
        return
    pool = _processes(source, workers) if processes else _threads(source, workers)
    with pool as submit:
        yield in_order(submit, rows, prefetch_size * workers)


Submit = Callable[[Rows], Callable[[], MicroBatch]]


@contextmanager
def _threads(source: SampleSource, workers: int) -> Iterator[Submit]:
    pool = ThreadPoolExecutor(workers, thread_name_prefix="prefetch")

    def submit(indices: Rows) -> Callable[[], MicroBatch]:
        future: Future[MicroBatch] = pool.submit(stack_samples, source, indices)
        return future.result

    try:
        yield submit
    finally:
        pool.shutdown(cancel_futures=True)


@contextmanager
def _processes(source: SampleSource, workers: int) -> Iterator[Submit]:
    pool: WorkerProcesses[Rows, MicroBatch] = WorkerProcesses(partial(_stacker, source), workers, "Data worker")
    with pool:
        yield pool.submit


def _stacker(source: SampleSource) -> Callable[[Rows], MicroBatch]:
    logging.disable()  # the main process has said everything about this source
    return partial(stack_samples, source)
