"""One training run from the checked config to its files."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from rich.console import Console

from msmigrate.yaml.source import shown_path
from msrt.config.checked import Checked
from msrt.config.resolve import Resolved
from msrt.streams import result
from msrt.train.curve import read_curve
from msrt.train.events import events
from msrt.train.loop import DivergedError, train
from msrt.train.memory import explained_shortage
from msrt.train.metrics import FILE as METRICS
from msrt.train.metrics import StepMetrics
from msrt.train.plot import FILE as PLOT
from msrt.train.plot import plot_png
from msrt.train.progress import progress
from msrt.train.run_files import RunFiles
from msrt.train.run_json import run_json
from msrt.train.setup import set_up


@dataclass(slots=True)
class Outcome:
    """What a run came to: its first and last step, and the tokens and time of all steps but the first."""

    first: StepMetrics | None = None
    last: StepMetrics | None = None
    tokens: int = 0
    milliseconds: float = 0.0
    has_curve: bool = False
    """Whether any loss was finite."""

    def add(self, metrics: StepMetrics) -> None:
        """Count one more step. The first also warms up the machine, so its time does not count."""
        self.has_curve |= math.isfinite(metrics.loss)
        if self.first is None:
            self.first = metrics
        else:
            self.tokens += metrics.tokens
            self.milliseconds += metrics.step_time_ms
        self.last = metrics

    @property
    def steps(self) -> int:
        return self.last.step if self.last else 0

    def summary(self, chance: float | None, output: Path) -> str:
        """Four lines: steps, first and last loss beside `chance` = ln(vocab_size), throughput, where the files are."""
        assert self.first is not None
        assert self.last is not None
        speed = self.tokens / self.milliseconds * 1e3 if self.milliseconds else self.last.tokens_per_s
        beside = "" if chance is None else f" (ln(vocab_size) = {chance:.4f})"
        return (
            f"steps  {self.last.step}, {self.last.consumed_samples} samples\n"
            f"loss   {self.first.loss:.4f} -> {self.last.loss:.4f}{beside}\n"
            f"speed  {speed:,.0f} tokens/s\n"
            f"files  {shown_path(str(output))}"
        )


def run_training(
    checked: Checked, *, config_file: str, output: Path, console: Console, note: Callable[[str], None]
) -> None:
    """Train, print the summary, and leave metrics.jsonl, run.json, TensorBoard events and loss.png in `output`.

    Progress goes to `console`. Raises `UserError` for what cannot run or diverges, `UnreadableError` for files that
    cannot be written, and KeyboardInterrupt, with a sentence on how far the run came, when it is interrupted;
    metrics.jsonl then ends with the last step done.
    """
    outcome = Outcome()
    try:
        _train(checked, config_file, output, outcome, console, note)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(_interrupted(outcome.steps, checked.numbers.steps, output)) from None
    except DivergedError:
        _draw(outcome, output)
        raise
    vocab_size = checked.config.model.vocab_size
    try:
        result(outcome.summary(math.log(vocab_size) if vocab_size else None, output))
    finally:
        _draw(outcome, output)


def _train(
    checked: Checked, config_file: str, output: Path, outcome: Outcome, console: Console, note: Callable[[str], None]
) -> None:
    steps = checked.numbers.steps
    # What blows up is reported as a loss or norm that is not finite.
    with (
        explained_shortage(checked.numbers),
        np.errstate(all="ignore"),
        set_up(checked, output / "index-cache", note) as run,
        RunFiles(output, run_json(checked.config, checked.numbers, config_file)) as files,
        events(checked.config.monitor.tensorboard, output, note) as board,
    ):
        if (output / METRICS).exists():
            note(f"{shown_path(str(output))} holds an earlier run; its files are replaced when the first step is done.")
        note(_start_line(checked.numbers))
        with progress(steps, console) as show:

            def report(metrics: StepMetrics) -> None:
                files.write(metrics)
                board.write(metrics)
                outcome.add(metrics)
                show(metrics)

            train(run, report)


def _draw(outcome: Outcome, output: Path) -> None:
    if outcome.has_curve:
        plot_png([read_curve(output)], output / PLOT)


def _start_line(numbers: Resolved) -> str:
    return (
        f"Training {_steps(numbers.steps)} of {numbers.tokens_per_step:,} tokens: global_batch_size "
        f"{numbers.global_batch_size} = local_batch_size {numbers.local_batch_size} × data_parallel "
        f"{numbers.data_parallel} × accumulation {numbers.gradient_accumulation_steps}, seq_length "
        f"{numbers.seq_length}, {numbers.warmup_steps} warm-up steps."
    )


def _steps(count: int) -> str:
    return "1 step" if count == 1 else f"{count} steps"


def _interrupted(done: int, steps: int, output: Path) -> str:
    if done == 0:
        return "Interrupted before the first step was done."
    return f"Interrupted after step {done} of {steps}; files are in {shown_path(str(output))}."
