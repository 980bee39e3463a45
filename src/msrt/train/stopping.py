"""Ctrl-C and SIGTERM while a run trains: the first one ends it after the step at hand, a second one at once."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM)


@dataclass
class Stop:
    """Whether a run has been asked to end."""

    signal: int | None = None
    """The number of the first signal."""

    def take(self, number: int, frame: FrameType | None) -> None:
        """Handles a signal: the first is remembered, a second raises StoppedError."""
        if self.signal is not None:
            raise StoppedError("", number)
        self.signal = number
        # Not through sys.stderr: the signal may have come while that was being written to.
        with suppress(OSError):  # nobody reads it; the run ends all the same
            os.write(2, b"Stopping after this step; a second signal stops at once.\n")


class StoppedError(KeyboardInterrupt):
    """The end of a run that a signal asked for."""

    def __init__(self, message: str, number: int) -> None:
        super().__init__(message)
        self.number = number
        self.status = 128 + number
        """The exit status, as shells have it: 130 for SIGINT, 143 for SIGTERM."""


@contextmanager
def stop_asked() -> Iterator[Stop]:
    """What the signals of the block ask for; signals that are ignored, as in a shell's background job, stay so."""
    stop = Stop()
    before = {number: signal.getsignal(number) for number in SIGNALS}
    for number, handler in before.items():
        if handler is not signal.SIG_IGN:
            signal.signal(number, stop.take)
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
