"""What all families read alike from a Hugging Face config.json, of transformers 5 or of the hub's older style."""

import json
from collections.abc import Mapping

from msmigrate.problems import UserError
from msrt.config.problem import shown


def refuse_other_values(values: Mapping[str, object], family: str, expected: Mapping[str, tuple[object, ...]]) -> None:
    """Raises UserError for another `family`, quantised weights, and keys whose value is not among those `expected`."""
    if values.get("model_type") != family:
        raise UserError(
            f"config.json has the model_type {shown(values.get('model_type'))}; this network is {family}'s."
        )
    for name, allowed in {**expected, "quantization_config": (None,)}.items():
        if name in values and values[name] not in allowed:
            raise UserError(
                f"config.json has {name}: {json.dumps(values[name])}; only {json.dumps(allowed[0])} is computed here."
            )


def rope_settings(values: Mapping[str, object]) -> Mapping[str, object]:
    """The rotary settings: rope_parameters, or rope_scaling, or nothing. Raises UserError when they are no mapping."""
    settings = values.get("rope_parameters") or values.get("rope_scaling") or {}
    if not isinstance(settings, Mapping):
        raise UserError(f"rope_scaling is {shown(settings)}; it must be a mapping or null.")
    return settings
