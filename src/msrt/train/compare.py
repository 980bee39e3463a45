"""Two runs held against each other, step by step."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from msmigrate.problems import UnreadableError
from msmigrate.yaml.source import shown_path
from msrt.config.problem import shown
from msrt.train.metrics import read_metrics

Row = Mapping[str, object]

JUDGED = ("loss", "grad_norm", "lr")
COUNTS = "tokens_per_expert"
"""Shown, not judged: experts are chosen, and a token that stands between two may go to either in equal runs."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One value at one step, in both runs; None is a number that was not finite.

    `relative` is |left − right| / max(|left|, |right|), and infinite when one of the two is not finite. For counts it
    is the share of choices that differ, 0 to 1, and infinite for layers or experts of another number.
    """

    step: int
    left: object
    right: object
    relative: float


@dataclass(frozen=True, slots=True)
class Compared:
    """All differences of one value over the steps that both runs have; at least one."""

    name: str
    differences: tuple[Difference, ...]

    @property
    def judged(self) -> bool:
        return self.name in JUDGED

    @property
    def largest(self) -> Difference:
        """The first of the largest ones."""
        return max(self.differences, key=lambda difference: difference.relative)

    @property
    def final(self) -> Difference:
        return self.differences[-1]

    def first_over(self, tolerance: float) -> Difference | None:
        """The first step that differs by more than `tolerance`."""
        return next((one for one in self.differences if one.relative > tolerance), None)

    def worst(self, count: int) -> list[Difference]:
        """At most `count` steps that differ at all, the largest differences first."""
        differing = [difference for difference in self.differences if difference.relative > 0]
        return sorted(differing, key=lambda difference: -difference.relative)[:count]


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two runs, the steps that both or only one of them has, and what their values came to."""

    left: Path
    right: Path
    tolerance: float
    steps: tuple[int, ...]
    only_left: tuple[int, ...]
    only_right: tuple[int, ...]
    values: tuple[Compared, ...]
    common_only: bool = False
    """Whether a step that only one of the two has is no difference."""

    @property
    def same(self) -> bool:
        """Whether both have the same steps, any loss is finite, and every judged value is within the tolerance."""
        return not (self.lacks_steps or self.is_dead or self.differs)

    @property
    def lacks_steps(self) -> bool:
        """Whether one of the two lacks a step, where that counts."""
        return not self.common_only and bool(self.only_left or self.only_right)

    @property
    def is_dead(self) -> bool:
        """Whether no loss of either run is finite: equal ones would prove nothing."""
        return all(one.left is None and one.right is None for one in self.values[0].differences)

    @property
    def differs(self) -> bool:
        """Whether a judged value of a common step is over the tolerance."""
        return any(value.judged and value.first_over(self.tolerance) for value in self.values)


def compare_runs(
    left: Path, right: Path, tolerance: float, note: Callable[[str], None], *, common_only: bool = False
) -> Comparison:
    """Two run folders, or metrics files, compared over the steps that both have.

    A step that only one has makes them different, unless `common_only`. `note` is told of what a crash has damaged.
    Raises `UnreadableError` for a file that cannot be read, that has no step, or whose values are not what a run
    writes, and when the two have no step with a loss in common.
    """
    first, second = _by_step(left, note), _by_step(right, note)
    steps = tuple(sorted(first.keys() & second.keys()))
    values = [_compared(name, steps, first, second, _relative) for name in JUDGED]
    values.append(_compared(COUNTS, steps, first, second, _share_moved))
    if not values[0].differences:
        raise UnreadableError(
            f"{shown_path(str(left))} (steps {ranges(sorted(first))}) and {shown_path(str(right))} (steps "
            f"{ranges(sorted(second))}) have no step with a loss in common."
        )
    return Comparison(
        left=left,
        right=right,
        tolerance=tolerance,
        steps=steps,
        only_left=tuple(sorted(first.keys() - second.keys())),
        only_right=tuple(sorted(second.keys() - first.keys())),
        values=tuple(value for value in values if value.differences),
        common_only=common_only,
    )


def ranges(steps: list[int]) -> str:
    """Increasing numbers as `1-60, 62`."""
    parts: list[list[int]] = []
    for step in steps:
        if parts and parts[-1][-1] == step - 1:
            parts[-1][1:] = [step]
        else:
            parts.append([step])
    return ", ".join("-".join(map(str, part)) for part in parts)


def _by_step(run: Path, note: Callable[[str], None]) -> dict[int, Row]:
    rows: dict[int, Row] = {}
    for row in read_metrics(run, note):
        step = row.get("step")
        if not isinstance(step, int) or isinstance(step, bool):
            raise UnreadableError(f"{shown_path(str(run))}: a row's step is {shown(step)}; expected a whole number.")
        for name in JUDGED:
            if not _numeric(row.get(name)):
                found = shown(row[name])
                raise UnreadableError(
                    f"{shown_path(str(run))}: {name} of step {step} is {found}; expected a number or null."
                )
        if step in rows:
            note(f"{shown_path(str(run))} has step {step} twice; the later one counts.")
        rows[step] = row
    if not rows:
        raise UnreadableError(f"{shown_path(str(run))} has no step.")
    return rows


def _numeric(value: object) -> bool:
    """Whether it is null or a number that fits into a float."""
    if isinstance(value, int):
        return not isinstance(value, bool) and abs(value) < 2**1023
    return value is None or isinstance(value, float)


def _compared(
    name: str,
    steps: tuple[int, ...],
    first: Mapping[int, Row],
    second: Mapping[int, Row],
    measure: Callable[[object, object], float],
) -> Compared:
    both = [(step, first[step], second[step]) for step in steps]
    pairs = [(step, _finite(one[name]), _finite(two[name])) for step, one, two in both if name in one and name in two]
    return Compared(name, tuple(Difference(step, one, two, measure(one, two)) for step, one, two in pairs))


def _finite(value: object) -> object:
    """None, as metrics.jsonl has it, also for the NaN and Infinity that other writers of JSON use."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _relative(left: object, right: object) -> float:
    if left == right:
        return 0.0
    if not isinstance(left, int | float) or not isinstance(right, int | float):
        return math.inf
    difference, scale = abs(left - right), max(abs(left), abs(right))
    return difference / scale if math.isfinite(difference) else abs(left / scale - right / scale)


def _share_moved(left: object, right: object) -> float:
    if left == right:
        return 0.0
    try:
        one, two = _flat(left), _flat(right)
        moved = sum(abs(a - b) for a, b in zip(one, two, strict=True))
    except (TypeError, ValueError, OverflowError):  # not lists of counts, not as many, or NaN and Infinity as counts
        return math.inf
    return moved / max(sum(one) + sum(two), 1)


def _flat(layers: object) -> list[int]:
    if not isinstance(layers, list):
        raise TypeError
    return [int(count) for layer in layers for count in layer]
