"""Standard output and error of `msrt`: a result that cannot be printed is an error, a message that cannot is not."""

import io
import os
import sys
from typing import TYPE_CHECKING, TextIO

from msmigrate.problems import UnreadableError
from msmigrate.streams import print_result, speak_utf8

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer as Buffer


class _Results(io.FileIO):
    """Standard output, whoever writes to it: a full disk raises UnreadableError, once.

    A reader that has gone away wants no more, which is no failure: the rest is thrown away.
    """

    is_read = True

    def write(self, data: "Buffer") -> int:
        try:
            return super().write(data)
        except BrokenPipeError:
            _point_at_nothing(self.fileno())
            self.is_read = False
            return memoryview(data).nbytes
        except OSError as error:
            _point_at_nothing(self.fileno())  # or the interpreter complains of the stream once more at exit
            raise UnreadableError(f"Standard output cannot be written: {error.strerror}.") from error


class _Messages(io.FileIO):
    """Standard error: when it cannot be written, what follows is thrown away, also what C++ libraries write to it."""

    def write(self, data: "Buffer") -> int:
        try:
            return super().write(data)
        except OSError:
            _point_at_nothing(self.fileno())
            return memoryview(data).nbytes


def prepare_streams() -> None:
    """Let both streams take any character, and be closed, full or broken without a traceback.

    Closed descriptors are opened on the null device, so that no file of the run gets their numbers.
    """
    while (spare := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(spare, True)
    os.close(spare)
    if sys.stdout is not None:
        sys.stdout = _text(_Results(1, "w", closefd=False), sys.stdout)
    if sys.stderr is not None:
        sys.stderr = _text(_Messages(2, "w", closefd=False), sys.stderr)
    speak_utf8()


def result(text: str) -> None:
    """A result and a line end on standard output; raises UnreadableError when it is closed or full."""
    if sys.stdout is None:
        raise UnreadableError("The result cannot be printed: standard output is closed.")
    print_result((text + "\n").encode(errors="backslashreplace"))


def end_output() -> None:
    """Hand to the system what was printed; raises UnreadableError when it cannot take it."""
    if sys.stdout is not None:
        sys.stdout.flush()


def still_read() -> bool:
    """False once a reader of standard output has closed its end of the pipe."""
    raw = getattr(getattr(sys.stdout, "buffer", None), "raw", None)
    return not isinstance(raw, _Results) or raw.is_read


def _text(raw: io.FileIO, old: TextIO) -> io.TextIOWrapper:
    return io.TextIOWrapper(io.BufferedWriter(raw), old.encoding, line_buffering=True)


def _point_at_nothing(descriptor: int) -> None:
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, descriptor)
    os.close(null)
