"""The folder that a run writes into: made, and held by one run at a time."""

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from msmigrate.problems import UnreadableError, UserError
from msmigrate.yaml.source import shown_path

LOCK = ".lock"


@contextmanager
def claimed(
    folder: Path, note: Callable[[str], None], option: str = "--output", lock_name: str = LOCK
) -> Iterator[Path]:
    """`folder`, made when it is not there and locked against other runs to the end of the block or of the process.

    Raises UserError when another run holds it, UnreadableError when it cannot be written. A file system without locks
    is worth a `note`. `option` is how the user named the folder.
    """
    make_folder(folder, option)
    try:
        lock = os.open(folder / lock_name, os.O_RDWR | os.O_CREAT, 0o666)
    except OSError as error:
        raise UnreadableError(f"{option} {shown_path(str(folder))} cannot be written: {error.strerror}.") from error
    try:
        _lock(lock, folder, option, note)
        yield folder
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
