"""The configuration of a DeepSeek-V3 model, checked, from a Hugging Face config.json or a pynative.yaml."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeVar, cast

from msmigrate.problems import UserError
from msmigrate.pynative.model import Model
from msrt.config.problem import shown
from msrt.models.deepseek_v3.positions import Positions, mindformers_positions, transformers_positions
from msrt.models.deepseek_v3.section_keys import refuse_unsupported
from msrt.models.deepseek_v3.shape import Shape
from msrt.nn.balance import BalanceKind, BalanceSpec
from msrt.nn.mla import MLASpec
from msrt.nn.moe import MoESpec
from msrt.nn.rotary import RotarySpec
from msrt.nn.router import RouterSpec, ScoreFunction

T = TypeVar("T")

TRANSFORMERS_LATENT_EPS = 1e-6
"""Epsilon of transformers' norms on the MLA latents, whatever rms_norm_eps says."""


@dataclass(frozen=True)
class DeepSeekV3Config:
    """One model: `attention` and `rotary` hold for every layer, `moe` for those in `moe_layers`."""

    vocab_size: int
    hidden_size: int
    intermediate_size: int
    """Width of a dense layer's MLP."""
    num_hidden_layers: int
    moe_layers: tuple[int, ...]
    """Numbers, from 0, of the layers with experts."""
    rms_norm_eps: float
    attention: MLASpec
    rotary: RotarySpec
    moe: MoESpec
    tie_word_embeddings: bool
    initializer_range: float
    """Standard deviation of the initial weights."""
    bias_update_rate: float = 0.0
    """Step of the expert bias."""
    max_sequence: int | None = None
    """Longest sequence taken; None for no bound."""
    precision: Mapping[str, str] = field(default_factory=dict)
    """Types the config asks for, by key; see `ops.device.precision_note`."""
    model_type: str = "deepseek_v3"

    @classmethod
    def from_hf(cls, values: Mapping[str, object]) -> "DeepSeekV3Config":
        """The model of a Hugging Face config.json, in transformers' arithmetic, of version 5 or of the hub's style.

        Raises UserError for another family, wrong types, broken relations and settings that are not computed here.
        """
        _refuse_hf(values)
        named = {name: 0 if value is None and name in _NULL_IS_ZERO else value for name, value in values.items()}
        # transformers has no MTP layer unless the file names one; the family's default is MindFormers'.
        shape = Shape.of({"num_nextn_predict_layers": 0, **named})
        scaling = values.get("rope_parameters") or values.get("rope_scaling") or {}
        if not isinstance(scaling, Mapping):
            raise UserError(f"rope_scaling is {shown(scaling)}; it must be a mapping or null.")
        return cls._assemble(
            shape,
            transformers_positions(shape, scaling),
            moe_layers=tuple(range(shape.first_k_dense_replace, shape.num_hidden_layers)),
            latent_norm_eps=TRANSFORMERS_LATENT_EPS,
            score_function="sigmoid",
            shared_intermediate_size=shape.moe_intermediate_size * shape.n_shared_experts,
            expert_bias=True,
        )

    @classmethod
    def from_model_section(cls, model: Model) -> "DeepSeekV3Config":
        """The model of a pynative.yaml's `model:` section, in MindFormers' arithmetic.

        Keys that are None take DeepSeek-V3's default, except q_lora_rank, whose None means no query latent: complete a
        section with the family's defaults first. Raises UserError as `from_hf` does.
        """
        if model.model_type != "deepseek_v3":
            raise UserError(f"model.model_type is {shown(model.model_type)}; this network is deepseek_v3's.")
        refuse_unsupported(model)
        shape = Shape.of(_shape_values(model))
        _check_choices_per_group(shape)
        function = _one_of(model, "scoring_func", "moe_router_score_function") or "sigmoid"
        return cls._assemble(
            shape,
            mindformers_positions(shape, model, _one_of(model, "scaling_factor", "rotary_scaling_factor")),
            moe_layers=_moe_layers(shape, model.moe_layer_freq),
            latent_norm_eps=shape.rms_norm_eps if model.qk_layernorm else None,
            score_function=cast(ScoreFunction, function),
            shared_intermediate_size=_shared_width(shape, model),
            # MindFormers steers with a bias only where scores do not sum to one.
            expert_bias=model.moe_router_enable_expert_bias is not False and function != "softmax",
            balance=_balance(shape, model, cast(ScoreFunction, function)),
            bias_update_rate=1e-3 if model.moe_router_bias_update_rate is None else model.moe_router_bias_update_rate,
            max_sequence=model.seq_length,
            precision=_precision(model),
        )

    @classmethod
    def _assemble(
        cls,
        shape: Shape,
        positions: Positions,
        *,
        moe_layers: tuple[int, ...],
        latent_norm_eps: float | None,
        score_function: ScoreFunction,
        shared_intermediate_size: int,
        expert_bias: bool,
        balance: BalanceSpec | None = None,
        bias_update_rate: float = 0.0,
        max_sequence: int | None = None,
        precision: Mapping[str, str] | None = None,
    ) -> "DeepSeekV3Config":
        attention = MLASpec(
            shape.hidden_size, shape.num_attention_heads, shape.q_lora_rank, shape.kv_lora_rank, shape.qk_nope_head_dim,
            shape.qk_rope_head_dim, shape.v_head_dim, positions.softmax_scale, latent_norm_eps,
        )  # fmt: skip
        router = RouterSpec(
            shape.n_routed_experts, shape.num_experts_per_tok, shape.n_group, shape.topk_group, score_function,
            shape.norm_topk_prob, shape.routed_scaling_factor,
        )  # fmt: skip
        moe = MoESpec(
            shape.hidden_size, shape.moe_intermediate_size, shared_intermediate_size, router, expert_bias, balance
        )
        return cls(
            shape.vocab_size, shape.hidden_size, shape.intermediate_size, shape.num_hidden_layers, moe_layers,
            shape.rms_norm_eps, attention, positions.rotary, moe, shape.tie_word_embeddings, shape.initializer_range,
            bias_update_rate, max_sequence, precision or {},
        )  # fmt: skip


