"""Samples stacked into the micro-batches of one rank, in the order in which training consumes them."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from msrt.data.order import SampleOrder
from msrt.data.sample import Sample


class SampleSource(Protocol):
    """Anything that has a fixed number of samples and gives sample i."""

    def __len__(self) -> int: ...

    def __getitem__(self, index: int, /) -> Sample: ...


@dataclass(frozen=True, slots=True)
class MicroBatch:
    """What one forward pass reads.

    `input_ids`, `labels` and `position_ids` are (batch, seq) int32, `loss_mask` is (batch, seq) float32. `labels` are
    already shifted: labels[t] follows input_ids[t]. `attention_mask` is (batch, 1, seq, seq) bool, True where a query
    (row) must not see a key (column); None when the samples have none, which means causal. `indices` (batch,) int64 are
    the numbers of the samples in their source.
    """

    input_ids: NDArray[np.int32]
    labels: NDArray[np.int32]
    loss_mask: NDArray[np.float32]
    position_ids: NDArray[np.int32]
    attention_mask: NDArray[np.bool_] | None
    indices: NDArray[np.int64]


def micro_batches(
    source: SampleSource,
    *,
    local_batch_size: int,
    accumulation: int,
    data_parallel: int,
    rank: int = 0,
    first_step: int = 0,
) -> Iterator[MicroBatch]:
    """The micro-batches of data-parallel rank `rank`, without end: each step takes the next `accumulation` of them.

    `first_step` counts the optimizer steps already done, so a resumed run goes on where it stopped. The order is
    `SampleOrder`'s. Raises `UserError` when `source` has fewer samples than one global batch.
    """
    if not 0 <= rank < data_parallel or first_step < 0:
        raise ValueError(f"rank {rank} of {data_parallel} and first_step {first_step} must count from 0")
    order = SampleOrder(len(source), local_batch_size, accumulation, data_parallel)
    return _endless(source, order, rank, first_step)


def _endless(source: SampleSource, order: SampleOrder, rank: int, step: int) -> Iterator[MicroBatch]:
    while True:
        for indices in order.step(step)[rank]:
            yield stack_samples(source, indices)
        step += 1


def stack_samples(source: SampleSource, indices: NDArray[np.int64]) -> MicroBatch:
    """The samples numbered `indices`, (batch,) int64, as one micro-batch."""
    samples = [source[index] for index in indices.tolist()]
    masks = [sample.attention_mask for sample in samples if sample.attention_mask is not None]
    return MicroBatch(
        input_ids=np.stack([sample.tokens for sample in samples]),
        labels=np.stack([sample.labels for sample in samples]),
        loss_mask=np.stack([sample.loss_mask for sample in samples]),
        position_ids=np.stack([sample.position_ids for sample in samples]),
        attention_mask=np.stack(masks) if masks else None,
        indices=indices.copy(),
    )
