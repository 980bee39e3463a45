"""Rotary positions and softmax scale of DeepSeek-V3, in transformers' and in MindFormers' arithmetic."""

from collections.abc import Mapping
from dataclasses import dataclass

from msmigrate.problems import UserError
from msmigrate.pynative.model import Model
from msrt.config.problem import shown
from msrt.models.deepseek_v3.shape import DeepSeekV3Shape
from msrt.models.rope import number, required_number, transformers_rotary, yarn
from msrt.nn.rotary import RotarySpec, mindformers_angle_scale, yarn_mscale

# MindFormers' defaults of keys that a model section leaves out.
MINDFORMERS_FACTOR = 40.0
MINDFORMERS_MSCALE = 0.707


@dataclass(frozen=True)
class Positions:
    """How positions enter attention: the rotation, and the factor on query · key."""

    rotary: RotarySpec
    softmax_scale: float


def transformers_positions(shape: DeepSeekV3Shape, settings: Mapping[str, object]) -> Positions:
    """Positions as transformers computes them; `settings` is rope_scaling or rope_parameters, empty for none.

    The softmax scale grows with mscale_all_dim, and the amplitude lies on cos and sin.
    """
    rotary = transformers_rotary(
        settings,
        dim=shape.qk_rope_head_dim,
        theta=shape.rope_theta,
        max_position_embeddings=shape.max_position_embeddings,
    )
    plain_scale = (shape.qk_nope_head_dim + shape.qk_rope_head_dim) ** -0.5
    all_dim = number(settings, "mscale_all_dim", 0.0)
    if not all_dim or settings.get("rope_type", settings.get("type", "default")) == "default":
        return Positions(rotary, plain_scale)
    growth = yarn_mscale(required_number(settings, "factor"), all_dim)
    return Positions(rotary, plain_scale * growth * growth)


def mindformers_positions(shape: DeepSeekV3Shape, model: Model, factor: float | None) -> Positions:
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
    factor = required_number(scaling, "factor")
    mscale = number(scaling, "mscale", MINDFORMERS_MSCALE)
    all_dim = number(scaling, "mscale_all_dim", MINDFORMERS_MSCALE)
    growth = yarn_mscale(factor, mscale)
    scale = growth * growth * (shape.qk_nope_head_dim + shape.qk_rope_head_dim) ** -0.5
    if kind == "rope":
        return Positions(RotarySpec(shape.qk_rope_head_dim, shape.rope_theta), scale)
    stretch = yarn(scaling, factor, int(required_number(scaling, "original_max_position_embeddings")), shape.rope_theta)
    angle_scale = mindformers_angle_scale(factor, mscale, all_dim)
    return Positions(RotarySpec(shape.qk_rope_head_dim, shape.rope_theta, stretch, angle_scale), scale)


def _from_mapping(model: Model) -> dict[str, object]:
    """The section's `rope_scaling` with one name for its type and always an original length."""
    given = dict(model.rope_scaling or {})
    kind = given.pop("type", None) or given.pop("rope_type", None)
    original = given.pop("original_max_position_embeddings", None) or model.seq_length
    return {**given, "type": kind, "original_max_position_embeddings": original}
