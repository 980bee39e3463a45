"""A loss curve in plain characters, for terminals, logs and pipes."""

from itertools import pairwise

from msrt.train.curve import LossCurve

WIDTH, HEIGHT = 72, 16
POINT, REFERENCE = "*", "-"


def plot_text(curve: LossCurve, width: int = WIDTH, height: int = HEIGHT) -> str:
    """`height` rows of `width` columns with the curve's loss, a scale to the left and the steps below.

    Each column shows the mean of the steps that fall into it. A row of dashes marks ln(vocab_size) when it is known.
    """
    columns = _column_means(curve, min(width, len(curve.losses)))
    low, high = _range(columns, curve.chance)
    grid = [[" "] * len(columns) for _ in range(height)]
    if curve.chance is not None:
        grid[_row(curve.chance, low, high, height)] = [REFERENCE] * len(columns)
    for column, loss in enumerate(columns):
        grid[_row(loss, low, high, height)][column] = POINT
    labels = [f"{high - (high - low) * row / (height - 1):8.3f}" for row in range(height)]
    rows = [f"{label} |{''.join(cells)}".rstrip() for label, cells in zip(labels, grid, strict=True)]
    first, last = str(curve.steps[0]), str(curve.steps[-1])
    axis = f"{'step':>8}  {first}{last.rjust(max(len(columns) - len(first), len(last) + 1))}"
    title = f"{curve.name}: loss {curve.losses[0]:.4f} -> {curve.losses[-1]:.4f}"
    chance = [] if curve.chance is None else [f"{REFERENCE * 3} ln(vocab_size) = {curve.chance:.3f}"]
    return "\n".join([title, *rows, axis, *chance])


def _column_means(curve: LossCurve, columns: int) -> list[float]:
    total = len(curve.losses)
    edges = [total * column // columns for column in range(columns + 1)]
    return [sum(curve.losses[a:b]) / (b - a) for a, b in pairwise(edges)]


def _range(values: list[float], chance: float | None) -> tuple[float, float]:
    low, high = min(values), max(values)
    if chance is not None:
        low, high = min(low, chance), max(high, chance)
    return (low, high) if high > low else (low - 0.5, high + 0.5)


def _row(value: float, low: float, high: float, height: int) -> int:
    return round((high - value) / (high - low) * (height - 1))
