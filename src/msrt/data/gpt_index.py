"""Which tokens make sample i: the document, sample and shuffle index of megatron-core's GPTDataset.

The chosen sequences are repeated for as many epochs as the request needs, shuffled and laid end to end. Sample k of
that stream starts at token k * seq_length. The shuffle index then deals the samples out in random order. All random
numbers come from one `RandomState(seed)`, drawn in a fixed order, so the result is the same on every machine.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

SEPARATE_LAST_EPOCH_BELOW = 0.80
"""The last epoch is shuffled on its own when less than this share of it is needed (megatron-core, GPTDataset)."""


@dataclass(frozen=True)
class GPTIndices:
    """The three indices of one corpus part with n samples.

    `documents` (epochs * part size,) int32: sequence numbers in the order of the token stream.
    `samples` (n + 1, 2) int32 or int64: row k is (position in `documents`, token offset) where sample k starts; with
    one extra token per sample the row is also where sample k - 1 ends, inclusive; without it, exclusive.
    `shuffle` (n,) uint32 (int64 for 2**32 - 2 samples and more): the sample to hand out at place i.
    """

    documents: NDArray[np.int32]
    samples: NDArray[np.int32] | NDArray[np.int64]
    shuffle: NDArray[np.uint32] | NDArray[np.int64]

    @property
    def nbytes(self) -> int:
        """Bytes of the three arrays."""
        return self.documents.nbytes + self.samples.nbytes + self.shuffle.nbytes


@dataclass(frozen=True)
class _Epochs:
    count: int
    separate_last: bool
    samples_before_last: int


def build_gpt_indices(
    sequence_lengths: NDArray[np.int32],
    part: NDArray[np.int32],
    *,
    num_samples: int | None,
    seq_length: int,
    extra: int,
    seed: int,
    drop_last_partial: bool = True,
) -> GPTIndices:
    """The indices for at least `num_samples` samples (None: one epoch) from the sequences numbered `part`.

    `sequence_lengths` (S,) int32 covers the whole corpus; `extra` is 1 or 0. Raises `ValueError` when the part holds no
    token, since no number of epochs would help.
    """
    tokens_per_epoch = int(sequence_lengths[part].sum(dtype=np.int64))
    if tokens_per_epoch == 0:
        raise ValueError("the part holds no token")
    epochs = _plan_epochs(tokens_per_epoch, num_samples, seq_length, extra)
    random = np.random.RandomState(seed)
    documents = _document_index(part, epochs, random)
    samples = build_sample_index(
        sequence_lengths[documents], seq_length=seq_length, extra=extra, drop_last_partial=drop_last_partial
    )
    total = len(samples) - 1
    shuffle = _shuffle_index(epochs.samples_before_last if epochs.separate_last else total, total, random)
    return GPTIndices(documents, samples, shuffle)


def index_bytes(tokens: int, sequences: int, num_samples: int | None, seq_length: int) -> int:
    """About how many bytes the indices of a part with `tokens` tokens in `sequences` sequences will have."""
    epochs = _plan_epochs(tokens, num_samples, seq_length, 0).count
    return 4 * sequences * epochs + (8 + 4) * (tokens * epochs // seq_length)


def _plan_epochs(tokens_per_epoch: int, num_samples: int | None, seq_length: int, extra: int) -> _Epochs:
    if num_samples is None:
        return _Epochs(1, False, 0)
    needed = num_samples * seq_length + extra
    count = max(1, -(-needed // tokens_per_epoch))
    if count == 1:
        return _Epochs(1, False, 0)
    before_last = ((count - 1) * tokens_per_epoch - extra) // seq_length
    per_epoch = (tokens_per_epoch - extra) // seq_length
    separate = num_samples - before_last < int(SEPARATE_LAST_EPOCH_BELOW * per_epoch)
    return _Epochs(count, separate, before_last)


def _document_index(part: NDArray[np.int32], epochs: _Epochs, random: np.random.RandomState) -> NDArray[np.int32]:
    shuffled_together = epochs.count - 1 if epochs.separate_last else epochs.count
    documents = np.tile(part, shuffled_together)
    random.shuffle(documents)
    if not epochs.separate_last:
        return documents
    last = part.copy()
    random.shuffle(last)
    return np.concatenate([documents, last])


def build_sample_index(
    lengths: NDArray[np.int32], *, seq_length: int, extra: int, drop_last_partial: bool = True
) -> NDArray[np.int32] | NDArray[np.int64]:
    """Where each sample starts in a stream of documents with these `lengths`: (n + 1, 2), see `GPTIndices.samples`.

    n = (tokens - extra) / seq_length, rounded down, or up when the last partial sample is kept. The result is int32
    unless a position or a length does not fit.
    """
    ends = np.cumsum(lengths, dtype=np.int64)
    total = int(ends[-1]) if len(ends) else 0
    usable = max(0, total - extra)
    # megatron-core rounds up in float32, which miscounts beyond 2**24 tokens; whole numbers do not.
    count = usable // seq_length if drop_last_partial else -(-usable // seq_length)
    index = np.zeros((count + 1, 2), np.int64)
    # With an extra token a boundary is the token shared by both samples; without one, it is just past the last token.
    shared = np.minimum(np.arange(1, count + 1, dtype=np.int64) * seq_length, usable) - (1 - extra)
    where = np.searchsorted(ends, shared, side="right")
    index[1:, 0] = where
    index[1:, 1] = shared - (ends[where] - lengths[where]) + (1 - extra)
    largest = max(len(lengths), int(lengths.max(initial=0)))
    return index.astype(np.int32) if largest <= np.iinfo(np.int32).max else index


def _shuffle_index(first: int, total: int, random: np.random.RandomState) -> NDArray[np.uint32] | NDArray[np.int64]:
    """0 … total - 1, shuffled in [0, first) and in [first, total) apart."""
    order: NDArray[np.uint32] | NDArray[np.int64] = np.arange(total, dtype=np.uint32)
    if total >= np.iinfo(np.uint32).max - 1:
        order = np.arange(total, dtype=np.int64)
    random.shuffle(order[:first])
    # A shuffle of nothing draws no random number, so this also covers first == total.
    random.shuffle(order[first:])
    return order
