"""The configuration of a model with grouped-query attention, checked, from a config.json or a pynative.yaml."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

from msmigrate.problems import UserError
from msmigrate.pynative.model import Model
from msrt.config.problem import shown
from msrt.models.config import DecoderConfig
from msrt.models.gqa.positions import section_rotary
from msrt.models.gqa.section_keys import refuse_unsupported
from msrt.models.gqa.shape import GQAShape
from msrt.models.gqa.traits import Traits
from msrt.models.hf import refuse_other_values, rope_settings, without_mtp
from msrt.models.rope import transformers_rotary
from msrt.models.section import longest_positions, precision, shape_values
from msrt.nn.gqa import GQASpec

S = TypeVar("S", bound=GQAShape)


@dataclass(frozen=True, kw_only=True)
class GQAConfig(DecoderConfig):
    """One model; `attention` holds for every layer."""

    attention: GQASpec


def hf_shape(values: Mapping[str, object], traits: Traits, shape: type[S]) -> S:
    """The sizes of a Hugging Face config.json, of transformers 5 or of the hub's style.

    Raises UserError for another family, wrong types, broken relations and settings that are not computed here.
    """
    refuse_other_values(values, traits.model_type, {**traits.hf_values, "partial_rotary_factor": (1.0, None)})
    kinds = values.get("layer_types") or []
    if not isinstance(kinds, list) or any(kind != "full_attention" for kind in kinds):
        raise UserError(f"config.json has layer_types: {json.dumps(kinds)}; every layer is full_attention here.")
    return shape.of(traits.model_type, values)


def hf_config(values: Mapping[str, object], traits: Traits, shape: GQAShape) -> GQAConfig:
    """The dense model of a config.json with the sizes `shape`, in transformers' arithmetic."""
    rotary = transformers_rotary(
        rope_settings(values),
        dim=shape.head_width,
        theta=shape.rope_theta,
        max_position_embeddings=shape.max_position_embeddings,
    )
    return GQAConfig(
        **shape.sizes(),
        model_type=traits.model_type,
        attention=_attention(shape, traits, proj_bias=shape.attention_bias),
        rotary=rotary,
        remarks=without_mtp(values),
        max_positions=shape.max_position_embeddings,
    )


def section_shape(model: Model, traits: Traits, shape: type[S]) -> S:
    """The sizes of a pynative.yaml's `model:` section; keys that are None take the family's default.

    Raises UserError as `hf_shape` does.
    """
    if model.model_type != traits.model_type:
        raise UserError(f"model.model_type is {shown(model.model_type)}; this network is {traits.model_type}'s.")
    refuse_unsupported(model, traits)
    return shape.of(traits.model_type, shape_values(model, shape))


def section_config(model: Model, traits: Traits, shape: GQAShape) -> GQAConfig:
    """The dense model of a section with the sizes `shape`, in MindFormers' arithmetic."""
    return GQAConfig(
        **shape.sizes(),
        model_type=traits.model_type,
        # MindFormers' attention_bias is of queries, keys and values; transformers' is of the output projection, too.
        attention=_attention(shape, traits, proj_bias=False),
        rotary=section_rotary(shape, model),
        max_sequence=model.seq_length,
        max_positions=longest_positions(model),
        precision=precision(model, experts=False),
    )


def _attention(shape: GQAShape, traits: Traits, *, proj_bias: bool) -> GQASpec:
    return GQASpec(
        shape.hidden_size,
        shape.num_attention_heads,
        shape.groups,
        shape.head_width,
        qk_norm_eps=shape.rms_norm_eps if traits.qk_norm else None,
        qkv_bias=shape.attention_bias,
        proj_bias=proj_bias,
    )
