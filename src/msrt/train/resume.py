"""Where a run starts from: nowhere, weights alone, or the very place that a checkpoint was written at."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from msmigrate.hf_config import FILE as CONFIG_JSON
from msmigrate.problems import UnreadableError, UserError
from msmigrate.pynative import Config, nested_section, specs_of
from msmigrate.yaml.source import shown_path
from msrt.checkpoint.common import Progress, progress_in
from msrt.checkpoint.keep import newest_checkpoint
from msrt.checkpoint.layout import COMMON, METADATA, TRACKER, is_checkpoint
from msrt.checkpoint.read import Checkpoint, open_checkpoint
from msrt.config.checked import Checked
from msrt.config.refusals import value_at
from msrt.config.resolve import Resolved

AUTO = "auto"
"""--resume: the newest checkpoint under checkpoint.save_path."""

TOLD = ("training", "optimizer", "lr_scheduler", "train_dataset", "model")
"""Sections whose changes a run that goes on tells of."""


@dataclass(frozen=True)
class Start:
    """Weights to start with: a checkpoint's, or those of the Hugging Face folder `path` when there is none.

    With `progress` everything else goes on from there, too; without, step, schedule and data begin anew.
    """

    path: Path
    checkpoint: Checkpoint | None
    progress: Progress | None

    def steps_done(self, numbers: Resolved) -> int:
        """Steps of this run's batch size that the samples consumed before make up; a rest is consumed again.

        (MindFormers scales the step by old / new global_batch_size, which is the same.)
        """
        return 0 if self.progress is None else self.progress.consumed_samples // numbers.global_batch_size


def find_start(checked: Checked, resume: str | None, root: Path, note: Callable[[str], None]) -> Start | None:
    """What --resume, else checkpoint.load_path, names; None for a run that starts with random weights.

    `root` is where this run saves; `note` takes what the user should know. Raises UnreadableError for what cannot be
    read, UserError for a checkpoint that this run cannot go on from: never does a run start anew instead.
    """
    section = checked.config.checkpoint
    if resume == AUTO:
        found = newest_checkpoint(root, note)
        if found is not None:
            return _going_on(found, checked, note)
        note(f"--resume auto: there is no checkpoint in {shown_path(str(root))} yet; the run begins at step 1.")
    elif resume is not None:
        return _going_on(open_checkpoint(Path(resume)), checked, note)
    if not section.load_path:
        return None
    path = Path(section.load_path)
    if not section.no_load_optim:
        return _going_on(_opened(path), checked, note)
    start = Start(path, open_checkpoint(path) if is_checkpoint(path) else None, None)
    if start.checkpoint is None and not (path / CONFIG_JSON).is_file():
        raise UnreadableError(
            f"checkpoint.load_path {shown_path(str(path))} is neither a checkpoint ({TRACKER} or {METADATA} in it) nor "
            f"a Hugging Face folder ({CONFIG_JSON} in it)."
        )
    return start


def _opened(path: Path) -> Checkpoint:
    if not is_checkpoint(path) and (path / CONFIG_JSON).is_file():
        raise UserError(
            f"checkpoint.load_path {shown_path(str(path))} is a Hugging Face folder, which holds no optimizer state. "
            "Set checkpoint.no_load_optim to true to start at step 1 with its weights."
        )
    return open_checkpoint(path)


def _going_on(checkpoint: Checkpoint, checked: Checked, note: Callable[[str], None]) -> Start:
    name = shown_path(str(checkpoint.folder))
    progress = progress_in(checkpoint.common, f"{name}/{COMMON}")
    if progress is None or not checkpoint.has_optimizer_state:
        raise UserError(
            f"{name} holds no optimizer state (it was imported, or saved with checkpoint.no_save_optim), so that "
            "training cannot go on from it. With it as checkpoint.load_path and checkpoint.no_load_optim true a run "
            "starts at step 1 with its weights."
        )
    _refuse_other_run(progress, checked, name)
    changes = _changes(progress.settings, settings_of(checked.config))
    if changes:
        note(f"the config has changed since {name} was written, and the new values hold: {', '.join(changes)}.")
    start = Start(checkpoint.folder, checkpoint, progress)
    again = progress.consumed_samples % checked.numbers.global_batch_size
    if again:
        note(
            f"global_batch_size was {progress.global_batch_size} and is {checked.numbers.global_batch_size} now: "
            f"{progress.consumed_samples} samples are {start.steps_done(checked.numbers)} whole steps of this size, "
            f"and the last {again} of them are consumed once more."
        )
    return start


def _refuse_other_run(progress: Progress, checked: Checked, name: str) -> None:
    """Raises UserError when going on would neither repeat the straight run nor be what the config says."""
    config, numbers = checked.config, checked.numbers
    compared = (
        ("training.seed", progress.seed, config.training.seed),
        ("train_dataset.dataloader.config.seq_length", progress.seq_length, numbers.seq_length),
        ("optimizer.type", progress.optimizer, config.optimizer.type),
    )
    faults = [f"{key} is {now}, the checkpoint was written with {then}." for key, then, now in compared if then != now]
    if faults:
        raise UserError(
            f"This run cannot go on from {name}. {' '.join(faults)} Set it back; or, to start at step 1 "
            "with the weights alone, give it as checkpoint.load_path with checkpoint.no_load_optim true."
        )


def settings_of(config: Config) -> dict[str, object]:
    """The leaves of the sections `TOLD` by dotted path, as JSON reads them back."""
    leaves = {
        path: value_at(config, path)
        for path, spec in specs_of(Config).items()
        if path.partition(".")[0] in TOLD and nested_section(spec.annotation) is None
    }
    found: dict[str, object] = json.loads(json.dumps(leaves))
    return found


def _changes(before: Mapping[str, object], now: Mapping[str, object]) -> list[str]:
    return [
        f"{key} {json.dumps(now[key], ensure_ascii=False)} (was {json.dumps(before[key], ensure_ascii=False)})"
        for key in before
        if key in now and before[key] != now[key]
    ]
