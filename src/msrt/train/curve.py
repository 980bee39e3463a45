"""A run's loss curve, read from its files, and smoothed."""

import math
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

from msmigrate.problems import UnreadableError
from msmigrate.yaml.source import shown_path
from msrt.train.metrics import read_metrics
from msrt.train.run_json import read_vocab_size


@dataclass(frozen=True, slots=True)
class LossCurve:
    """Steps and losses of a run; `chance` is ln(vocab_size), the loss of guessing evenly, None if unknown."""

    name: str
    steps: tuple[int, ...]
    losses: tuple[float, ...]
    chance: float | None


def read_curve(run: Path) -> LossCurve:
    """The curve of a run folder or of a metrics file. Steps whose loss is null or not finite are left out.

    Raises `UnreadableError` when there is nothing to read or a row has no step.
    """
    rows = read_metrics(run)
    points = [(row.get("step"), row["loss"]) for row in rows if not _missing(row.get("loss"))]
    steps = tuple(step for step, _ in points if isinstance(step, int))
    losses = tuple(float(loss) for _, loss in points if isinstance(loss, int | float))
    if not steps or not len(steps) == len(losses) == len(points):
        raise UnreadableError(
            f"{shown_path(str(run))} has no curve: of {len(rows)} rows, {len(steps)} have a step and a loss."
        )
    folder = run if run.is_dir() else run.parent
    vocab_size = read_vocab_size(folder)
    return LossCurve(folder.resolve().name, steps, losses, math.log(vocab_size) if vocab_size else None)


def _missing(loss: object) -> bool:
    return loss is None or (isinstance(loss, float) and not math.isfinite(loss))


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