_NULL_IS_ZERO = ("n_shared_experts", "n_group", "topk_group", "first_k_dense_replace", "num_nextn_predict_layers")


def _refuse_hf(values: Mapping[str, object]) -> None:
    if values.get("model_type") != "deepseek_v3":
        raise UserError(
            f"config.json has the model_type {shown(values.get('model_type'))}; this network is deepseek_v3's."
        )
    expected = {"attention_bias": (False, None), "rope_interleave": (True, None), "quantization_config": (None,)}
    for name, allowed in expected.items():
        if name in values and values[name] not in allowed:
            raise UserError(
                f"config.json has {name}: {json.dumps(values[name])}; only {json.dumps(allowed[0])} is computed here."
            )


def _shape_values(model: Model) -> dict[str, object]:
    """The section's values under the names of `Shape`, without those that it leaves out."""
    names = Shape.__dataclass_fields__
    given = {name: getattr(model, name) for name in names if getattr(model, name) is not None}
    given["q_lora_rank"] = model.q_lora_rank
    if model.untie_embeddings_and_output_weights is False:
        given["tie_word_embeddings"] = True
    return given


def _one_of(model: Model, manual: str, reader: str) -> T | None:
    """The value of a setting that has the manual's name and the one MindFormers reads; both may be given if equal."""
    left, right = getattr(model, manual), getattr(model, reader)
    if left is not None and right is not None and left != right:
        raise UserError(
            f"model.{manual} is {shown(left)} and model.{reader} is {shown(right)}: two names of one setting; keep one."
        )
    value: T | None = right if left is None else left
    return value


def _check_choices_per_group(shape: Shape) -> None:
    """MindFormers takes equally many experts from each group; its routers refuse other numbers."""
    if shape.n_group > 1 and shape.num_experts_per_tok % shape.topk_group:
        raise UserError(
            f"model.num_experts_per_tok is {shape.num_experts_per_tok}, which is not a multiple of model.topk_group "
            f"({shape.topk_group})."
        )


def _moe_layers(shape: Shape, frequency: int | tuple[int, ...] | None) -> tuple[int, ...]:
    """Layers with experts: all behind the first_k_dense_replace dense ones, or by the pattern of moe_layer_freq."""
    layers, dense = range(shape.num_hidden_layers), shape.first_k_dense_replace
    if isinstance(frequency, int) or frequency is None:
        step = 1 if frequency is None else frequency
        if not 1 <= step <= len(layers):
            raise UserError(f"model.moe_layer_freq is {step}; it must be from 1 to the {len(layers)} layers.")
        if dense and step > 1:
            raise UserError(
                f"model.first_k_dense_replace is {dense} and model.moe_layer_freq is {step}: with leading dense layers "
                "every other layer has experts; set moe_layer_freq to 1."
            )
        return tuple(layer for layer in layers if layer >= dense and layer % step == 0)
    if len(frequency) != len(layers) or set(frequency) - {0, 1}:
        raise UserError(
            f"model.moe_layer_freq lists {len(frequency)} values; it must list a 0 (dense) or a 1 (experts) for each "
            f"of the {len(layers)} layers."
        )
    if dense and frequency != tuple(int(layer >= dense) for layer in layers):
        raise UserError(f"model.moe_layer_freq and model.first_k_dense_replace ({dense}) name different dense layers.")
    return tuple(layer for layer in layers if frequency[layer])


def _shared_width(shape: Shape, model: Model) -> int:
    if shape.n_shared_experts == 0:
        return 0
    if model.moe_shared_expert_intermediate_size is not None:
        return model.moe_shared_expert_intermediate_size
    return shape.moe_intermediate_size * shape.n_shared_experts


def _balance(shape: Shape, model: Model, function: ScoreFunction) -> BalanceSpec | None:
    """The load-balancing loss, None when its coefficient is 0 or left out."""
    coefficient = model.moe_aux_loss_coeff
    if not coefficient:
        return None
    kind = model.moe_router_load_balancing_type or "sub_seq_aux_loss (its default)"
    if kind not in ("seq_aux_loss", "aux_loss", "global_aux_loss"):
        raise UserError(
            f"model.moe_router_load_balancing_type is {kind} and model.moe_aux_loss_coeff is {coefficient}: PyNative "
            "has seq_aux_loss, aux_loss and global_aux_loss; choose one of them, or set the coefficient to 0."
        )
    return BalanceSpec(cast(BalanceKind, kind), coefficient, function, shape.num_experts_per_tok)


def _precision(model: Model) -> dict[str, str]:
    names = ("params_dtype", "compute_dtype", "layernorm_compute_dtype", "softmax_compute_dtype", "rotary_dtype")
    asked = {name: getattr(model, name) for name in names}
    router: str | None = _one_of(model, "router_dense_type", "moe_router_dtype")
    return asked if router is None else {**asked, "router_dense_type": router}
