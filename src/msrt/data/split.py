"""The `split` setting: which part of a corpus is for training, validation and test."""

import re
from dataclasses import dataclass
from itertools import pairwise

from msmigrate.problems import UserError

KEY = "train_dataset.dataloader.config.split"

SPLITS = ("train", "valid", "test")
"""The order of the numbers in `split` and in `sizes`."""

_NUMBER = re.compile(r"[0-9]+(\.[0-9]*)?|\.[0-9]+")
"""No exponent: megatron-core would read "1e-3" as the two numbers 1 and 3."""


@dataclass(frozen=True)
class Split:
    """Where each part begins and ends, as fractions of the corpus: `bounds[i]` is (begin, end), None if it is empty."""

    bounds: tuple[tuple[float, float] | None, tuple[float, float] | None, tuple[float, float] | None]

    def sequences(self, count: int) -> tuple[range | None, range | None, range | None]:
        """The sequence numbers of each part out of `count` in the corpus, None for a part that the split leaves out.

        megatron-core splits by sequences, not documents; the two are the same unless a document has several. Both
        ends are rounded half to even (BlendedMegatronDatasetBuilder), so neighbouring parts never overlap; a part that
        is asked for can still come out as an empty range in a small corpus.
        """
        train, valid, test = (_scaled(bound, count) for bound in self.bounds)
        return train, valid, test


def _scaled(bound: tuple[float, float] | None, count: int) -> range | None:
    if bound is None:
        return None
    return range(round(bound[0] * float(count)), round(bound[1] * float(count)))


def parse_split(text: object) -> Split:
    """The parts that a split string such as "1, 0, 0", "98,2" or "99.5,0.5,0" asks for.

    One to three non-negative numbers separated by commas, in the order train, validation, test; missing ones are 0
    and the sum need not be 1 or 100. Raises `UserError` naming the string for anything else: a sign, an exponent,
    letters, an empty entry, four numbers, or all zeros.
    """
    if text is None:
        raise UserError(f'{KEY} is missing; write "1, 0, 0" to train on the whole corpus.')
    if not isinstance(text, str):
        shown = list(text) if isinstance(text, tuple) else text
        raise UserError(f'{KEY} is {shown!r}; it must be a string of numbers such as "1, 0, 0", in quotes.')
    weights = _weights(text)
    total = 0.0
    for weight in weights:
        total += weight
    if not 0 < total < float("inf"):
        raise UserError(f'{KEY} "{text}" gives no part of the data to anything: at least one number must be above 0.')
    edges = [0.0]
    for weight in weights:
        # Added one by one: megatron-core accumulates too, and the last bits decide where a sequence falls.
        edges.append(edges[-1] + weight / total)
    train, valid, test = ((a, b) if a < b else None for a, b in pairwise(edges))
    return Split((train, valid, test))


def _weights(text: str) -> list[float]:
    parts = [part.strip() for part in text.split(",")]
    bad = [part for part in parts if not _NUMBER.fullmatch(part)]
    if bad:
        shown = ", ".join(f'"{part}"' for part in bad)
        raise UserError(
            f'{KEY} "{text}" cannot be read: {shown} is not a plain number of 0 or more. Expected numbers separated by '
            'commas for train, validation and test, such as "1, 0, 0".'
        )
    if len(parts) > len(SPLITS):
        raise UserError(f'{KEY} "{text}" has {len(parts)} numbers; there are 3 parts: train, validation and test.')
    return [float(part) for part in parts] + [0.0] * (len(SPLITS) - len(parts))
