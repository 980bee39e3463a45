"""Texts out of .txt and .jsonl files, pipes and standard input."""

import codecs
import json
import logging
import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from msmigrate.problems import UnreadableError
from msmigrate.yaml.source import shown_path

STDIN = "-"

SUFFIXES = (".txt", ".jsonl")

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class TextFile:
    """An input: one text, or one per line when `json_lines`; `size` in bytes is None for a pipe or standard input."""

    path: str
    name: str
    """As messages print it."""
    json_lines: bool
    size: int | None


@dataclass(slots=True)
class ReadCount:
    """How many bytes have been read so far."""

    done: int = 0


def text_file(path: str) -> TextFile:
    """The input that `path` names; "-" is standard input, which holds one text, as a pipe does that is not a .jsonl.

    Raises `UnreadableError` for what is missing, a folder, a device or a socket, and a file of another ending.
    """
    if path == STDIN:
        return TextFile(path, "standard input", json_lines=False, size=None)
    name = shown_path(path)
    try:
        status = os.stat(path)
    except FileNotFoundError as error:
        raise UnreadableError(f"There is no file {name}.") from error
    except OSError as error:
        raise UnreadableError(f"{name} cannot be read: {error.strerror}.") from error
    if stat.S_ISDIR(status.st_mode):
        raise UnreadableError(f"{name} is a folder; name the .txt or .jsonl files in it.")
    suffix = Path(path).suffix.lower()
    if stat.S_ISFIFO(status.st_mode):
        return TextFile(path, name, suffix == ".jsonl", size=None)
    if not stat.S_ISREG(status.st_mode):
        kind = "a socket" if stat.S_ISSOCK(status.st_mode) else "a device"
        raise UnreadableError(f"{name} is {kind}; text is read from files, pipes and standard input (-).")
    if suffix not in SUFFIXES:
        ending = f'ends in "{shown_path(suffix)}"' if suffix else "has no ending"
        raise UnreadableError(f"{name} {ending}; text is read from {' and '.join(SUFFIXES)} files only.")
    return TextFile(path, name, suffix == ".jsonl", status.st_size)


def texts_of(file: TextFile, count: ReadCount) -> Iterator[str]:
    """The texts of one input that are not empty; `count` goes up by the bytes read.

    Empty ones are counted in a log line. Raises `UnreadableError` when there is no text, or it cannot be read.
    """
    found = empty = 0
    try:
        with _opened(file) as stream:
            for text in _json_lines(stream, file.name, count) if file.json_lines else _whole(stream, file.name, count):
                if not text:
                    empty += 1
                    continue
                found += 1
                yield text
    except OSError as error:
        raise UnreadableError(f"{file.name} cannot be read: {error.strerror or error}.") from error
    if not found:
        raise UnreadableError(f"{file.name} holds no text: it would add no token to the corpus. Leave it out.")
    if empty:
        left_out = "1 line with an empty text; it is" if empty == 1 else f"{empty} lines with an empty text; they are"
        log.warning("%s has %s left out.", file.name, left_out)


@contextmanager
def _opened(file: TextFile) -> Iterator[IO[bytes]]:
    if file.path == STDIN:
        if sys.stdin is None:
            raise UnreadableError("standard input is closed.")
        yield sys.stdin.buffer
        return
    with open(file.path, "rb") as stream:
        yield stream


def _whole(stream: IO[bytes], name: str, count: ReadCount) -> Iterator[str]:
    raw = stream.read()
    count.done += len(raw)
    try:
        yield raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise UnreadableError(
            f"{name} is not UTF-8: byte {error.start} is 0x{raw[error.start]:02x}. Save it as UTF-8."
        ) from error


def _json_lines(stream: IO[bytes], name: str, count: ReadCount) -> Iterator[str]:
    for number, raw in enumerate(stream, 1):
        count.done += len(raw)
        line = raw.removeprefix(codecs.BOM_UTF8) if number == 1 else raw
        if line.strip():
            yield _json_text(line, name, number)


def _json_text(line: bytes, name: str, number: int) -> str:
    try:
        value = json.loads(line.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise UnreadableError(
            f'{name}:{number}: not a JSON object in UTF-8 ({error}); expected {{"text": "…"}}.'
        ) from error
    if not isinstance(value, dict) or not isinstance(value.get("text"), str):
        raise UnreadableError(f'{name}:{number}: {_shape(value)}; expected {{"text": "…"}}.')
    text: str = value["text"]
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise UnreadableError(
            f"{name}:{number}: half a surrogate pair at character {error.start} of the text."
        ) from error
    return text


def _shape(value: object) -> str:
    if not isinstance(value, dict):
        return f"{_JSON_NAMES[type(value)]}, not an object"
    if "text" not in value:
        return f"an object with the keys {sorted(value)}, without text"
    return f"text is {_JSON_NAMES[type(value['text'])]}, not a string"


_JSON_NAMES = {
    int: "a number",
    float: "a number",
    str: "a string",
    bool: "a boolean",
    type(None): "null",
    list: "a list",
    dict: "an object",
}
