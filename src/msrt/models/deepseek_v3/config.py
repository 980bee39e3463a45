"""The configuration of a DeepSeek-V3 model, checked, from a Hugging Face config.json or a pynative.yaml."""

from collections.abc import Mapping
from dataclasses import dataclass

from msmigrate.problems import UserError
from msmigrate.pynative.model import Model
from msrt.config.problem import shown
from msrt.models.config import DecoderConfig
from msrt.models.deepseek_v3.positions import Positions, mindformers_positions, transformers_positions
from msrt.models.deepseek_v3.section_keys import refuse_unsupported
from msrt.models.deepseek_v3.shape import DeepSeekV3Shape
from msrt.models.hf import ignored_settings, refuse_other_values, rope_settings, without_mtp
from msrt.models.section import (
    bias_update_rate,
    longest_positions,
    mixture,
    moe_layers,
    one_of,
    precision,
    router,
    shape_values,
)
from msrt.nn.mla import MLASpec
from msrt.nn.moe import MoESpec

FAMILY = "deepseek_v3"

HF_VALUES: Mapping[str, tuple[object, ...]] = {
    "attention_bias": (False, None), "rope_interleave": (True, None), "partial_rotary_factor": (1.0, None),
}  # fmt: skip
"""Keys of a config.json that must have one of these values."""

TRANSFORMERS_LATENT_EPS = 1e-6
"""Epsilon of transformers' norms on the MLA latents, whatever rms_norm_eps says."""


@dataclass(frozen=True, kw_only=True)
class DeepSeekV3Config(DecoderConfig):
    """One model; `attention` holds for every layer."""

    attention: MLASpec
    moe: MoESpec
    model_type: str = FAMILY

    @classmethod
    def from_hf(cls, values: Mapping[str, object]) -> "DeepSeekV3Config":
        """The model of a Hugging Face config.json, in transformers' arithmetic, of version 5 or of the hub's style.

        Raises UserError for another family, wrong types, broken relations and settings that are not computed here.
        """
        refuse_other_values(values, FAMILY, HF_VALUES)
        named = {name: 0 if value is None and name in _NULL_IS_ZERO else value for name, value in values.items()}
        # transformers knows no multi-token prediction, whatever the file says.
        shape = DeepSeekV3Shape.of(FAMILY, {**named, "num_nextn_predict_layers": 0})
        moe = MoESpec(
            shape.hidden_size,
            shape.moe_intermediate_size,
            shape.moe_intermediate_size * shape.n_shared_experts,
            router(shape, "sigmoid"),
            expert_bias=True,
            balance=None,
        )
        positions = transformers_positions(shape, rope_settings(values))
        return cls(
            **shape.sizes(),
            attention=_attention(shape, positions, TRANSFORMERS_LATENT_EPS),
            rotary=positions.rotary,
            max_positions=shape.max_position_embeddings,
            moe=moe,
            moe_layers=tuple(range(shape.first_k_dense_replace, shape.num_hidden_layers)),
            remarks=ignored_settings(values, NOT_READ) + without_mtp(values),
        )

    @classmethod
    def from_model_section(cls, model: Model) -> "DeepSeekV3Config":
        """The model of a pynative.yaml's `model:` section, in MindFormers' arithmetic.

        Keys that are None take DeepSeek-V3's default, except q_lora_rank, whose None means no query latent: complete a
        section with the family's defaults first. Raises UserError as `from_hf` does.
        """
        if model.model_type != FAMILY:
            raise UserError(f"model.model_type is {shown(model.model_type)}; this network is deepseek_v3's.")
        refuse_unsupported(model)
        unsaid = model.num_nextn_predict_layers is None and model.mtp_loss_scaling_factor is None
        values: dict[str, object] = {"num_nextn_predict_layers": 0} if unsaid else {}
        values |= {**shape_values(model, DeepSeekV3Shape), "q_lora_rank": model.q_lora_rank}
        shape = DeepSeekV3Shape.of(FAMILY, values)
        positions = mindformers_positions(shape, model, one_of(model, "scaling_factor", "rotary_scaling_factor"))
        return cls(
            **shape.sizes(),
            attention=_attention(shape, positions, shape.rms_norm_eps if model.qk_layernorm else None),
            rotary=positions.rotary,
            moe=mixture(shape, model, default_score="sigmoid", default_bias=True),
            moe_layers=moe_layers(shape, model.moe_layer_freq),
            bias_update_rate=bias_update_rate(model),
            mtp_loss_scaling_factor=_mtp_loss_scaling_factor(shape, model),
            max_sequence=model.seq_length,
            max_positions=longest_positions(model),
            precision=precision(model, experts=True),
            remarks=(WITHOUT_MTP,) if unsaid else (),
        )


WITHOUT_MTP = (
    "model.num_nextn_predict_layers and model.mtp_loss_scaling_factor are left out: the main model trains alone. "
    "MindFormers 2.x would add one layer of multi-token prediction and stop at its missing weight; set "
    "num_nextn_predict_layers to 0 to mean the same there."
)

NOT_READ: Mapping[str, tuple[object, ...]] = {
    "scoring_func": ("sigmoid",), "topk_method": ("noaux_tc",), "moe_layer_freq": (1,),
}  # fmt: skip
"""Keys of the hub's files that transformers' class leaves alone, and what is computed whatever they say."""

_NULL_IS_ZERO = ("n_shared_experts", "n_group", "topk_group", "first_k_dense_replace")


def _mtp_loss_scaling_factor(shape: DeepSeekV3Shape, model: Model) -> float | None:
    """The weight of the loss of multi-token prediction, None without its layer."""
    if shape.num_nextn_predict_layers == 0:
        return None
    if model.mtp_loss_scaling_factor is None:
        raise UserError(
            "model.mtp_loss_scaling_factor is missing, and model.num_nextn_predict_layers is 1: the weight of that "
            "layer's loss has no default, and MindFormers stops without one; set it, such as to 0.3, or set "
            "num_nextn_predict_layers to 0."
        )
    return model.mtp_loss_scaling_factor


def _attention(shape: DeepSeekV3Shape, positions: Positions, latent_norm_eps: float | None) -> MLASpec:
    return MLASpec(
        shape.hidden_size, shape.num_attention_heads, shape.q_lora_rank, shape.kv_lora_rank, shape.qk_nope_head_dim,
        shape.qk_rope_head_dim, shape.v_head_dim, positions.softmax_scale, latent_norm_eps,
    )  # fmt: skip
