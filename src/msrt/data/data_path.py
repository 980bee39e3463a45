"""The `data_path` setting: corpus prefixes, with or without weights."""

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from msmigrate.problems import UserError

KEY = "train_dataset.dataloader.config.data_path"


@dataclass(frozen=True)
class DataPath:
    """The corpora of a run: `prefixes`, and one weight each (normalised to sum 1), or `weights` None if none was given.

    Without weights a single corpus is read as it is and several are concatenated in proportion to their sizes.
    """

    prefixes: tuple[str, ...]
    weights: tuple[float, ...] | None


def parse_data_path(value: object) -> DataPath:
    """The corpora that `data_path` names: one prefix, a list of prefixes, or a list of alternating weight and prefix.

    A weight may be a number or a string holding one; blanks around a path do not count, as in Megatron. Raises one
    `UserError` that lists every fault: a weight without a path, a path without a weight, a weight that is not a finite
    number above 0, a path that ends in .bin or .idx.
    """
    entries = [value] if isinstance(value, str | os.PathLike) else value
    if not isinstance(entries, list | tuple) or not entries:
        found = "is missing" if value is None else f"is {list(value) if isinstance(value, tuple) else value!r}"
        raise UserError(
            f"{KEY} {found}; it must be a corpus prefix or a list of alternating weight and prefix, such as "
            '["1", "./data/corpus"].'
        )
    weighted = any(_weight(entry) is not None for entry in entries)
    faults = _pair_faults(entries) if weighted else _path_faults(entries)
    if faults:
        raise UserError(f"{KEY} {list(entries)!r} cannot be used: " + " ".join(faults))
    if not weighted:
        return DataPath(tuple(os.fspath(entry).strip() for entry in entries), None)
    weights = [_weight(entry) or 0.0 for entry in entries[0::2]]
    return DataPath(tuple(os.fspath(entry).strip() for entry in entries[1::2]), normalise(weights))


def normalise(weights: Sequence[float]) -> tuple[float, ...]:
    """The weights divided by their sum."""
    # numpy adds eight and more numbers in another order than a loop; megatron-core uses numpy, and the last bit counts.
    total = float(np.sum(np.asarray(weights, np.float64)))
    return tuple(weight / total for weight in weights)


def _weight(entry: object) -> float | None:
    if isinstance(entry, bool) or not isinstance(entry, str | int | float):
        return None
    try:
        return float(entry)
    except ValueError:
        return None


def _pair_faults(entries: list[object] | tuple[object, ...]) -> list[str]:
    faults: list[str] = []
    open_weight: object = None  # the weight whose path has not come yet
    for position, entry in enumerate(entries):
        weight = _weight(entry)
        if weight is None:
            if open_weight is None:
                faults.append(f"Entry {position}, path {entry!r}, has no weight before it.")
            faults.extend(_path_faults([entry], position))
            open_weight = None
            continue
        if open_weight is not None:
            faults.append(f"Weight {open_weight} (entry {position - 1}) has no path behind it.")
        if not 0 < weight < math.inf:
            faults.append(f"Weight {entry} (entry {position}) must be a finite number above 0.")
        open_weight = entry
    if open_weight is not None:
        faults.append(f"Weight {open_weight} (entry {len(entries) - 1}) has no path behind it.")
    return faults


def _path_faults(entries: list[object] | tuple[object, ...], first: int = 0) -> list[str]:
    faults: list[str] = []
    for position, entry in enumerate(entries, first):
        if not isinstance(entry, str | os.PathLike) or not os.fspath(entry).strip():
            faults.append(f"Entry {position} is {entry!r}; expected a weight or the path of a corpus.")
        elif os.fspath(entry).strip().endswith((".bin", ".idx")):
            suffix = os.fspath(entry).strip()[-4:]
            faults.append(f"Entry {position}, {os.fspath(entry)}, must be a prefix: drop {suffix}.")
    return faults
