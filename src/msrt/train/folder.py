"""The folder that a run writes into: made, and held by one run at a time."""

import contextlib
import fcntl
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from msmigrate.problems import UnreadableError, UserError
from msmigrate.yaml.source import shown_path

LOCK = ".lock"
INDEX_CACHE = "index-cache"
"""Folder of what is computed from the data alone, for later runs."""


@contextmanager
def claimed(
    folder: Path, note: Callable[[str], None], option: str = "--output", lock_name: str = LOCK
) -> Iterator[Path]:
    """`folder`, made when it is not there and locked against other runs to the end of the block or of the process.

    A block that raises UserError before it has put results there leaves no lock or index cache that was not there
    before, and no folder. Raises UserError when another run holds it, UnreadableError when it cannot be written. A file
    system without locks is worth a `note`. `option` is how the user named the folder.
    """
    missing = [path for path in (folder, *folder.parents) if not os.path.exists(path)]
    before = set(os.listdir(folder)) if folder.is_dir() else set()
    make_folder(folder, option)
    lock = _locked(folder, lock_name, option, note)
    try:
        yield folder
    except UserError:
        _remove_if_unused(folder, {lock_name, INDEX_CACHE}, before, missing)
        raise
    finally:
        os.close(lock)


def make_folder(folder: Path, option: str) -> None:
    """Make a folder that `option` names; raises UnreadableError when something else is there or it cannot be made."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except FileExistsError as error:
        raise UnreadableError(f"{option} {shown_path(str(folder))} is a file; a folder is needed there.") from error
    except OSError as error:
        raise UnreadableError(f"{option} {shown_path(str(folder))} cannot be made: {error.strerror}.") from error


def _locked(folder: Path, lock_name: str, option: str, note: Callable[[str], None]) -> int:
    path = folder / lock_name
    while True:
        try:
            lock = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        except OSError as error:
            raise UnreadableError(f"{option} {shown_path(str(folder))} cannot be written: {error.strerror}.") from error
        try:
            _lock(lock, folder, option, note)
        except BaseException:
            os.close(lock)
            raise
        if path.exists() and os.path.samestat(os.fstat(lock), path.stat()):
            return lock
        os.close(lock)  # its owner failed, and removed it, between our opening and locking it


def _remove_if_unused(folder: Path, passing: set[str], before: set[str], missing: Sequence[Path]) -> None:
    """Removes what is in the folder and was not `before`, when all of it is `passing`; then the folders once `missing`.

    What cannot be removed stays: the failure that led here is what the user is told.
    """
    with contextlib.suppress(OSError):
        new = set(os.listdir(folder)) - before
        if not new <= passing:
            return
        for name in new:
            path = folder / name
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        for path in missing:  # inner ones first
            path.rmdir()


def _lock(lock: int, folder: Path, option: str, note: Callable[[str], None]) -> None:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise UserError(
            f"Another run is writing into {shown_path(str(folder))}; wait for its end, or give this one another "
            f"{option}."
        ) from error
    except OSError as error:
        note(f"{shown_path(str(folder))} cannot be locked ({error.strerror}): start no other run into it.")
