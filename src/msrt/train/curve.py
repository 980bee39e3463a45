"""A run's curves, read from its files, and smoothed."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path

from msmigrate.problems import UnreadableError
from msmigrate.yaml.source import shown_path
from msrt.train.metrics import read_metrics
from msrt.train.run_json import read_vocab_size

BELOW = {"grad_norm": "gradient norm", "lr": "learning rate"}
"""Other values of a step that are drawn, with what they are called."""


@dataclass(frozen=True, slots=True)
class Series:
    """The finite values of one kind, and their steps."""

    steps: tuple[int, ...]
    values: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class LossCurve:
    """Steps and losses of a run; `chance` is ln(vocab_size), the loss of guessing evenly, None if unknown.

    `below` has those of `BELOW` that the run has.
    """

    name: str
    steps: tuple[int, ...]
    losses: tuple[float, ...]
    chance: float | None
    below: Mapping[str, Series] = field(default_factory=dict)


def read_curve(run: Path, note: Callable[[str], None] | None = None) -> LossCurve:
    """The curve of a run folder or of a metrics file. Steps whose loss is null or not finite are left out.

    `note` is told of what a crash has damaged. Raises `UnreadableError` when there is nothing to read or a row has no
    step.
    """
    rows = read_metrics(run, note)
    loss = _series(rows, "loss")
    if loss is None or not loss.steps:
        found = 0 if loss is None else len(loss.steps)
        raise UnreadableError(
            f"{shown_path(str(run))} has no curve: of {len(rows)} rows, {found} have a step and a loss."
        )
    folder = run if run.is_dir() else run.parent
    vocab_size = read_vocab_size(folder)
    others = {name: series for name in BELOW if (series := _series(rows, name)) is not None and series.steps}
    chance = math.log(vocab_size) if vocab_size else None
    return LossCurve(folder.resolve().name, loss.steps, loss.values, chance, others)


def _series(rows: Sequence[Mapping[str, object]], name: str) -> Series | None:
    """None when a row has no step, or something else than a number or null."""
    points = [(row.get("step"), row[name]) for row in rows if not _missing(row.get(name))]
    steps = tuple(step for step, _ in points if isinstance(step, int))
    values = tuple(float(value) for _, value in points if isinstance(value, int | float))
    return Series(steps, values) if len(steps) == len(values) == len(points) else None


def _missing(value: object) -> bool:
    return value is None or (isinstance(value, float) and not math.isfinite(value))


def named_apart(paths: Sequence[Path]) -> list[str]:
    """For each run the shortest end of its path that no other has: folders are often called the same."""
    parts = [(path if path.is_dir() else path.parent).resolve().parts for path in paths]
    names = []
    for own in parts:
        others = [other for other in parts if other != own]
        lengths = range(1, len(own) + 1)
        length = next((n for n in lengths if all(own[-n:] != other[-n:] for other in others)), len(own))
        names.append("/".join(own[-length:]))
    return names


def smoothed(values: tuple[float, ...]) -> tuple[float, ...]:
    """A centred moving average over about a thirtieth of the run; the ends, where it has no room, keep their values.

    Being centred it does not lag behind a falling loss, as an exponential average would.
    """
    sums = (0.0, *accumulate(values))
    count, reach = len(values), len(values) // 60
    result = []
    for place in range(count):
        radius = min(reach, place, count - 1 - place)
        first, stop = place - radius, place + radius + 1
        result.append((sums[stop] - sums[first]) / (stop - first))
    return tuple(result)
