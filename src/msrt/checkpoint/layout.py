"""Names of the folders and files of a checkpoint, and the way from a path to one iteration's folder."""

import re
from pathlib import Path

from msmigrate.problems import UnreadableError
from msmigrate.yaml.source import shown_path

TRACKER = "latest_checkpointed_iteration.txt"
"""In the root: the step of the newest iteration, written last."""
COMMON = "common.json"
METADATA = "metadata.json"
HF_FILES = "hf"
"""In an iteration's folder: config.json, tokenizer and the like of the Hugging Face folder it was imported from."""


def iteration_name(step: int) -> str:
    """The folder of a step."""
    return f"iteration_{step:08d}"


def model_file(prefix: str | None, rank: int, world: int) -> str:
    """The file with one rank's weights."""
    return f"{prefix + '-' if prefix else ''}model-{rank:07d}-{world:07d}.safetensors"


def is_checkpoint(path: Path) -> bool:
    """Whether `path` is a checkpoint's root or one iteration's folder."""
    return (path / TRACKER).is_file() or (path / METADATA).is_file()


def iteration_folder(path: Path) -> Path:
    """The folder to read: `path` itself when it is an iteration's, else the one that the root's tracker names.

    Raises UnreadableError when there is none.
    """
    if (path / METADATA).is_file():
        return path
    tracker = path / TRACKER
    try:
        text = tracker.read_text(encoding="utf-8").strip()
    except (FileNotFoundError, NotADirectoryError) as error:
        raise UnreadableError(
            f"{shown_path(str(path))} is no checkpoint: it has neither {TRACKER} nor {METADATA}."
        ) from error
    except (OSError, UnicodeDecodeError) as error:
        raise UnreadableError(f"{shown_path(str(tracker))} cannot be read: {error}.") from error
    if not re.fullmatch("[0-9]{1,8}", text):
        raise UnreadableError(f"{shown_path(str(tracker))} holds {text[:40]!r}; expected the number of a step.")
    folder = path / iteration_name(int(text))
    if not (folder / METADATA).is_file():
        raise UnreadableError(
            f"{shown_path(str(tracker))} names step {int(text)}, but {shown_path(str(folder))} has no {METADATA}."
        )
    return folder
