"""One training sample, cut from a run of tokens: inputs, labels, loss mask, positions, attention mask."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from msmigrate.problems import UserError


@dataclass(frozen=True)
class Sample:
    """One sequence of length s: `tokens`, `labels`, `position_ids` (s,) int32, `loss_mask` (s,) float32.

    `attention_mask` is (1, s, s) bool, True where a query (row) must not see a key (column); None when no mask was
    asked for, which means causal. Pad ids appear as 0 in `tokens` and `labels`.
    """

    tokens: NDArray[np.int32]
    labels: NDArray[np.int32]
    loss_mask: NDArray[np.float32]
    position_ids: NDArray[np.int32]
    attention_mask: NDArray[np.bool_] | None


@dataclass(frozen=True)
class GPTConfig:
    """What decides the samples drawn from a corpus; names and meaning as in megatron-core's GPTDatasetConfig.

    `eod` and `pad` are token ids; -1 means that no token is one. `eod_mask_loss` True takes positions whose input is
    end-of-document out of the loss. `create_compressed_eod_mask` is MindFormers': documents do not see each other, at
    most `eod_pad_length` + 1 of them in a sample. `add_extra_token` reads seq_length + 1 tokens, so that the last label
    is real.
    """

    seq_length: int
    seed: int = 1234
    eod: int = -1
    pad: int = -1
    eod_mask_loss: bool = False
    reset_position_ids: bool = False
    reset_attention_mask: bool = False
    create_attention_mask: bool = False
    create_compressed_eod_mask: bool = False
    eod_pad_length: int = 128
    add_extra_token: bool = True
    drop_last_partial_validation_sequence: bool = True

    @property
    def extra(self) -> int:
        """Tokens read beyond seq_length: 1 or 0."""
        return int(self.add_extra_token)


def make_sample(text: NDArray[np.int64], config: GPTConfig) -> Sample:
    """The sample made of `text`, (seq_length + extra,) int64 token ids already filled up with `config.pad`.

    Masks are made anew for each sample: no sample can alter the mask of another one. Raises `UserError` for more than
    `eod_pad_length` inner ends of documents under `create_compressed_eod_mask`.
    """
    tokens, labels = _inputs_and_labels(text.astype(np.int32), config)
    ends = np.flatnonzero(tokens == config.eod)
    loss_mask = np.ones(config.seq_length, np.float32)
    if config.eod_mask_loss:
        loss_mask[ends] = 0.0
    loss_mask[labels == config.pad] = 0.0
    # The embedding has no row for a pad id such as -1; the loss mask already excludes these labels.
    tokens[tokens == config.pad] = 0
    labels[labels == config.pad] = 0
    return Sample(tokens, labels, loss_mask, _position_ids(ends, config), _attention_mask(ends, config))


def _inputs_and_labels(text: NDArray[np.int32], config: GPTConfig) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    if config.add_extra_token:
        return text[:-1].copy(), text[1:].copy()
    labels = np.roll(text, -1)
    labels[-1] = config.pad
    return text, labels


def _segment_starts(ends: NDArray[np.intp], seq_length: int) -> NDArray[np.int32]:
    """For each position, the position at which its document starts in the sample; (s,) int32."""
    starts = np.zeros(seq_length, np.int32)
    inner = ends[ends + 1 < seq_length] + 1
    starts[inner] = inner
    return np.maximum.accumulate(starts)


def _position_ids(ends: NDArray[np.intp], config: GPTConfig) -> NDArray[np.int32]:
    positions = np.arange(config.seq_length, dtype=np.int32)
    return positions - _segment_starts(ends, config.seq_length) if config.reset_position_ids else positions


def _attention_mask(ends: NDArray[np.intp], config: GPTConfig) -> NDArray[np.bool_] | None:
    compressed = config.create_compressed_eod_mask
    if not (config.create_attention_mask or compressed):
        return None
    inner = int(np.count_nonzero(ends + 1 < config.seq_length))
    if compressed and inner > config.eod_pad_length:
        raise UserError(
            f"it has {inner} ends of documents, and eod_pad_length {config.eod_pad_length} has room for "
            f"{config.eod_pad_length}: set train_dataset.dataloader.config.eod_pad_length to {inner} or more."
        )
    keys = np.arange(config.seq_length, dtype=np.int32)
    hidden = keys[None, :] > keys[:, None]
    if config.reset_attention_mask or compressed:
        hidden |= keys[None, :] < _segment_starts(ends, config.seq_length)[:, None]
    return hidden[None]
