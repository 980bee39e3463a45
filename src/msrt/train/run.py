"""One training run from the checked config to its files."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from msmigrate.problems import UnreadableError
from msmigrate.pynative import Config
from msrt.config.resolve import Resolved
from msrt.train.curve import read_curve
from msrt.train.loop import train
from msrt.train.metrics import FILE as METRICS
from msrt.train.metrics import MetricsFile, StepMetrics
from msrt.train.plot import FILE as PLOT
from msrt.train.plot import plot_png
from msrt.train.progress import progress
from msrt.train.run_json import write_run_json
from msrt.train.setup import set_up


@dataclass(slots=True)
class Outcome:
    """What a run came to: its first and last step, and the tokens and time of all steps but the first."""

    first: StepMetrics | None = None
    last: StepMetrics | None = None
    tokens: int = 0
    milliseconds: float = 0.0

    def add(self, metrics: StepMetrics) -> None:
        """Count one more step. The first also warms up the machine, so its time does not count."""
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
            f"files  {output}"
        )


def run_training(
    config: Config, numbers: Resolved, *, config_file: str, output: Path, console: Console, note: Callable[[str], None]
) -> str:
    """The summary of a finished run that left metrics.jsonl, run.json and loss.png in `output`.

    Progress goes to `console`. Raises `UserError` for what cannot run or diverges, and KeyboardInterrupt, with a
    sentence on how far the run came, when it is interrupted; metrics.jsonl then ends with the last step done.
    """
    outcome = Outcome()
    try:
        _train(config, numbers, config_file, output, outcome, console, note)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(_interrupted(outcome.steps, numbers.steps, output)) from None
    curve = read_curve(output)
    plot_png([curve], output / PLOT)
    return outcome.summary(curve.chance, output)


def _train(
    config: Config,
    numbers: Resolved,
    config_file: str,
    output: Path,
    outcome: Outcome,
    console: Console,
    note: Callable[[str], None],
) -> None:
    with set_up(config, numbers, output / "index-cache", note) as run:
        _make_folder(output)
        if (output / METRICS).exists():
            note(f"{output} holds an earlier run; its files are replaced.")
            (output / PLOT).unlink(missing_ok=True)
        write_run_json(output, config, numbers, config_file)
        note(_start_line(numbers))
        with MetricsFile(output) as file, progress(numbers.steps, console) as show:

            def report(metrics: StepMetrics) -> None:
                file.write(metrics)
                outcome.add(metrics)
                show(metrics)

            train(run, report)


def _start_line(numbers: Resolved) -> str:
    return (
        f"Training {numbers.steps} steps of {numbers.tokens_per_step:,} tokens: global_batch_size "
        f"{numbers.global_batch_size} = local_batch_size {numbers.local_batch_size} × data_parallel "
        f"{numbers.data_parallel} × accumulation {numbers.gradient_accumulation_steps}, seq_length "
        f"{numbers.seq_length}, {numbers.warmup_steps} warm-up steps."
    )


def _interrupted(done: int, steps: int, output: Path) -> str:
    if done == 0:
        return "Interrupted before the first step was done."
    return f"Interrupted after step {done} of {steps}; files are in {output}."


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UnreadableError(f"The output folder {folder} cannot be made: {error.strerror}.") from error
