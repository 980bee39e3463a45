"""Rotary positions and softmax scale of DeepSeek-V3, in transformers' and in MindFormers' arithmetic."""

from collections.abc import Mapping
from dataclasses import dataclass

from msmigrate.problems import UserError
from msmigrate.pynative.model import Model
from msrt.config.problem import shown
from msrt.models.deepseek_v3.shape import Shape
from msrt.nn.rotary import RotarySpec, Yarn, mindformers_angle_scale, transformers_amplitude, yarn_mscale

# MindFormers' defaults of keys that a model section leaves out.
MINDFORMERS_FACTOR = 40.0
MINDFORMERS_MSCALE = 0.707


@dataclass(frozen=True)
class Positions:
    """How positions enter attention: the rotation, and the factor on query · key."""

    rotary: RotarySpec
    softmax_scale: float


def transformers_positions(shape: Shape, scaling: Mapping[str, object]) -> Positions:
    """Positions as transformers computes them; `scaling` is rope_scaling or rope_parameters, empty for none.

    The softmax scale grows with mscale_all_dim, and the amplitude lies on cos and sin.
    """
    plain_scale = (shape.qk_nope_head_dim + shape.qk_rope_head_dim) ** -0.5
    theta = _number(scaling, "rope_theta", shape.rope_theta)
    kind = scaling.get("rope_type", scaling.get("type", "default"))
    if kind == "default":
        return Positions(RotarySpec(shape.qk_rope_head_dim, theta), plain_scale)
    if kind != "yarn":
        raise UserError(
            f"rope_scaling has the type {shown(kind)}; DeepSeek-V3 is computed with 'yarn' or 'default' only."
        )
    factor = _required_number(scaling, "factor")
    mscale, all_dim = _number(scaling, "mscale", 0.0), _number(scaling, "mscale_all_dim", 0.0)
    amplitude = _number(scaling, "attention_factor", transformers_amplitude(factor, mscale, all_dim))
    yarn = _yarn(
        scaling, factor, int(_number(scaling, "original_max_position_embeddings", shape.max_position_embeddings))
    )
    growth = yarn_mscale(factor, all_dim) if all_dim else 1.0
    return Positions(
        RotarySpec(shape.qk_rope_head_dim, theta, yarn, amplitude=amplitude), plain_scale * growth * growth
    )


def mindformers_positions(shape: Shape, model: Model, factor: float | None) -> Positions:
    """Positions as MindFormers' PyNative layers compute them; `factor` is the section's YaRN factor.

    The softmax scale grows with mscale, even when positions are plain rope; the ratio of the two mscales lies on the
    angle; max_position_embeddings is the length before scaling. `rope_scaling` overrides the flat keys, and without
    an original length in it seq_length is taken.
    """
    scaling: dict[str, object] = {
        "type": model.position_embedding_type or "rope",
        "factor": MINDFORMERS_FACTOR if factor is None else factor,
        "original_max_position_embeddings": shape.max_position_embeddings,
    }
    for name in ("beta_fast", "beta_slow", "mscale", "mscale_all_dim"):
        if getattr(model, name) is not None:
            scaling[name] = getattr(model, name)
    if model.rope_scaling is not None:
        scaling.update(_from_mapping(model))
    kind = scaling["type"]
    if kind not in ("rope", "yarn"):
        raise UserError(
            f"model.position_embedding_type is {shown(kind)}; DeepSeek-V3 is computed with 'rope' or 'yarn' only."
        )
    factor = _required_number(scaling, "factor")
    mscale = _number(scaling, "mscale", MINDFORMERS_MSCALE)
    all_dim = _number(scaling, "mscale_all_dim", MINDFORMERS_MSCALE)
    growth = yarn_mscale(factor, mscale)
    scale = growth * growth * (shape.qk_nope_head_dim + shape.qk_rope_head_dim) ** -0.5
    if kind == "rope":
        return Positions(RotarySpec(shape.qk_rope_head_dim, shape.rope_theta), scale)
    yarn = _yarn(scaling, factor, int(_required_number(scaling, "original_max_position_embeddings")))
    angle_scale = mindformers_angle_scale(factor, mscale, all_dim)
    return Positions(RotarySpec(shape.qk_rope_head_dim, shape.rope_theta, yarn, angle_scale), scale)


def _from_mapping(model: Model) -> dict[str, object]:
    """The section's `rope_scaling` with one name for its type and always an original length."""
    given = dict(model.rope_scaling or {})
    kind = given.pop("type", None) or given.pop("rope_type", None)
    original = given.pop("original_max_position_embeddings", None) or model.seq_length
    return {**given, "type": kind, "original_max_position_embeddings": original}


def _yarn(scaling: Mapping[str, object], factor: float, original_length: int) -> Yarn:
    if original_length < 1:
        raise UserError(f"YaRN's length before scaling is {original_length}; it must be at least 1.")
    return Yarn(factor, original_length, _number(scaling, "beta_fast", 32.0), _number(scaling, "beta_slow", 1.0))


def _number(scaling: Mapping[str, object], name: str, default: float) -> float:
    value = scaling.get(name)
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise UserError(f"The rotary setting {name} is {shown(value)}; it must be a number.")
    return float(value)


def _required_number(scaling: Mapping[str, object], name: str) -> float:
    if scaling.get(name) is None:
        raise UserError(f"The rotary settings (rope_scaling) have no {name}, which YaRN needs.")
    return _number(scaling, name, 0.0)
