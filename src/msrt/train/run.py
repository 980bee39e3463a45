"""One training run from the checked config to its files."""

import math
import signal
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
from msrt.train.folder import INDEX_CACHE
from msrt.train.loop import DivergedError, train
from msrt.train.memory import explained_shortage
from msrt.train.metrics import FILE as METRICS
from msrt.train.metrics import StepMetrics
from msrt.train.plot import FILE as PLOT
from msrt.train.plot import plot_png
from msrt.train.progress import progress
from msrt.train.resume import Start, find_start
from msrt.train.run_files import RunFiles
from msrt.train.run_json import Resumed, new_run_id, read_run_id, run_json
from msrt.train.saving import Saver, save_root, saving
from msrt.train.setup import set_up
from msrt.train.stopping import Stop, StoppedError, stop_asked


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
    checked: Checked,
    *,
    config_file: str,
    output: Path,
    console: Console,
    note: Callable[[str], None],
    resume: str | None = None,
) -> None:
    """Train, print the summary, and leave metrics.jsonl, run.json, TensorBoard events and loss.png in `output`, and
    checkpoints where the config says. `resume` is --resume's value.

    Progress goes to `console`. Raises `UserError` for what cannot run or diverges, `UnreadableError` for files that
    cannot be written, and StoppedError, with a sentence on how far the run came, when it is interrupted;
    metrics.jsonl then ends with the last step done.
    """
    outcome = Outcome()
    root = save_root(checked.config.checkpoint, output)
    start = find_start(checked, resume, root, note)
    done = 0 if start is None else start.steps_done(checked.numbers)
    if done >= checked.numbers.steps:
        assert start is not None
        result(
            f"Nothing to do: the checkpoint {shown_path(str(start.path))} is at step {done}, and training.steps is "
            f"{checked.numbers.steps}."
        )
        return
    try:
        _train(checked, start, config_file, output, outcome, console, note)
    except KeyboardInterrupt as error:
        told = f"{_interrupted(outcome.steps, checked.numbers.steps, output)} {error}"
        number = error.number if isinstance(error, StoppedError) else signal.SIGINT
        raise StoppedError(told.strip(), number) from None
    except DivergedError:
        _draw(outcome, output)
        raise
    vocab_size = checked.config.model.vocab_size
    try:
        result(outcome.summary(math.log(vocab_size) if vocab_size else None, output))
    finally:
        _draw(outcome, output)


def _train(
    checked: Checked,
    start: Start | None,
    config_file: str,
    output: Path,
    outcome: Outcome,
    console: Console,
    note: Callable[[str], None],
) -> None:
    config, numbers = checked.config, checked.numbers
    before = None if start is None else start.progress
    run_id = new_run_id() if before is None else before.run_id
    kept = 0
    if start is not None and before is not None and read_run_id(output) == run_id:
        kept = min(before.step, start.steps_done(numbers))  # another batch size counts the steps differently
    # What blows up is reported as a loss or norm that is not finite.
    with (
        explained_shortage(numbers),
        np.errstate(all="ignore"),
        set_up(checked, output / INDEX_CACHE, note, start) as run,
        saving(config, run, run_id, save_root(config.checkpoint, output), note) as saver,
        RunFiles(output, _about(checked, config_file, run_id, start), kept) as files,
        events(config.monitor.tensorboard, output, note) as board,
    ):
        if (output / METRICS).exists() and not kept:
            note(f"{shown_path(str(output))} holds an earlier run; its files are replaced when the first step is done.")
        note(_start_line(numbers))
        if start is not None:
            note(_restored(start, run.done))
        with progress(numbers.steps, console) as show, stop_asked() as stop:

            def report(metrics: StepMetrics) -> None:
                files.write(metrics)
                board.write(metrics)
                outcome.add(metrics)
                show(metrics)
                _end_of_step(metrics.step, numbers.steps, saver, stop)

            train(run, report)
            if saver is not None:
                saver.wait()  # here, where a signal does not cut it short


def _end_of_step(step: int, steps: int, saver: Saver | None, stop: Stop) -> None:
    """Saves when it is time to, or when the run was asked to stop; then raises StoppedError."""
    stops = stop.signal is not None and step < steps
    if saver is not None:
        saver.check()
        if stops or saver.due(step):
            saver.save(step)
    if not stops:
        return
    assert stop.signal is not None
    if saver is None:
        raise StoppedError("", stop.signal)
    saver.wait()
    saved = f"A checkpoint of step {step} is in {shown_path(str(saver.root))}; --resume auto goes on from there."
    raise StoppedError(saved, stop.signal)


def _about(checked: Checked, config_file: str, run_id: str, start: Start | None) -> bytes:
    resumed = None
    if start is not None and start.progress is not None:
        resumed = Resumed(start.path, start.steps_done(checked.numbers))
    return run_json(checked.config, checked.numbers, config_file, run_id=run_id, resumed=resumed)


def _restored(start: Start, done: int) -> str:
    shown = shown_path(str(start.path))
    if start.progress is None:
        return f"weights are those of {shown}; optimizer, step, schedule and data begin anew."
    return (
        f"{shown} is restored, of run {start.progress.run_id}: the next step is {done + 1}, after "
        f"{start.progress.consumed_samples} samples."
    )


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
