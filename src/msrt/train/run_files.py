"""The files of a run, begun when its first step is done: one that fails before leaves those of an earlier run alone."""

import contextlib
import json
import os
from pathlib import Path
from types import TracebackType
from typing import Self

from msmigrate.problems import UnreadableError
from msmigrate.yaml.source import shown_path, write_whole
from msrt.train.metrics import FILE as METRICS
from msrt.train.metrics import StepMetrics
from msrt.train.plot import FILE as PLOT
from msrt.train.run_json import FILE as RUN_JSON


class RunFiles:
    """metrics.jsonl and run.json of a new run in `folder`, as a context manager; `about` is what run.json holds.

    The first step replaces the files of an earlier run, and removes its loss.png. A run that goes on there after step
    `kept` keeps the lines of metrics.jsonl up to that step; 0 keeps none.
    """

    def __init__(self, folder: Path, about: bytes, kept: int = 0) -> None:
        self.folder, self._about, self._kept = folder, about, kept
        self._file: int | None = None
        self._size = 0

    def write(self, metrics: StepMetrics) -> None:
        """Append a step's line, handed to the operating system at once: a reader or a crash finds whole lines.

        Raises `UnreadableError`, naming file and step, when it cannot be written; the file then ends with the step
        before.
        """
        line = (metrics.line() + "\n").encode()
        try:
            if self._file is None:
                self._begin(line)
            else:
                self._append(self._file, line)
        except OSError as error:
            raise UnreadableError(
                f"{shown_path(str(self.folder / METRICS))} cannot take step {metrics.step}: {error.strerror}. "
                f"The run stops; {_kept(metrics.step - 1)}."
            ) from error

    def _begin(self, line: bytes) -> None:
        new = self.folder / f".{METRICS}.new"
        try:
            file = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o666)
            self._file = file
            self._append(file, self._earlier_lines() + line)
            write_whole(str(self.folder / RUN_JSON), self._about)
            os.replace(new, self.folder / METRICS)
            with contextlib.suppress(OSError):  # what stands in its way is reported when the image is drawn
                (self.folder / PLOT).unlink(missing_ok=True)
        finally:
            with contextlib.suppress(FileNotFoundError):
                new.unlink()

    def _earlier_lines(self) -> bytes:
        """Those of the steps that stay."""
        if not self._kept or not (self.folder / METRICS).exists():
            return b""
        lines = (self.folder / METRICS).read_bytes().splitlines(keepends=True)
        return b"".join(line for line in lines if 0 < _step(line) <= self._kept)

    def _append(self, file: int, line: bytes) -> None:
        """All of `line` or none of it: a full disk can take a part."""
        rest = line
        try:
            while rest:
                rest = rest[os.write(file, rest) :]
        except OSError:
            os.ftruncate(file, self._size)
            raise
        self._size += len(line)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file is not None:
            os.close(self._file)


def _step(line: bytes) -> int:
    """The step of a whole line; 0 for what a crash leaves of one."""
    try:
        return int(json.loads(line)["step"]) if line.endswith(b"\n") else 0
    except (ValueError, KeyError, TypeError, RecursionError):
        return 0


def _kept(steps: int) -> str:
    if steps == 0:
        return "the files of an earlier run, if there are any, are as they were"
    return f"the file ends with step {steps}"
