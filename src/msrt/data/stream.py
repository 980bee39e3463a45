"""Samples stacked into the micro-batches of one rank, in the order in which training consumes them."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from msmigrate.problems import UserError
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
    order = SampleOrder(len(source), local_batch_size, accumulation, data_parallel)
    rows = order.micro_batches(rank, first_step)
    return (stack_samples(source, indices) for indices in rows)


class SampleError(UserError):
    """A sample that cannot be made; the message names it."""


def stack_samples(source: SampleSource, indices: NDArray[np.int64]) -> MicroBatch:
    """The samples numbered `indices`, (batch,) int64, as one micro-batch. Raises `SampleError`."""
    samples = [_sample(source, index) for index in indices.tolist()]
    masks = [sample.attention_mask for sample in samples if sample.attention_mask is not None]
    return MicroBatch(
        input_ids=np.stack([sample.tokens for sample in samples]),
        labels=np.stack([sample.labels for sample in samples]),
        loss_mask=np.stack([sample.loss_mask for sample in samples]),
        position_ids=np.stack([sample.position_ids for sample in samples]),
        attention_mask=np.stack(masks) if masks else None,
        indices=indices.copy(),
    )


def _sample(source: SampleSource, index: int) -> Sample:
    try:
        return source[index]
    except UserError as error:
        raise SampleError(f"Sample {index} of the training data cannot be made: {error}") from error
    except Exception as error:  # whatever is wrong with a sample, its number is what helps
        kind = type(error).__name__
        raise SampleError(f"Sample {index} of the training data cannot be made: {kind}: {error}") from error
