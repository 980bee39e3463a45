"""A model with the trainer's interface that is small enough to follow by hand: one bigram table."""

from collections.abc import Iterable, Iterator, Sequence

import mindspore as ms
import numpy as np
from mindspore import ops

from msrt.config.resolve import Resolved
from msrt.data import MicroBatch
from msrt.models.api import LossParts, TokenCounts
from msrt.ops.autograd import Ints

ms.runtime.launch_blocking()

VOCAB = 5
COUNTS = np.array([[3, 1], [2, 2]])


class Bigram:
    """logits[t] = table[input_ids[t]]; each micro-batch claims to send `COUNTS` tokens to two layers of two experts.

    `mtp` times the main loss is its loss of multi-token prediction.
    """

    def __init__(self, seed: int = 0, experts: bool = True, mtp: float | None = None) -> None:
        values = np.random.default_rng(seed).standard_normal((VOCAB, VOCAB)).astype(np.float32)
        self.table = ms.Parameter(ms.Tensor(values), name="table")
        self.counts = COUNTS if experts else np.zeros((0, 2), np.int64)
        self.mtp = mtp
        self.started = 0
        self.told: list[Ints] = []

    def loss(
        self,
        input_ids: ms.Tensor,
        labels: ms.Tensor,
        loss_mask: ms.Tensor | None = None,
        position_ids: ms.Tensor | None = None,
        attention_mask: ms.Tensor | None = None,
        tokens: TokenCounts | None = None,
    ) -> LossParts:
        assert loss_mask is not None
        rows = ops.log_softmax(ops.gather(self.table, input_ids.reshape(-1), 0), -1)
        token_loss = -ops.gather_elements(rows, 1, labels.reshape(-1, 1)).reshape(-1)
        main = (token_loss * loss_mask.reshape(-1)).sum() / (loss_mask.sum() if tokens is None else tokens.main)
        aux = 0.01 * ops.square(self.table).mean()
        balance, counts = ms.Tensor(1.25, ms.float32), ms.Tensor(self.counts, ms.int64)
        further = ms.Tensor(np.zeros(0, np.float32)) if self.mtp is None else (main * self.mtp).reshape((1,))
        return LossParts(main + aux, main, aux, balance, counts, further)

    def start_step(self) -> None:
        self.started += 1

    def update_expert_bias(self, counts: Ints) -> None:
        self.told.append(counts)

    def trainable_params(self) -> Sequence[ms.Parameter]:
        return [self.table]

    def parameters_and_names(self) -> Iterable[tuple[str, ms.Parameter]]:
        return [("table", self.table)]


def batch(seed: int, masked: int = 0, mask_value: float = 1.0) -> MicroBatch:
    """(2, 4) random tokens; the first `masked` positions of the first row do not count."""
    random = np.random.default_rng(seed)
    mask = np.full((2, 4), mask_value, np.float32)
    mask[0, :masked] = 0.0
    return MicroBatch(
        input_ids=random.integers(0, VOCAB, (2, 4)).astype(np.int32),
        labels=random.integers(0, VOCAB, (2, 4)).astype(np.int32),
        loss_mask=mask,
        position_ids=np.tile(np.arange(4, dtype=np.int32), (2, 1)),
        attention_mask=None,
        indices=np.arange(2),
    )


def endless(first: int = 0) -> Iterator[MicroBatch]:
    seed = first
    while True:
        yield batch(seed)
        seed += 1


def numbers(steps: int, accumulation: int) -> Resolved:
    """One rank, local batch 2, sequences of 4."""
    total = 2 * accumulation
    return Resolved(1, 1, 1, 1, 1, 1, "product", accumulation, 2, total, 4, total * 4, steps, 0)
