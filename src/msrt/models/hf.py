"""What all families read alike from a Hugging Face config.json, of transformers 5 or of the hub's older style."""

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from msmigrate.problems import UserError
from msmigrate.pynative.families import FAMILY_DEFAULTS
from msmigrate.pynative.keys import specs_of
from msmigrate.pynative.model import Model
from msrt.config.problem import shown

EXPERTS = ("num_experts", "num_local_experts")
"""Names of the number of experts in files of Qwen3-MoE, the first one's value after the second's."""


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
    """The rotary settings: rope_parameters, or rope_scaling, or nothing.

    Raises UserError when they are no mapping, and when both are given and say different things.
    """
    given: dict[str, Mapping[str, object]] = {}
    for name in ("rope_parameters", "rope_scaling"):
        settings = values.get(name) or {}
        if not isinstance(settings, Mapping):
            raise UserError(f"{name} is {shown(settings)}; it must be a mapping or null.")
        if settings:
            given[name] = settings
    if len(given) == 2:
        left, right = (_plain_settings(settings, values.get("rope_theta")) for settings in given.values())
        differing = [name for name in left | right if left.get(name) != right.get(name)]
        if differing:
            name = differing[0]
            raise UserError(
                f"config.json has {name} {shown(left.get(name))} in rope_parameters and {shown(right.get(name))} in "
                "rope_scaling; readers differ in which of the two they take: keep one of them."
            )
    return next(iter(given.values()), {})


def _plain_settings(settings: Mapping[str, object], theta: object) -> dict[str, object]:
    """Rotary settings with one spelling of their type and with their base, without nulls."""
    kind = settings.get("rope_type", settings.get("type", "default"))
    named = {"rope_theta": theta, **settings, "rope_type": kind}
    return {name: value for name, value in named.items() if value is not None and name != "type"}


def ignored_settings(values: Mapping[str, object], computed: Mapping[str, tuple[object, ...]]) -> tuple[str, ...]:
    """One sentence for each key of a config.json that asks for something else than transformers' class computes.

    `computed` has such keys and the values that ask for nothing else, first the one to name.
    """
    return tuple(
        f"config.json has {name}: {json.dumps(values[name])}, which transformers' class of {values['model_type']} does "
        f"not read; computed is what {json.dumps(asked[0])} asks for."
        for name, asked in computed.items()
        if values.get(name) is not None and values[name] not in asked
    )


def without_mtp(values: Mapping[str, object]) -> tuple[str, ...]:
    """A sentence on layers of multi-token prediction that a config.json names; none when it names none."""
    layers = values.get("num_nextn_predict_layers")
    if not layers:
        return ()
    return (
        f"config.json has num_nextn_predict_layers: {json.dumps(layers)}; transformers has no multi-token prediction, "
        "so that the main model is taken alone. A pynative.yaml (--config) with that key takes the layer as well.",
    )


@contextmanager
def own_names(values: Mapping[str, object]) -> Iterator[None]:
    """Gives the keys in a UserError from inside the block the names that they have in the config.json `values`."""
    try:
        yield
    except UserError as error:
        named = re.sub(r"\bmodel\.(\w+)", lambda match: _own_name(match[1], values), str(error))
        raise UserError(named, status=error.status) from error


def _own_name(name: str, values: Mapping[str, object]) -> str:
    """The name in `values` of the model section's key `name`; for a key that is not there, its family's name."""
    if name == "rope_scaling":
        return "rope_parameters" if values.get("rope_parameters") else name
    spec, defaults = specs_of(Model).get(name), FAMILY_DEFAULTS.get(str(values.get("model_type")), {})
    aliases = () if spec is None else spec.key.aliases
    spellings = (name, *(EXPERTS if EXPERTS[0] in aliases else ()), *aliases)
    return next((one for given in (values, defaults) for one in spellings if one in given), name)
