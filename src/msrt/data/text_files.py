"""The inputs of make-data: .txt and .jsonl files, plain or gzipped, folders of them, pipes and standard input."""

import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from msmigrate.problems import UnreadableError, UsageError
from msmigrate.yaml.source import shown_path

STDIN = "-"

TEXT, JSON_LINES, GZIP = ".txt", ".jsonl", ".gz"


@dataclass(frozen=True, slots=True)
class TextFile:
    """An input: one document, or one per line when `json_lines`; `size` in bytes is None for a pipe or standard input.

    `from_folder` is True for a file that nobody named, which may be empty.
    """

    path: str
    name: str
    """As messages print it."""
    json_lines: bool
    size: int | None
    gzipped: bool = False
    from_folder: bool = False


def text_files(paths: Sequence[str]) -> list[TextFile]:
    """The inputs that `paths` name, in their order; a folder stands for all text files below it, sorted by path.

    Files and folders in it that begin with a dot are left out. "-" is standard input, which holds one document, as a
    pipe does that is not a .jsonl. Raises `UsageError` when there is no path or "-" comes twice, and `UnreadableError`
    for what is missing, a device or a socket, a file of another ending, and a folder without text files.
    """
    if not paths:
        raise UsageError("No input is given: name at least one .txt or .jsonl file, or a folder of them.")
    if list(paths).count(STDIN) > 1:
        raise UsageError("- is given more than once, but standard input can be read only once.")
    return [file for path in paths for file in _files(path)]


def _files(path: str) -> Iterator[TextFile]:
    if path == STDIN:
        yield TextFile(path, "standard input", json_lines=False, size=None)
        return
    status = _status(path)
    if not stat.S_ISDIR(status.st_mode):
        yield _file(path, status)
        return
    inside = sorted(_below(path))
    if not inside:
        raise UnreadableError(f"The folder {shown_path(path)} holds no {_endings()} file, hidden ones apart.")
    for found in inside:
        yield replace(_file(found, _status(found)), from_folder=True)


def _status(path: str) -> os.stat_result:
    try:
        return os.stat(path)
    except FileNotFoundError as error:
        raise UnreadableError(f"There is no file {shown_path(path)}.") from error
    except OSError as error:
        raise UnreadableError(f"{shown_path(path)} cannot be read: {error.strerror}.") from error


def _below(folder: str) -> Iterator[str]:
    def refuse(error: OSError) -> None:
        raise UnreadableError(f"{shown_path(str(error.filename))} cannot be read: {error.strerror}.") from error

    for place, folders, names in os.walk(folder, onerror=refuse):
        folders[:] = [name for name in folders if not _is_hidden(name)]
        texts = (name for name in names if _suffix(name) in (TEXT, JSON_LINES) and not _is_hidden(name))
        yield from (os.path.join(place, name) for name in texts)


def _is_hidden(name: str) -> bool:
    return name.startswith(".")


def _file(path: str, status: os.stat_result) -> TextFile:
    name, suffix = shown_path(path), _suffix(path)
    if stat.S_ISFIFO(status.st_mode):
        return TextFile(path, name, suffix == JSON_LINES, size=None, gzipped=_gzipped(path))
    if not stat.S_ISREG(status.st_mode):
        kind = "a socket" if stat.S_ISSOCK(status.st_mode) else "a device"
        raise UnreadableError(f"{name} is {kind}; text is read from files, folders, pipes and standard input (-).")
    if suffix not in (TEXT, JSON_LINES):
        ending = f'ends in "{shown_path(Path(path).suffix)}"' if Path(path).suffix else "has no ending"
        raise UnreadableError(f"{name} {ending}; text is read from {_endings()} files only.")
    return TextFile(path, name, suffix == JSON_LINES, status.st_size, gzipped=_gzipped(path))


def _gzipped(path: str) -> bool:
    return Path(path).suffix.lower() == GZIP


def _suffix(path: str) -> str:
    """The ending, in small letters, below a .gz."""
    return Path(Path(path).stem if _gzipped(path) else path).suffix.lower()


def _endings() -> str:
    return f"{TEXT} and {JSON_LINES} (also {GZIP})"
