"""loss.png: the loss of one or several runs, and below it their gradient norms and learning rates."""

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from msmigrate.yaml.source import write_whole
from msrt.train.curve import BELOW, LossCurve, Series, smoothed
from msrt.train.fonts import drawable, families

FILE = "loss.png"

FEW_STEPS = 50
"""Up to here each step is a dot; more would run together."""

LOG_FROM = 100
"""Largest over smallest gradient norm from which its axis is logarithmic."""

STYLES = ("-", "--", ":", "-.")
"""Of the lines, ten colours each."""


def plot_png(curves: Sequence[LossCurve], target: Path) -> None:
    """Write a PNG: per run the raw loss (faint) and a smoothed one, and a dashed line at ln(vocab_size).

    A panel below shows gradient norms in the same way, another one learning rates, where a run has them. Raises
    `UnreadableError` when `target` cannot be written.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    below = [name for name in BELOW if any(name in curve.below for curve in curves)]
    figure = Figure(figsize=(8, 4.5 + 1.5 * len(below)), dpi=150, layout="constrained")
    FigureCanvasAgg(figure)  # draws without a display
    heights = [3, *[1] * len(below)]
    panels = figure.subplots(1 + len(below), sharex=True, squeeze=False, height_ratios=heights)[:, 0]
    lines = [
        _draw(panels[0], Series(curve.steps, curve.losses), number, raw=True) for number, curve in enumerate(curves)
    ]
    for panel, name in zip(panels[1:], below, strict=True):
        for number, curve in enumerate(curves):
            if name in curve.below:
                _draw(panel, curve.below[name], number, raw=name != "lr")
        panel.set_ylabel(BELOW[name])
        if name == "grad_norm":
            _scale(panel, [value for curve in curves if name in curve.below for value in curve.below[name].values])
    _mark_chance(panels[0], curves)
    panels[0].set_ylabel("loss (nats per token)")
    panels[-1].set_xlabel("step")
    for panel in panels:
        panel.grid(alpha=0.25)
        panel.spines[["top", "right"]].set_visible(False)
    _legend(panels[0], lines, curves)
    image = io.BytesIO()
    figure.savefig(image, format="png")
    write_whole(str(target), image.getvalue())


def _draw(panel: Any, series: Series, number: int, *, raw: bool) -> Any:
    """The smoothed line of run `number`, over the faint `raw` one; a value without noise is one line as it is."""
    color, style = f"C{number % 10}", STYLES[number // 10 % len(STYLES)]
    marker = "." if len(series.steps) < FEW_STEPS else ""
    if raw:
        panel.plot(series.steps, series.values, color=color, alpha=0.3, linewidth=1, marker=marker)
    values = smoothed(series.values) if raw else series.values
    return panel.plot(series.steps, values, color=color, linestyle=style, linewidth=2)[0]


def _scale(panel: Any, values: Sequence[float]) -> None:
    smallest = min(values)
    if smallest > 0 and max(values) >= LOG_FROM * smallest:
        panel.set_yscale("log")


def _mark_chance(panel: Any, curves: Sequence[LossCurve]) -> None:
    for chance in sorted({curve.chance for curve in curves if curve.chance is not None}):
        panel.axhline(chance, color="0.5", linestyle="--", linewidth=1)
        panel.annotate(
            f"ln(vocab_size) = {chance:.2f}", (1, chance), xycoords=("axes fraction", "data"), xytext=(-4, 3),
            textcoords="offset points", ha="right", color="0.4", fontsize=9,
        )  # fmt: skip


def _legend(panel: Any, lines: Sequence[Any], curves: Sequence[LossCurve]) -> None:
    legend = panel.legend(lines, [str(number) for number in range(len(lines))], frameon=False)
    for text, curve in zip(legend.get_texts(), curves, strict=True):
        # Set here because a label that starts with _ has no place in a legend, and $ would start a formula.
        text.set(text=drawable(curve.name), parse_math=False, family=families())
