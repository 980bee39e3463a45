"""loss.png: the loss of one or several runs."""

import io
from collections.abc import Sequence
from pathlib import Path

from msmigrate.yaml.source import write_whole
from msrt.train.curve import LossCurve, smoothed
from msrt.train.fonts import drawable, families

FILE = "loss.png"


def plot_png(curves: Sequence[LossCurve], target: Path) -> None:
    """Write a PNG: per run the raw loss (faint) and a smoothed one, and a dashed line at ln(vocab_size).

    Raises `UnreadableError` when `target` cannot be written.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 4.5), dpi=150, layout="constrained")
    FigureCanvasAgg(figure)  # draws without a display
    axes = figure.add_subplot()
    lines = []
    for number, curve in enumerate(curves):
        color = f"C{number % 10}"
        axes.plot(curve.steps, curve.losses, color=color, alpha=0.3, linewidth=1, marker=_marker(curve))
        lines += axes.plot(curve.steps, smoothed(curve.losses), color=color, linewidth=2)
    for chance in sorted({curve.chance for curve in curves if curve.chance is not None}):
        axes.axhline(chance, color="0.5", linestyle="--", linewidth=1)
        axes.annotate(
            f"ln(vocab_size) = {chance:.2f}", (1, chance), xycoords=("axes fraction", "data"), xytext=(-4, 3),
            textcoords="offset points", ha="right", color="0.4", fontsize=9,
        )  # fmt: skip
    axes.set(xlabel="step", ylabel="loss (nats per token)")
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    legend = axes.legend(lines, [str(number) for number in range(len(lines))], frameon=False)
    for text, curve in zip(legend.get_texts(), curves, strict=True):
        # Set here because a label that starts with _ has no place in a legend, and $ would start a formula.
        text.set(text=drawable(curve.name), parse_math=False, family=families())
    image = io.BytesIO()
    figure.savefig(image, format="png")
    write_whole(str(target), image.getvalue())


def _marker(curve: LossCurve) -> str:
    return "." if len(curve.steps) < 50 else ""
