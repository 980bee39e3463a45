"""Files kept between runs for speed alone: one that cannot be read or written costs time, and never the run."""

import errno
import fcntl
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO
from uuid import uuid4

from msmigrate.yaml.source import shown_path

NO_LOCKS = (errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOLCK)
"""A file system without locks: there, processes that start together may do the same work."""

log = logging.getLogger(__name__)


def read_kept(path: Path) -> bytes | None:
    """What an earlier run kept in `path`; None, with a warning unless the file is just absent, if it cannot be read."""
    try:
        return path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        log.warning("%s cannot be read: %s. The run goes on without it.", shown_path(str(path)), error.strerror)
        return None


def keep(path: Path, *pieces: bytes | memoryview) -> bool:
    """True when `path` now holds `pieces`, end to end; if not, a warning says why and nothing of it stays."""
    temporary = path.with_name(f"{_temporary(path)}{uuid4().hex}.tmp")  # ranks of other hosts may share process ids
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with temporary.open("wb") as file:
                for piece in pieces:
                    file.write(piece)
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        log.warning(
            "%s cannot be written: %s. The run goes on without it; the next one will do the same work again.",
            shown_path(str(path)),
            error.strerror or error,
        )
        return False
    return True


@contextmanager
def one_at_a_time(path: Path) -> Iterator[None]:
    """Inside the block no other process is in a block for the same `path`; a killed one does not keep it.

    Temporary files that a killed process left for `path` are removed. Where the folder cannot be written, or its file
    system has no locks, the block runs without this protection.
    """
    lock = path.with_name(f".{path.name}.lock")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = _locked(lock)
    except OSError:
        yield  # `keep` will say why nothing can be written here
        return
    try:
        for left in path.parent.glob(f"{_temporary(path)}*.tmp"):
            left.unlink(missing_ok=True)
        yield
    finally:
        lock.unlink(missing_ok=True)
        file.close()


def _temporary(path: Path) -> str:
    return f".{path.name}."


def _locked(lock: Path) -> IO[bytes]:
    while True:
        file = lock.open("ab")
        try:
            _wait_for(file, lock)
        except BaseException:
            file.close()
            raise
        if lock.exists() and os.path.samestat(os.fstat(file.fileno()), lock.stat()):
            return file
        file.close()  # its owner finished, and removed it, between our opening and locking it


def _wait_for(file: IO[bytes], lock: Path) -> None:
    try:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            name = shown_path(str(lock.parent / lock.name[1:].removesuffix(".lock")))
            log.warning("Another process is making %s; this one waits for it.", name)
            fcntl.flock(file, fcntl.LOCK_EX)
    except OSError as error:
        if error.errno not in NO_LOCKS:
            raise
