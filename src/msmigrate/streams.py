"""Standard output for results, standard error for messages: closed and full streams are errors a user can read."""

import io
import sys

from msmigrate.problems import UnreadableError


def speak_utf8() -> None:
    """Let both streams take Chinese and signs such as ×: what a terminal cannot show becomes an escape."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            encoding = stream.encoding if stream.isatty() else "utf-8"
            stream.reconfigure(encoding=encoding, errors="backslashreplace")


def say(text: str) -> None:
    """A message on standard error; nothing when it is closed."""
    if sys.stderr is not None:
        sys.stderr.write(text + "\n")


def print_result(data: bytes) -> None:
    """A result on standard output; raises UnreadableError when it is closed or full."""
    if sys.stdout is None:
        raise UnreadableError("standard output is closed; name a file with -o")
    try:
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise UnreadableError(f"standard output cannot be written: {error.strerror}") from error
