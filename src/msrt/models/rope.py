"""Rotary settings in Hugging Face's form, as transformers computes them."""

from collections.abc import Mapping

from msmigrate.problems import UserError
from msrt.config.problem import shown
from msrt.nn.rotary import Llama3, RotarySpec, Yarn, transformers_amplitude

LARGEST = 1e30
"""Of a number: products of settings stay finite in float32."""

BETAS = {"beta_fast": 32.0, "beta_slow": 1.0}
"""YaRN's bounds where the settings leave them out."""

KINDS = ("default", "linear", "llama3", "yarn")


def transformers_rotary(
    settings: Mapping[str, object], *, dim: int, theta: float, max_position_embeddings: int
) -> RotarySpec:
    """The rotation of `dim` lanes by rope_parameters or rope_scaling; empty settings are plain rotary positions.

    `theta` and `max_position_embeddings` stand where the settings leave out rope_theta and the length before
    stretching. Raises UserError for a kind that is not computed here, a missing number, and what is no number.
    """
    theta = positive("rope_theta", number(settings, "rope_theta", theta))
    kind = settings.get("rope_type", settings.get("type", "default"))
    if kind not in KINDS:
        raise UserError(f"model.rope_scaling has the type {shown(kind)}; computed here are {', '.join(KINDS)}.")
    if number(settings, "partial_rotary_factor", 1.0) != 1.0:
        turned = settings["partial_rotary_factor"]
        raise UserError(f"model.rope_scaling has partial_rotary_factor {turned}; heads are rotated whole here.")
    if kind == "default":
        return RotarySpec(dim, theta)
    factor = positive("factor", required_number(settings, "factor"))
    if kind == "linear":
        return RotarySpec(dim, theta, angle_scale=1 / factor)
    if kind == "llama3":
        length = int(required_number(settings, "original_max_position_embeddings"))
        low, high = (required_number(settings, name) for name in ("low_freq_factor", "high_freq_factor"))
        if high <= low:
            raise UserError(f"model.rope_scaling has high_freq_factor {high:g}, not above low_freq_factor {low:g}.")
        return RotarySpec(dim, theta, Llama3(factor, length, low, high))
    if settings.get("truncate") is False:
        raise UserError("model.rope_scaling has truncate: false; YaRN's bounds are whole lanes here.")
    mscale, all_dim = number(settings, "mscale", 0.0), number(settings, "mscale_all_dim", 0.0)
    amplitude = number(settings, "attention_factor", transformers_amplitude(factor, mscale, all_dim))
    length = int(number(settings, "original_max_position_embeddings", max_position_embeddings))
    return RotarySpec(dim, theta, yarn(settings, factor, length, theta), amplitude=amplitude)


def yarn(settings: Mapping[str, object], factor: float, original_length: int, theta: float) -> Yarn:
    """YaRN with the bounds of the settings, for frequencies of base `theta`.

    Raises UserError for a length before stretching below 1, and for numbers whose logarithm YaRN could not take.
    """
    if original_length < 1:
        raise UserError(f"YaRN's length before scaling is {original_length}; it must be at least 1.")
    if theta <= 1:
        raise UserError(f"rope_theta is {theta:g}; with YaRN it must be above 1.")
    fast, slow = (positive(name, number(settings, name, usual)) for name, usual in BETAS.items())
    return Yarn(positive("factor", factor), original_length, fast, slow)


def number(settings: Mapping[str, object], name: str, default: float) -> float:
    """The number `name`, or the default where it is missing or null. Raises UserError for what is no number."""
    value = settings.get(name)
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise UserError(f"The rotary setting {name} is {shown(value)}; it must be a number.")
    if not -LARGEST <= value <= LARGEST:  # NaN is not either
        raise UserError(f"The rotary setting {name} must be a finite number of at most {LARGEST:g}.")
    return float(value)


def positive(name: str, value: float) -> float:
    """`value`, that of the setting `name`. Raises UserError unless it is above 0."""
    if value <= 0:
        raise UserError(f"The rotary setting {name} is {value:g}; it must be above 0.")
    return value


def required_number(settings: Mapping[str, object], name: str) -> float:
    """The number `name`. Raises UserError when it is missing."""
    if settings.get(name) is None:
        kind = settings.get("rope_type", settings.get("type"))
        raise UserError(f"The rotary settings (model.rope_scaling) have no {name}, which the type {kind!r} needs.")
    return number(settings, name, 0.0)
