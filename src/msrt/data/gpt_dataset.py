"""Samples of seq_length tokens from one corpus, in megatron-core's order."""

import logging
import os
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from msmigrate.problems import UserError
from msmigrate.yaml.source import shown_path
from msrt.data.gpt_index import GPTIndices, build_gpt_indices, index_bytes
from msrt.data.index_cache import MAX_BYTES, cached_arrays, digest
from msrt.data.indexed import IndexedDataset
from msrt.data.sample import GPTConfig, Sample, make_sample
from msrt.data.split import SPLITS

WORKING_COPIES = 4
"""Building the indices takes this many times their own size (measured; the running sums are int64)."""

BYTES_PER_SECOND = 2**25
"""Indices built per second (measured on one core at 2.5 GHz); for a rough announcement only."""

log = logging.getLogger(__name__)


class GPTDataset:
    """The samples of the sequences numbered `part` of `corpus`; at least `num_samples` of them, None for one epoch.

    `split` names the part ("train", "valid", "test"): only "valid" may keep its last, partial sample. `indices` holds
    the document, sample and shuffle index. With `cache_dir` the indices are kept there and read again by later runs.
    Raises `UserError` when the corpus holds floats, the part has no tokens or too few for a single sample, or so many
    samples are asked for that their indices do not fit into this machine's memory. Pickled, it is its arguments.
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
        self._again = (corpus, part, config, num_samples, split, cache_dir)
        self.part: NDArray[np.int32] = np.arange(part.start, part.stop, dtype=np.int32)
        self._check_part(part)
        drop_last = split != "valid" or config.drop_last_partial_validation_sequence
        settings = (part.start, part.stop, num_samples, config.seq_length, config.extra, config.seed, drop_last)
        name = f"gpt-index-{digest(settings, corpus.sequence_lengths)}"
        self.indices = GPTIndices(**cached_arrays(cache_dir, name, lambda: vars(self._build(drop_last))))
        if not len(self):
            raise UserError(
                f"The {split} part of {self._name} has {self._tokens} tokens, too few for one sample of "
                f"{config.seq_length + config.extra} (seq_length {config.seq_length} and {config.extra} more). "
                "Use more data or a smaller seq_length."
            )

    def __reduce__(self) -> tuple[object, ...]:
        # A process that gets a copy maps the same files instead of receiving their bytes.
        return _open, self._again

    def __len__(self) -> int:
        return len(self.indices.shuffle)

    def __getitem__(self, index: int) -> Sample:
        if not 0 <= index < len(self):
            raise IndexError(f"sample {index} of {self._name}: it has {len(self)} samples, counted from 0.")
        return make_sample(self._text(int(self.indices.shuffle[index])), self.config)

    @property
    def _name(self) -> str:
        return shown_path(self.corpus.prefix)

    @property
    def _tokens(self) -> int:
        return int(self.corpus.sequence_lengths[self.part].sum(dtype=np.int64))

    def _check_part(self, part: range) -> None:
        if self.split not in SPLITS:
            raise ValueError(f"split {self.split!r} is none of {', '.join(SPLITS)}")
        if self.corpus.dtype.kind == "f":
            raise UserError(f"The corpus {self._name} holds {self.corpus.dtype.name} numbers, not token ids.")
        if self._tokens == 0:
            raise UserError(
                f"The {self.split} part of {self._name} is empty: sequences {part.start} to {part.stop} of "
                f"{len(self.corpus)} hold no token. Give it a larger share in split, or use more data."
            )

    def _build(self, drop_last: bool) -> GPTIndices:
        self._check_size()
        return build_gpt_indices(
            self.corpus.sequence_lengths,
            self.part,
            num_samples=self.num_samples,
            seq_length=self.config.seq_length,
            extra=self.config.extra,
            seed=self.config.seed,
            drop_last_partial=drop_last,
        )

    def _check_size(self) -> None:
        size = index_bytes(self._tokens, len(self.part), self.num_samples, self.config.seq_length)
        needed, memory = size * WORKING_COPIES, os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        asked = (
            f"Putting {self.num_samples or 'all'} samples of {self._name} in order needs {needed / 2**30:.1f} GiB of "
            "memory"
        )
        if needed > memory:
            raise UserError(
                f"{asked}, and this machine has {memory / 2**30:.1f} GiB. Lower train_dataset.dataloader.sizes to what "
                "the run consumes."
            )
        if size > MAX_BYTES:
            log.warning(
                "%s and about %d s at each start: the result, %.1f GiB, is too large to be kept. If the run consumes "
                "fewer samples, lower train_dataset.dataloader.sizes.",
                asked,
                size / BYTES_PER_SECOND,
                size / 2**30,
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


def _open(
    corpus: IndexedDataset, part: range, config: GPTConfig, num_samples: int | None, split: str, cache_dir: Path | None
) -> GPTDataset:
    return GPTDataset(corpus, part, config, num_samples=num_samples, split=split, cache_dir=cache_dir)
