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


OPTIMIZER_STATE = ("adam_m.", "adam_v.", "muon_m.", "main_param.")
"""What the names of optimizer state begin with; the rest is the parameter's name. MindFormers' names but for Muon's."""


def iteration_name(step: int) -> str:
    """The folder of a step."""
    return f"iteration_{step:08d}"


def model_file(prefix: str | None, rank: int, world: int) -> str:
    """The file with one rank's weights."""
    return _file(prefix, "model", rank, world)


def optimizer_file(prefix: str | None, rank: int, world: int) -> str:
    """The file with one rank's optimizer state."""
    return _file(prefix, "opt", rank, world)


def _file(prefix: str | None, kind: str, rank: int, world: int) -> str:
    return f"{prefix + '-' if prefix else ''}{kind}-{rank:07d}-{world:07d}.safetensors"


def is_optimizer_state(tensor: str) -> bool:
    """Whether a tensor of that name is optimizer state, not a weight."""
    return tensor.startswith(OPTIMIZER_STATE)


def iterations(root: Path) -> list[int]:
    """The steps whose folders are in `root`, in ascending order; none where there is no such folder."""
    if not root.is_dir():
        return []
    found = (re.fullmatch("iteration_([0-9]{8})", path.name) for path in root.iterdir())
    return sorted(int(match[1]) for match in found if match is not None)


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
