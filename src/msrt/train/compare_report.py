"""A comparison of two runs as text for people and as JSON for programs."""

import json
import math
from collections.abc import Iterator, Sequence

from msmigrate.yaml.source import shown_path
from msrt.train.compare import Compared, Comparison, Difference, ranges

WORST = 5


def comparison_json(found: Comparison) -> str:
    """Everything as one JSON object.

    `version` (1), `left`, `right`, `tolerance`, `same`, `any_finite` (whether a loss is a number), `common_steps` (how
    many), `only_left`, `only_right` (lists of steps, which make `same` false unless `common_only`), `values`: per
    name `judged`, `steps`, `first_over` (a step, or null), and `largest` and `final`, which are differences like those
    of `differences`: `step`, `left`, `right`, `relative`. A number that is not finite is null, and so is a `relative`
    where one of the two is.
    """
    content = {
        "version": 1,
        "left": shown_path(str(found.left)),
        "right": shown_path(str(found.right)),
        "tolerance": found.tolerance,
        "same": found.same,
        "any_finite": not found.is_dead,
        "common_only": found.common_only,
        "common_steps": len(found.steps),
        "only_left": found.only_left,
        "only_right": found.only_right,
        "values": {value.name: _value_json(value, found.tolerance) for value in found.values},
    }
    return json.dumps(content, ensure_ascii=False, allow_nan=False)


def _value_json(value: Compared, tolerance: float) -> dict[str, object]:
    first = value.first_over(tolerance)
    return {
        "judged": value.judged,
        "steps": len(value.differences),
        "first_over": None if first is None else first.step,
        "largest": _difference_json(value.largest),
        "final": _difference_json(value.final),
        "differences": [_difference_json(difference) for difference in value.differences],
    }


def _difference_json(one: Difference) -> dict[str, object]:
    relative = one.relative if math.isfinite(one.relative) else None
    return {"step": one.step, "left": one.left, "right": one.right, "relative": relative}


def comparison_text(found: Comparison) -> str:
    """What was compared, a row per value, the steps with the largest differences in loss, and the verdict."""
    blocks = [_runs(found), _table(_summary(found))]
    worst = found.values[0].worst(WORST)
    if worst:
        head = ("step", "left loss", "right loss", "difference")
        rows = [(str(one.step), _number(one.left), _number(one.right), _relative(one.relative)) for one in worst]
        blocks.append(_table([head, *rows]))
    return "\n\n".join([*blocks, _verdict(found)])


def _runs(found: Comparison) -> str:
    lines = [f"left   {shown_path(str(found.left))}", f"right  {shown_path(str(found.right))}"]
    for side, steps in (("left", found.only_left), ("right", found.only_right)):
        if steps:
            lines.append(f"only {side} has {_count(len(steps))}: {ranges(list(steps))}")
    return "\n".join(lines)


def _summary(found: Comparison) -> Iterator[Sequence[str]]:
    yield "", "steps", "largest", "at step", "final", f"first over {found.tolerance:g}"
    for value in found.values:
        first = value.first_over(found.tolerance)
        yield (
            value.name,
            str(len(value.differences)),
            _relative(value.largest.relative),
            str(value.largest.step) if value.largest.relative else "-",
            _relative(value.final.relative),
            ("-" if first is None else f"step {first.step}") + ("" if value.judged else " (not judged)"),
        )


def _table(rows: Iterator[Sequence[str]] | Sequence[Sequence[str]]) -> str:
    """The first column to the left, the others to the right, two blanks between."""
    table = list(rows)
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    lines = []
    for first, *rest in table:
        cells = [cell.rjust(width) for cell, width in zip(rest, widths[1:], strict=True)]
        lines.append("  ".join([first.ljust(widths[0]), *cells]).rstrip())
    return "\n".join(lines)


def _verdict(found: Comparison) -> str:
    within = f"within {found.tolerance:g}" if found.tolerance else "to the last bit"
    if not found.same:
        return f"Not the same {within}: {'; '.join(_reasons(found))}."
    names = ", ".join(value.name for value in found.values if value.judged)
    return f"Same {within} over {_count(len(found.steps))}: {names}."


def _reasons(found: Comparison) -> Iterator[str]:
    if found.is_dead:
        yield "no loss of either run is finite, and two dead runs are not proof"
    if found.lacks_steps:
        lacking = len(found.only_left) + len(found.only_right)
        yield f"{_count(lacking)} in one run only (--common-steps compares the {len(found.steps)} that both have)"
    if found.differs:
        yield _difference(found)


def _difference(found: Comparison) -> str:
    judged = [value for value in found.values if value.judged]
    over = [(first.step, value.name) for value in judged if (first := value.first_over(found.tolerance))]
    step, name = min(over, key=lambda place: place[0])
    worst = max(judged, key=lambda value: value.largest.relative)
    largest = worst.largest
    how = f"{largest.relative:.3g}" if math.isfinite(largest.relative) else "a number against one that is not finite"
    return (
        f"{name} first differs at step {step}; the largest difference is {how}, of {worst.name} at step {largest.step}"
    )


def _count(steps: int) -> str:
    return "1 step" if steps == 1 else f"{steps} steps"


def _relative(value: float) -> str:
    return f"{value:.2e}" if value else "0"


def _number(value: object) -> str:
    return "not finite" if value is None else f"{value:.9g}"
