"""Which checkpoints of a save_path stay, which one is the newest, and what belongs to whom."""

import json
from collections.abc import Callable
from pathlib import Path

from msmigrate.problems import UnreadableError
from msmigrate.yaml.source import shown_path
from msrt.checkpoint.common import TRAINING
from msrt.checkpoint.folder import remove_folder
from msrt.checkpoint.layout import COMMON, TRACKER, iteration_name, iterations
from msrt.checkpoint.read import Checkpoint, open_checkpoint


def remove_oldest(root: Path, run_id: str, newest: int, limit: int) -> None:
    """Removes checkpoints of the run `run_id` in `root` until `limit` are left; those of others stay.

    The lowest step goes first. Steps above `newest`, the one just written, are what a run had done before it was taken
    back to an earlier one: they go before all others. Raises UnreadableError when one cannot be removed.
    """
    ours = [step for step in iterations(root) if owner(root / iteration_name(step)) == run_id]
    ours.sort(key=lambda step: (step <= newest, step))
    for step in ours[: max(0, len(ours) - limit)]:
        folder = root / iteration_name(step)
        try:
            remove_folder(folder)
        except OSError as error:
            raise UnreadableError(f"{shown_path(str(folder))} cannot be removed: {error.strerror}.") from error


def owner(folder: Path) -> str | None:
    """The id of the run that wrote an iteration's folder; None where no common.json tells."""
    try:
        found = json.loads((folder / COMMON).read_text(encoding="utf-8"))[TRAINING]["run_id"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
    return found if isinstance(found, str) else None


def newest_checkpoint(root: Path, note: Callable[[str], None]) -> Checkpoint | None:
    """The newest whole checkpoint in `root`: the one its tracker names, else the one of the highest step.

    None when there are none. Damaged ones are passed over with a `note`; raises UnreadableError when all are damaged.
    """
    steps = iterations(root)
    for step in sorted(steps, key=lambda step: (step == _tracked(root), step), reverse=True):
        try:
            return open_checkpoint(root / iteration_name(step))
        except UnreadableError as error:
            note(f"the checkpoint of step {step} is passed over: {error}")
    if not steps:
        return None
    raise UnreadableError(
        f"{shown_path(str(root))} has {len(steps)} checkpoints, of steps {', '.join(map(str, steps))}, and none of "
        "them is whole. Name another with --resume PATH, or start anew with another checkpoint.save_path."
    )


def _tracked(root: Path) -> int | None:
    """The step in the tracker; None without a sound one."""
    try:
        return int((root / TRACKER).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
