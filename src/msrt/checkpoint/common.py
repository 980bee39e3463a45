"""common.json: how far training had come, and the model that the weights belong to."""

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from msmigrate.problems import UnreadableError
from msmigrate.pynative import Model

MODEL = "model"
TRAINING = "training"
COPIES = "copies"


@dataclass(frozen=True)
class Progress:
    """How far a run had come, and what must be the same in the run that goes on.

    `updates` counts the optimizer's, fewer than `step` when steps were skipped, of which the last `skipped_in_a_row`.
    `settings` are leaves of the config by dotted path, to tell of what has changed.
    """

    run_id: str
    step: int
    consumed_samples: int
    updates: int
    skipped_in_a_row: int
    optimizer: str
    global_batch_size: int
    seq_length: int
    seed: int
    settings: Mapping[str, object]


def common_of(
    step: int,
    section: Model | None,
    *,
    global_batch_size: int = 0,
    copies: Sequence[str] = (),
    progress: Progress | None = None,
) -> dict[str, object]:
    """The content of common.json after `step` optimizer steps, MindFormers' keys first.

    `section` is the `model:` section of the pynative.yaml, every key, None for weights that were imported without one:
    their model is in the config.json that is kept with them. `copies` are Hugging Face tensors that came along as
    copies of others. `progress` is what a run needs to go on.
    """
    return {
        "epoch_num": 0,
        "step_num": step,
        "global_step": step,
        "loss_scale": None,
        "global_batch_size": global_batch_size,
        MODEL: None if section is None else dataclasses.asdict(section),
        COPIES: list(copies),
        "consumed_samples": 0 if progress is None else progress.consumed_samples,
        TRAINING: None if progress is None else dataclasses.asdict(progress),
    }


def progress_in(common: Mapping[str, object], source: str) -> Progress | None:
    """The progress in common.json, None for weights that were imported; `source` is the file's name for the message.

    Raises UnreadableError when it is not what `common_of` gives.
    """
    given = common.get(TRAINING)
    if given is None:
        return None
    kinds = {field.name: type_ for field, type_ in zip(dataclasses.fields(Progress), _KINDS, strict=True)}
    if not isinstance(given, dict) or {name: type(value) for name, value in given.items()} != kinds:
        raise UnreadableError(f"{source} does not say how far training had come; it was written by another version.")
    return Progress(**given)


_KINDS = (str, int, int, int, int, str, int, int, int, dict)
"""The types of `Progress`'s fields in JSON."""


def copies_in(common: Mapping[str, object]) -> frozenset[str]:
    """The Hugging Face tensors that came along as copies of others."""
    given = common.get(COPIES)
    return frozenset(map(str, given)) if isinstance(given, list) else frozenset()


def model_section(common: Mapping[str, object], source: str) -> Model | None:
    """The model section in common.json, None without one; `source` is the file's name for the message.

    Raises UnreadableError when it is not what `common_of` gives.
    """
    given = common.get(MODEL)
    if given is None:
        return None
    known = {field.name for field in dataclasses.fields(Model)}
    if not isinstance(given, dict) or given.keys() - known:
        foreign = sorted(given.keys() - known) if isinstance(given, dict) else []
        raise UnreadableError(
            f"{source} has a model section that this msrt does not know"
            f"{': ' + ', '.join(foreign) if foreign else ''}; it was written by another version."
        )
    return Model(**{name: _frozen(value) for name, value in given.items()})


def _frozen(value: Any) -> Any:
    """JSON has lists where a section has tuples."""
    return tuple(map(_frozen, value)) if isinstance(value, list) else value
