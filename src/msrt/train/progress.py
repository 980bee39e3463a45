"""How a run shows that it is alive: a progress bar on a terminal, plain lines elsewhere; always on standard error."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

from msrt.train.metrics import StepMetrics

SECONDS_BETWEEN_LINES = 2.0


class Reporter(Protocol):
    """Takes each step's metrics as soon as the step is done."""

    def __call__(self, metrics: StepMetrics) -> None: ...


@contextmanager
def progress(steps: int, console: Console) -> Iterator[Reporter]:
    """A reporter for a run of `steps` steps that writes to `console`, cleaned up at the end of the block."""
    if not console.is_terminal:
        yield PlainLines(steps, console)
        return
    columns = (TextColumn("step {task.completed}/{task.total}"), BarColumn(), TextColumn("{task.fields[numbers]}"))
    with Progress(*columns, console=console) as bar:
        task = bar.add_task("train", total=steps, numbers="")
        pace = Pace(steps)
        yield lambda metrics: bar.update(task, completed=metrics.step, numbers=pace.describe(metrics))


class Pace:
    """The time left, from the steps seen; the first one is left out because it also warms up the machine."""

    def __init__(self, steps: int) -> None:
        self.steps, self._first_step, self._first_time = steps, 0, 0.0

    def describe(self, metrics: StepMetrics) -> str:
        """`loss …  lr …  grad norm …  … tokens/s  ETA m:ss`; the ETA appears with the second step."""
        parts = [
            f"loss {metrics.loss:.4f}",
            f"lr {metrics.lr:.3e}",
            f"grad norm {metrics.grad_norm:.3f}",
            f"{metrics.tokens_per_s:,.0f} tokens/s",
        ]
        left = self._seconds_left(metrics.step, time.monotonic())
        if left is not None:
            parts.append(f"ETA {duration(left)}")
        return "  ".join(parts)

    def _seconds_left(self, step: int, now: float) -> float | None:
        if not self._first_step:
            self._first_step, self._first_time = step, now
            return None
        return (self.steps - step) * (now - self._first_time) / (step - self._first_step)


class PlainLines:
    """One line for the first and the last step, and one every `SECONDS_BETWEEN_LINES` between them."""

    def __init__(self, steps: int, console: Console) -> None:
        self._pace, self._console, self._last = Pace(steps), console, float("-inf")

    def __call__(self, metrics: StepMetrics) -> None:
        text, now = self._pace.describe(metrics), time.monotonic()
        if now - self._last < SECONDS_BETWEEN_LINES and metrics.step < self._pace.steps:
            return
        self._last = now
        line = f"step {metrics.step}/{self._pace.steps}  {text}"
        self._console.print(line, highlight=False, markup=False, soft_wrap=True)


def duration(seconds: float) -> str:
    """`m:ss`, or `h:mm:ss` from one hour on."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
