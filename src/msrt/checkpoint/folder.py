"""A folder that appears whole or not at all."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

from msmigrate.problems import UnreadableError
from msmigrate.yaml.source import shown_path


@contextmanager
def whole_folder(target: Path) -> Iterator[Path]:
    """A temporary folder beside `target` that gets its name when the block ends well, and is removed when it does not.

    Missing parents are made. Raises UnreadableError when `target` exists and is no empty folder, and when it cannot be
    written, also for an OSError of the block.
    """
    shown = shown_path(str(target))
    temporary = target.parent / f".{target.name}.{uuid4().hex}.tmp"
    try:
        _refuse_occupied(target, shown)
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            temporary.mkdir()
            yield temporary
            _to_disk(temporary)
            temporary.rename(target)
            _to_disk(target.parent)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
    except OSError as error:
        raise UnreadableError(f"{shown} cannot be written: {error.strerror or error}.") from error
    except UnreadableError as error:  # of a file of the block: the user never named the temporary folder
        raise UnreadableError(str(error).replace(shown_path(str(temporary)), shown)) from error


def _refuse_occupied(target: Path, shown: str) -> None:
    if not os.path.lexists(target):
        return
    if not target.is_dir():
        raise UnreadableError(f"{shown} is a file; a folder is to be made there. Give another name.")
    if any(target.iterdir()):
        raise UnreadableError(f"{shown} exists and is not empty; give another name, or remove it first.")


def _to_disk(folder: Path) -> None:
    """Without this a power cut can leave a renamed folder without its files' names."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
