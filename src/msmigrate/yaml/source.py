"""Texts of YAML files: read whole or refused, written whole or not at all."""

import contextlib
import errno
import os
import re
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from msmigrate.problems import UnreadableError

MAX_BYTES = 2_000_000
_BOM = "\ufeff"


@dataclass(frozen=True, slots=True)
class Source:
    """A text with line ends normalised to `\\n`; `newline` and `bom` are how the file had them."""

    name: str
    text: str
    newline: str = "\n"
    bom: bool = False

    def encode(self, text: str) -> bytes:
        """`text` with this file's line ends and byte order mark, in UTF-8."""
        return ((_BOM if self.bom else "") + text.replace("\n", self.newline)).encode()


def read_source(path: str) -> Source:
    """The text of a file, or of standard input for "-".

    Raises UnreadableError when the file is missing, no file, larger than 2 MB, or not UTF-8.
    """
    if path == "-":
        if sys.stdin is None:
            raise UnreadableError("standard input is closed")
        return source_from_bytes("standard input", sys.stdin.buffer.read(MAX_BYTES + 1))
    try:
        if os.path.isdir(path):
            raise UnreadableError(f"{shown_path(path)} is a folder, not a file")
        with open(path, "rb") as file:
            return source_from_bytes(shown_path(path), file.read(MAX_BYTES + 1))
    except OSError as error:
        reason = error.strerror
        if isinstance(error, FileNotFoundError) and os.path.islink(path):
            reason = f"it is a link to {shown_path(os.readlink(path))}, which does not exist"
        raise UnreadableError(f"{shown_path(path)} cannot be read: {reason}") from error


def shown_path(path: str) -> str:
    """A path as text that can be printed: names that the locale cannot decode are UTF-8, as files here are."""
    return os.fsencode(path).decode(errors="backslashreplace") or "''"


def source_from_bytes(name: str, data: bytes) -> Source:
    """The text in `data`; raises UnreadableError when it is larger than 2 MB or not UTF-8, naming the byte."""
    if len(data) > MAX_BYTES:
        raise UnreadableError(f"{name} is larger than {MAX_BYTES // 1_000_000} MB: this is no configuration file")
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        column = error.start - data.rfind(b"\n", 0, error.start)
        raise UnreadableError(
            f"{name}:{line}:{column}: byte 0x{data[error.start]:02x} is not UTF-8 (byte {error.start} of the file); "
            "save the file as UTF-8, for example with `iconv -f GBK -t UTF-8`"
        ) from error
    bom = text.startswith(_BOM)
    newline = "\r\n" if text.count("\r\n") * 2 > text.count("\n") else "\n"
    text = text.removeprefix(_BOM).replace("\r\n", "\n").replace("\r", "\n")
    _refuse_hidden_breaks(name, text)
    return Source(name, text, newline, bom)


def _refuse_hidden_breaks(name: str, text: str) -> None:
    """YAML 1.1 ends lines at three characters that editors do not show as line ends."""
    found = re.search("[\x85\u2028\u2029]", text)
    if found is None:
        return
    line = text.count("\n", 0, found.start()) + 1
    column = found.start() - text.rfind("\n", 0, found.start())
    raise UnreadableError(
        f"{name}:{line}:{column}: character U+{ord(found.group()):04X} ends a line for the reader and not in editors; "
        "replace it"
    )


def write_whole(path: str, data: bytes, *, backup: str | None = None) -> None:
    """Write a file through a temporary file in the same folder and a rename, so that it is never seen half written.

    `backup` names a path that keeps the present file. A symbolic link stays one; a device or a pipe is written to.
    Raises UnreadableError when the folder does not exist, is read-only or full; the present file is then untouched.
    """
    try:
        target = Path(path).resolve(strict=False)
        if target.exists() and not target.is_file():
            target.write_bytes(data)
            return
        if target.exists() and not os.access(target, os.W_OK):
            raise PermissionError(errno.EACCES, "the file is read-only")
        if not target.parent.exists():
            raise FileNotFoundError(errno.ENOENT, f"the folder {shown_path(str(target.parent))} does not exist")
        _replace(target, data, backup)
    except (OSError, RuntimeError) as error:  # resolve() raises RuntimeError for a loop of links
        reason = error.strerror if isinstance(error, OSError) else "its symbolic links form a loop"
        raise UnreadableError(f"{shown_path(path)} cannot be written: {reason}") from error


def _replace(target: Path, data: bytes, backup: str | None) -> None:
    temporary = None
    try:
        mode = target.stat().st_mode & 0o7777 if target.exists() else 0o666 & ~_umask()
        with tempfile.NamedTemporaryFile(dir=target.parent, prefix=f".{target.name}.", delete=False) as file:
            temporary = file.name
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, mode)
        if backup is not None:
            write_whole(backup, target.read_bytes())
        os.replace(temporary, target)
    finally:
        if temporary is not None:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(temporary)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
