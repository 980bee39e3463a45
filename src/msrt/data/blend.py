"""Several corpora as one: which member gives sample i, as megatron-core's BlendedDataset decides it."""

import logging
import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from msmigrate.problems import UserError
from msmigrate.yaml.source import shown_path
from msrt.data.data_path import KEY, DataPath, normalise
from msrt.data.gpt_dataset import GPTDataset
from msrt.data.index_cache import cached_arrays, digest
from msrt.data.indexed import IndexedDataset
from msrt.data.sample import GPTConfig, Sample
from msrt.data.split import SPLITS, Split

SURPLUS = 1.005
"""Members are asked for this many times their share, so that rounding never exhausts one (both readers)."""

LONG = 10_000_000
"""Samples from which on dealing them out is announced."""

log = logging.getLogger(__name__)


class BlendRule(Enum):
    """How long a blend of weighted corpora is, and how many samples each of them is asked for.

    The two differ in length, so in where the next pass over the data begins; the samples before that are the same
    unless the rounding gives a member one more pass of its own. Everything else of the two readers agrees.
    """

    MEGATRON = "megatron"
    """Share = ceil(size x weight); length = sum of shares; member = ceil(share x 1.005) (megatron-core 0.16.1)."""
    MINDFORMERS = "mindformers"
    """Member = ceil(size x weight x 1.005); length = sum of members (MindFormers 2.0.0 and 2.1.0): 402 for 400."""

    def members(self, weights: Sequence[float], size: int) -> list[int]:
        """The samples asked of each member, for normalised `weights`."""
        if self is BlendRule.MINDFORMERS:
            return [math.ceil(size * weight * SURPLUS) for weight in weights]
        return [math.ceil(math.ceil(size * weight) * SURPLUS) for weight in weights]

    def length(self, weights: Sequence[float], size: int) -> int:
        """The samples of the blend, for normalised `weights`."""
        if self is BlendRule.MINDFORMERS:
            return sum(self.members(weights, size))
        return sum(math.ceil(size * weight) for weight in weights)


@dataclass(frozen=True)
class BlendIndices:
    """For n samples: `members` (n,) int16, the corpus; `samples` (n,) int64, the sample within that corpus."""

    members: NDArray[np.int16]
    samples: NDArray[np.int64]


def blend_by_weight(weights: Sequence[float], size: int) -> BlendIndices:
    """`size` samples dealt out so that every member stays as near as possible to its weight (normalised here).

    Sample i goes to the member with the largest weight * max(i, 1) - samples so far; the first one on a tie. With the
    members' lengths as weights and their sum as size, every sample of every member comes exactly once.
    """
    shares = normalise(weights)
    if len(shares) == 1:
        return BlendIndices(np.zeros(size, np.int16), np.arange(size, dtype=np.int64))
    if size > LONG:
        log.warning("Dealing %d samples out to %d corpora takes a while, about 1 s per million.", size, len(shares))
    dealt: list[int] = []
    taken = [0] * len(shares)
    for place in range(size):
        scale = float(max(place, 1))
        chosen, largest = 0, -math.inf
        for member, share in enumerate(shares):
            error = share * scale - taken[member]
            if error > largest:
                chosen, largest = member, error
        dealt.append(chosen)
        taken[chosen] += 1
    members = np.asarray(dealt, np.int16)
    samples = np.empty(size, np.int64)
    for member, count in enumerate(taken):
        samples[members == member] = np.arange(count)
    return BlendIndices(members, samples)


class BlendedDataset:
    """The samples of `members`, mixed as `indices` says. Raises `UserError` when a member has too few samples."""

    def __init__(self, members: Sequence[GPTDataset], indices: BlendIndices) -> None:
        self.members, self.indices = tuple(members), indices
        drawn = np.bincount(indices.members, minlength=len(members))
        for member, count in zip(self.members, drawn.tolist(), strict=True):
            if count > len(member):
                raise UserError(
                    f"The blend draws {count} samples from {shown_path(member.corpus.prefix)}, which gives only "
                    f"{len(member)}. Lower its weight or train_dataset.dataloader.sizes."
                )

    def __len__(self) -> int:
        return len(self.indices.members)

    def __getitem__(self, index: int) -> Sample:
        if not 0 <= index < len(self):
            raise IndexError(f"sample {index} of a blend of {len(self)} samples, counted from 0.")
        return self.members[int(self.indices.members[index])][int(self.indices.samples[index])]


def build_part(
    data_path: DataPath,
    split: Split,
    part: str,
    size: int | None,
    config: GPTConfig,
    *,
    cache_dir: Path | None = None,
    rule: BlendRule = BlendRule.MEGATRON,
) -> GPTDataset | BlendedDataset | None:
    """The "train", "valid" or "test" data set that megatron-core builds from the same settings; None if split omits it.

    `size` is the number of samples asked for, None for one epoch. One corpus without a weight is a plain `GPTDataset`.
    With weights `rule` gives the length, which can exceed `size`; without weights it is the sum of the members, at most
    `size`. With `cache_dir` all indices are kept there. Raises `UserError` when weights come without a size.
    """
    which = SPLITS.index(part)
    if split.bounds[which] is None:
        return None
    if data_path.weights is not None and size is None:
        raise UserError(f"{KEY} has weights, so the {part} part needs a number of samples in sizes; it has none.")
    single = len(data_path.prefixes) == 1 and data_path.weights is None
    wanted: list[int | None] = [size if single else None] * len(data_path.prefixes)
    if data_path.weights is not None and size is not None:
        wanted = [*rule.members(data_path.weights, size)]
    members: list[GPTDataset] = []
    for prefix, count in zip(data_path.prefixes, wanted, strict=True):
        corpus = IndexedDataset(prefix)
        sequences = split.sequences(len(corpus))[which] or range(0)
        members.append(GPTDataset(corpus, sequences, config, num_samples=count, split=part, cache_dir=cache_dir))
    if single:
        return members[0]
    weights: Sequence[float] = data_path.weights or [len(member) for member in members]
    if data_path.weights is not None and size is not None:
        length = rule.length(data_path.weights, size)
    else:
        whole = sum(map(len, members))
        length = whole if size is None else min(size, whole)
    name = f"blend-index-{digest(tuple(weights), length)}"
    arrays = cached_arrays(cache_dir, name, lambda: vars(blend_by_weight(weights, length)))
    return BlendedDataset(members, BlendIndices(**arrays))
