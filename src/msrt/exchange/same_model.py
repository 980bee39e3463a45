"""Whether a pynative.yaml and a Hugging Face config.json describe one model, and where their arithmetic differs."""

import dataclasses
import json
from collections.abc import Iterator, Mapping
from typing import Any

from msmigrate.problems import UserError
from msmigrate.pynative import Model, Use, specs_of
from msmigrate.pynative.families import FAMILY_DEFAULTS
from msrt.models import keys_without_effect
from msrt.models.registry import ModelConfig

OF_TRAINING = frozenset(
    {
        "initializer_range", "moe_aux_loss_coeff", "attention_dropout", "mtp_loss_scaling_factor",
        "num_nextn_predict_layers",
    }
)  # fmt: skip
"""Keys that say how a model is trained, not what it computes; transformers knows no multi-token prediction."""

OF_POSITIONS = frozenset({"rope_scaling", "max_position_embeddings", "original_max_position_embeddings"})
"""Keys that the two sides mean differently: what they come to is compared instead."""

_NOT_COMPUTED = frozenset(
    {
        "balance", "bias_update_rate", "max_sequence", "max_positions", "precision", "initializer_range",
        "mtp_loss_scaling_factor", "remarks",
    }
)  # fmt: skip
"""Fields of a family's config that change no logit."""


def refuse_other_model(section: Model, section_name: str, values: Mapping[str, Any], values_name: str) -> None:
    """Raises UserError with a line for each key that the two give differently; keys that one leaves out are the
    family's defaults in a pynative.yaml, and not compared in a config.json."""
    lines = [
        f"{key}: {json.dumps(values[spelling])} in {values_name}, {json.dumps(ours)} in {section_name}"
        for key, spelling, ours in _compared(section, values)
        if _plain(ours) != _plain(values[spelling])
    ]
    if lines:
        raise UserError(f"{section_name} and {values_name} describe different models:\n" + "\n".join(lines))


def _compared(section: Model, values: Mapping[str, Any]) -> Iterator[tuple[str, str, object]]:
    """Each key that matters and that config.json gives: its name, its spelling there, and the section's value."""
    defaults = FAMILY_DEFAULTS.get(section.model_type or "", {})
    found: dict[str, tuple[str, object]] = {}
    for name, spec in specs_of(Model).items():
        spelling = next((known for known in (name, *spec.key.aliases) if known in values), None)
        if spelling is None or spec.key.use is not Use.USED or name in OF_TRAINING | OF_POSITIONS | {"architectures"}:
            continue
        ours = getattr(section, name)
        if ours is None and not spec.key.null_is_a_value:
            ours = next((defaults[known] for known in (name, *spec.key.aliases) if known in defaults), None)
        if ours is not None or spec.key.null_is_a_value:
            found[name] = (spelling, ours)
    kept: dict[str, Any] = {name: value for name, (_, value) in found.items()}
    filled = dataclasses.replace(section, **kept)
    idle = keys_without_effect(filled)
    return ((name, spelling, ours) for name, (spelling, ours) in found.items() if name not in idle)


def _plain(value: object) -> object:
    """Lists and tuples alike; a null and an empty list ask for the same."""
    return list(value) if isinstance(value, tuple) else value or None if isinstance(value, list) else value


def other_arithmetic(left: ModelConfig, right: ModelConfig) -> list[str]:
    """What the two configs of one model compute differently: `field: left value / right value`, None for no such
    field, in order."""
    ours, theirs = (dict(_leaves(dataclasses.asdict(config))) for config in (left, right))
    return [
        f"{path}: {ours.get(path)!r} / {theirs.get(path)!r}"
        for path in ours | theirs
        if ours.get(path) != theirs.get(path)
    ]


def _leaves(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, object]]:
    for name, value in values.items():
        if name in _NOT_COMPUTED:
            continue
        if isinstance(value, dict):
            yield from _leaves(value, f"{prefix}{name}.")
        else:
            yield prefix + name, value
