"""Which samples of a data set each rank consumes in each optimizer step."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from msmigrate.problems import UserError


@dataclass(frozen=True, slots=True)
class SampleOrder:
    """The samples of every step when `samples` of them are read in turn, pass after pass.

    Rank r of `data_parallel` reads samples r, r + data_parallel, r + 2 * data_parallel, … and cuts them into
    micro-batches of `local_batch_size`, `accumulation` of them per step. A pass ends where the next global batch would
    be incomplete; the next one starts at sample 0 again and repeats the order (MindFormers recreates its iterator).
    (MindSpore fills the ranks up to equal numbers with samples from the beginning, which can give a pass one step more
    when data_parallel does not divide `samples`; here no sample comes twice in a pass.)
    `shuffled`, (samples,) int64, puts another order in the place of 0, 1, 2, …. Raises `UserError` when there are fewer
    samples than one global batch.
    """

    samples: int
    local_batch_size: int
    accumulation: int
    data_parallel: int
    shuffled: NDArray[np.int64] | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        if min(self.local_batch_size, self.accumulation, self.data_parallel) < 1:
            raise ValueError(f"every size must be 1 or more: {self}")
        if self.samples < self.global_batch_size:
            raise UserError(
                f"The training data has {self.samples} samples, but one step needs {self.global_batch_size} "
                f"({self.local_batch_size} per micro-batch x {self.accumulation} micro-batches x {self.data_parallel} "
                "data-parallel ranks). Raise sizes[0], use more data, or lower global_batch_size."
            )

    @property
    def global_batch_size(self) -> int:
        """Samples of all ranks in one step."""
        return self.local_batch_size * self.accumulation * self.data_parallel

    @property
    def steps_per_pass(self) -> int:
        """Steps before the data is read again; the samples of an incomplete last step are never read."""
        return self.samples // self.global_batch_size

    def step(self, step: int) -> NDArray[np.int64]:
        """The samples of a step, counted from 0 over the whole run: (data_parallel, accumulation, local_batch_size)."""
        first = step % self.steps_per_pass * self.global_batch_size
        rows = np.arange(first, first + self.global_batch_size, dtype=np.int64)
        if self.shuffled is not None:
            rows = self.shuffled[rows]
        return rows.reshape(self.accumulation, self.local_batch_size, self.data_parallel).transpose(2, 0, 1)

    def micro_batches(self, rank: int, first_step: int = 0) -> Iterator[NDArray[np.int64]]:
        """The (local_batch_size,) samples of each micro-batch of `rank`, without end, from step `first_step` on."""
        if not 0 <= rank < self.data_parallel or first_step < 0:
            raise ValueError(f"rank {rank} of {self.data_parallel} and first_step {first_step} must count from 0")
        return self._from(rank, first_step)

    def _from(self, rank: int, step: int) -> Iterator[NDArray[np.int64]]:
        while True:
            yield from self.step(step)[rank]
            step += 1

    def sha256(self, steps: int) -> str:
        """The digest of the samples of the first `steps` steps as little-endian int64.

        Their order is step, data-parallel rank, micro-batch, row.
        """
        digest = hashlib.sha256()
        for step in range(steps):
            digest.update(self.step(step).astype("<i8").tobytes())
        return digest.hexdigest()


@dataclass(frozen=True, slots=True)
class Consumption:
    """What a run reads, as `msrt plan --json` names it under `samples` (contract, section 4).

    `epochs` is how often the `available` samples are read: needed / available. `first` are the samples of step 1 and
    `order_sha256` is the digest of those of all steps, both in consumption order (rank, micro-batch, row).
    """

    available: int
    needed: int
    epochs: float
    first: tuple[int, ...]
    order_sha256: str


def consumption(order: SampleOrder, steps: int) -> Consumption:
    """What `steps` steps in this order consume."""
    needed = steps * order.global_batch_size
    first = tuple(order.step(0).ravel().tolist())
    return Consumption(order.samples, needed, needed / order.samples, first, order.sha256(steps))
