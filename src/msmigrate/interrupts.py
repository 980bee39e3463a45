"""Ctrl-C: before the work has begun it ends the process at once, later it is a KeyboardInterrupt that can be answered.

Modules that are half imported have nothing to tidy up, and MindSpore's import does not survive an exception at an
arbitrary place: its C++ frames turn it into an abort.
"""

import os
import signal
from collections.abc import Callable
from types import FrameType

INTERRUPTED = 130
"""Exit status of an interrupted command: 128 + SIGINT."""


def exit_on_interrupt() -> None:
    """From now on Ctrl-C says `Interrupted.` and ends the process with status 130, running no further Python."""
    _handle(_exit)


def raise_on_interrupt() -> None:
    """From now on Ctrl-C raises KeyboardInterrupt."""
    _handle(signal.default_int_handler)


def _handle(handler: Callable[[int, FrameType | None], object]) -> None:
    # A shell starts background jobs with the signal ignored; they must stay deaf to it.
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, handler)


def _exit(number: int, frame: FrameType | None) -> None:
    try:
        os.write(2, b"Interrupted.\n")
    finally:
        os._exit(INTERRUPTED)
