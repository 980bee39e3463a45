"""A folder that appears whole or not at all."""

import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

from msmigrate.problems import UnreadableError
from msmigrate.yaml.source import shown_path


@contextmanager
def whole_folder(target: Path, *, replace: bool = False) -> Iterator[Path]:
    """A temporary folder beside `target` that gets its name when the block ends well, and is removed when it does not.

    Missing parents are made. With `replace` a folder that has the name already goes when the new one is complete.
    Raises UnreadableError when `target` exists otherwise and is no empty folder, and when it cannot be written, also
    for an OSError of the block.
    """
    shown = shown_path(str(target))
    temporary = _hidden(target, "tmp")
    try:
        replaces = replace and target.is_dir()
        if not replaces:
            _refuse_occupied(target, shown)
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            temporary.mkdir()
            yield temporary
            _to_disk(temporary)
            if replaces:
                _swap(temporary, target)
            else:
                temporary.rename(target)
            _to_disk(target.parent)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
    except OSError as error:
        raise UnreadableError(f"{shown} cannot be written: {error.strerror or error}.") from error
    except UnreadableError as error:  # of a file of the block: the user never named the temporary folder
        raise UnreadableError(str(error).replace(shown_path(str(temporary)), shown)) from error


def remove_leftovers(parent: Path) -> None:
    """Tidies up what a killed process left in `parent`; only for a time when no process is writing there.

    A folder that was about to be replaced gets its name back if the new one never came.
    """
    for path in sorted(parent.iterdir()):
        left = re.fullmatch(r"\.(iteration_[0-9]{8})\.[0-9a-f]{32}\.(tmp|old)", path.name)
        if left is None:
            continue
        if left[2] == "old" and not (parent / left[1]).exists():
            path.rename(parent / left[1])
        else:
            shutil.rmtree(path, ignore_errors=True)


def remove_folder(folder: Path) -> None:
    """Removes a folder; whoever looks for it, also after a crash, finds all of it or none."""
    hidden = _hidden(folder, "tmp")
    folder.rename(hidden)
    shutil.rmtree(hidden)


def _hidden(folder: Path, end: str) -> Path:
    return folder.parent / f".{folder.name}.{uuid4().hex}.{end}"


def _swap(new: Path, target: Path) -> None:
    """Puts the folder `new` in the place of `target`, which is kept until that is done."""
    old = _hidden(target, "old")
    target.rename(old)
    try:
        new.rename(target)
    except OSError:
        old.rename(target)
        raise
    shutil.rmtree(old, ignore_errors=True)


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
