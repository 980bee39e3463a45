"""Samples of seq_length tokens from one corpus, in megatron-core's order."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from msmigrate.problems import UserError
from msrt.data.gpt_index import GPTIndices, build_gpt_indices
from msrt.data.index_cache import cached_indices
from msrt.data.indexed import IndexedDataset
from msrt.data.sample import GPTConfig, Sample, make_sample
from msrt.data.split import SPLITS


class GPTDataset:
    """The samples of the sequences numbered `part` of `corpus`; at least `num_samples` of them, None for one epoch.

    `split` names the part ("train", "valid", "test"): only "valid" may keep its last, partial sample. `indices` holds
    the document, sample and shuffle index. With `cache_dir` the indices are kept there and read again by later runs.
    Raises `UserError` when the corpus holds floats, or the part has no tokens or too few for a single sample.
    """

    def __init__(
        self,
        corpus: IndexedDataset,
        part: range,
        config: GPTConfig,
        *,
        num_samples: int | None,
        split: str = "train",
        cache_dir: Path | None = None,
    ) -> None:
        self.corpus, self.config, self.num_samples, self.split = corpus, config, num_samples, split
        self.part: NDArray[np.int32] = np.arange(part.start, part.stop, dtype=np.int32)
        self._check_part(part)
        drop_last = split != "valid" or config.drop_last_partial_validation_sequence
        settings = (part.start, part.stop, num_samples, config.seq_length, config.extra, config.seed, drop_last)
        self.indices = cached_indices(cache_dir, corpus, settings, lambda: self._build(drop_last))
        if not len(self):
            raise UserError(
                f"The {split} part of {corpus.prefix} has {self._tokens} tokens, too few for one sample of "
                f"{config.seq_length + config.extra} (seq_length {config.seq_length} and {config.extra} more). "
                "Use more data or a smaller seq_length."
            )

    def __len__(self) -> int:
        return len(self.indices.shuffle)

    def __getitem__(self, index: int) -> Sample:
        if not 0 <= index < len(self):
            raise IndexError(f"sample {index} of {self.corpus.prefix}: it has {len(self)} samples, counted from 0.")
        return make_sample(self._text(int(self.indices.shuffle[index])), self.config)

    @property
    def _tokens(self) -> int:
        return int(self.corpus.sequence_lengths[self.part].sum(dtype=np.int64))

    def _check_part(self, part: range) -> None:
        if self.split not in SPLITS:
            raise ValueError(f"split {self.split!r} is none of {', '.join(SPLITS)}")
        if self.corpus.dtype.kind == "f":
            raise UserError(f"The corpus {self.corpus.prefix} holds {self.corpus.dtype.name} numbers, not token ids.")
        if self._tokens == 0:
            raise UserError(
                f"The {self.split} part of {self.corpus.prefix} is empty: sequences {part.start} to {part.stop} of "
                f"{len(self.corpus)} hold no token. Give it a larger share in split, or use more data."
            )

    def _build(self, drop_last: bool) -> GPTIndices:
        return build_gpt_indices(
            self.corpus.sequence_lengths,
            self.part,
            num_samples=self.num_samples,
            seq_length=self.config.seq_length,
            extra=self.config.extra,
            seed=self.config.seed,
            drop_last_partial=drop_last,
        )

    def _text(self, sample: int) -> NDArray[np.int64]:
        """The (seq_length + extra,) tokens of a sample; a partial one is filled up with the pad id."""
        first, start = (int(value) for value in self.indices.samples[sample])
        last, stop = (int(value) for value in self.indices.samples[sample + 1])
        text = np.full(self.config.seq_length + self.config.extra, self.config.pad, np.int64)
        filled = 0
        for place in range(first, last + 1):
            offset = start if place == first else 0
            length = stop + self.config.extra - offset if place == last else None
            piece = self.corpus.get(int(self.indices.documents[place]), offset, length)
            text[filled : filled + len(piece)] = piece
            filled += len(piece)
        return text
