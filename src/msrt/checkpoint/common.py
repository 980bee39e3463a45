"""common.json: how far training had come, and the model that the weights belong to."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from msmigrate.problems import UnreadableError
from msmigrate.pynative import Model

MODEL = "model"
COPIES = "copies"


def common_of(
    step: int, section: Model | None, *, global_batch_size: int = 0, copies: Sequence[str] = ()
) -> dict[str, object]:
    """The content of common.json after `step` optimizer steps, MindFormers' keys first.

    `section` is the `model:` section of the pynative.yaml, every key, None for weights that were imported without one:
    their model is in the config.json that is kept with them. `copies` are Hugging Face tensors that came along as
    copies of others.
    """
    return {
        "epoch_num": 0,
        "step_num": step,
        "global_step": step,
        "loss_scale": None,
        "global_batch_size": global_batch_size,
        MODEL: None if section is None else dataclasses.asdict(section),
        COPIES: list(copies),
    }


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
