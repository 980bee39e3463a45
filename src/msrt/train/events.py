"""TensorBoard events of a run, written as it goes: events.out.tfevents.*"""

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from msmigrate.pynative.sections import Tensorboard
from msmigrate.yaml.source import shown_path
from msrt.train.metrics import StepMetrics

FILES = "events.out.tfevents.*"

TAGS: Mapping[str, str] = {
    "loss": "loss",
    "learning-rate": "lr",
    "grad-norm": "grad_norm",
    "load-balancing-loss": "load_balancing_loss",
    "mtp-loss": "mtp_1_loss",
    "iteration-time": "step_time_ms",
    "throughput": "tokens_per_s",
}
"""MindFormers' names of the scalars, and the metrics they show. Its throughput is in other units: samples or TFLOP."""


class Events:
    """Writes the scalars of every `interval`-th step into `folder`, each handed to the operating system at once.

    The file begins with the first step written; a run that begins anew removes those of an earlier run when the folder
    is its own (`owned`). A file that cannot be written is worth a `note`, and the run goes on without.
    """

    def __init__(self, folder: Path, interval: int, note: Callable[[str], None], *, owned: bool) -> None:
        self._folder, self._interval, self._note, self._owned = folder, interval, note, owned
        self._writer: Any = None
        self._failed = False

    def write(self, metrics: StepMetrics) -> None:
        """Write a step's scalars, if the interval says so."""
        if self._failed:
            return
        try:
            if metrics.step == 1 and self._owned:
                self._remove_earlier()
            if metrics.step % self._interval == 0:
                self._append(metrics)
        except OSError as error:
            self._failed = True
            self._note(
                f"TensorBoard events cannot be written to {shown_path(str(self._folder))} at step {metrics.step} "
                f"({error.strerror}); the run goes on without them."
            )

    def close(self) -> None:
        """Close the file; what was written is there already."""
        if self._writer is not None and not self._failed:
            self._writer.close()

    def _remove_earlier(self) -> None:
        for path in self._folder.glob(FILES):
            path.unlink()

    def _append(self, metrics: StepMetrics) -> None:
        from tensorboardX.proto.event_pb2 import Event
        from tensorboardX.proto.summary_pb2 import Summary

        if self._writer is None:
            self._writer = self._open(metrics.step)
        values = {tag: value for tag, name in TAGS.items() if (value := getattr(metrics, name)) is not None}
        scalars = [Summary.Value(tag=tag, simple_value=value) for tag, value in values.items()]
        self._writer.write_event(Event(wall_time=time.time(), step=metrics.step, summary=Summary(value=scalars)))
        self._writer.flush()

    def _open(self, step: int) -> Any:
        # tensorboardX's SummaryWriter hands events to a thread: a full disk would end that thread and be noticed by
        # nobody, and a crash would lose what it had not written yet. Its EventsWriter does neither.
        from tensorboardX.event_file_writer import EventsWriter
        from tensorboardX.proto.event_pb2 import Event, SessionLog

        self._folder.mkdir(parents=True, exist_ok=True)
        # Absolute, because a relative path that starts with s3: or gs: would be taken for a bucket.
        writer = EventsWriter(str(self._folder.absolute() / "events"), f".{os.getpid()}")
        # TensorBoard forgets the steps from here on of earlier files: a resumed run has taken them back. (Scalars
        # against samples, which MindFormers has too, would be cut at the wrong place.)
        writer.write_event(Event(wall_time=time.time(), step=step, session_log=SessionLog(status=SessionLog.START)))
        return writer


@contextmanager
def events(section: Tensorboard, run_folder: Path, note: Callable[[str], None]) -> Iterator[Events]:
    """The events of a run: in the folder that monitor.tensorboard names, else in the run's own; closed at the end."""
    named = section.output_dir.strip() or section.tensorboard_dir.strip()
    interval = section.log_interval if section.log_interval != 1 else section.tensorboard_log_interval
    writer = Events(Path(named) if named else run_folder, max(1, interval), note, owned=not named)
    try:
        yield writer
    finally:
        writer.close()
