"""Inputs cut into blocks of bytes that can be turned into tokens one by one, by any process."""

import gzip
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO

from msmigrate.problems import UnreadableError
from msrt.data.text_files import STDIN, TextFile

Stream = IO[bytes] | gzip.GzipFile

SIZE = 2**20
"""Bytes of a block of lines, and the rest of its last line. A document that is a whole file is one block."""


@dataclass(frozen=True, slots=True)
class Block:
    """Some lines of a .jsonl input from `first_line` on (counted from 1), or a whole text.

    `read` is how many bytes of all inputs lie before the end of this block, compressed ones counted as they are stored.
    """

    file: TextFile
    first_line: int
    raw: bytes
    read: int


def blocks_of(file: TextFile, read_before: int) -> Iterator[Block]:
    """The blocks of one input, at least one. Raises `UnreadableError` when it cannot be read."""
    try:
        with _opened(file) as (stream, stored):
            if not file.json_lines:
                raw = stream.read()
                yield Block(file, 1, raw, read_before + _position(stored, len(raw)))
                return
            yield from _line_blocks(file, stream, stored, read_before)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise UnreadableError(f"{file.name} is not a whole gzip file: {error}.") from error
    except OSError as error:
        raise UnreadableError(f"{file.name} cannot be read: {error.strerror or error}.") from error


def _line_blocks(file: TextFile, stream: Stream, stored: IO[bytes] | None, read_before: int) -> Iterator[Block]:
    line, length = 1, 0
    while True:
        raw = stream.read(SIZE)
        raw += stream.readline()
        if not raw and line > 1:
            return
        length += len(raw)
        yield Block(file, line, raw, read_before + _position(stored, length))
        if not raw:
            return
        line += raw.count(b"\n")


def _position(stored: IO[bytes] | None, read: int) -> int:
    return read if stored is None else stored.tell()


@contextmanager
def _opened(file: TextFile) -> Iterator[tuple[Stream, IO[bytes] | None]]:
    """The stream of the text's bytes, and the file with the stored ones when these are others."""
    if file.path == STDIN:
        if sys.stdin is None:
            raise UnreadableError("standard input is closed.")
        yield sys.stdin.buffer, None
        return
    with open(file.path, "rb") as stored:
        if not file.gzipped:
            yield stored, None
            return
        with gzip.GzipFile(fileobj=stored) as stream:
            yield stream, stored if file.size is not None else None
