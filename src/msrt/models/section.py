"""What all families read alike from the `model:` section of a pynative.yaml, in MindFormers' arithmetic."""

import dataclasses
from typing import TypeVar, cast

from msmigrate.problems import UserError
from msmigrate.pynative.model import Model
from msrt.config.problem import shown
from msrt.models.expert_shape import ExpertShape
from msrt.models.shape import Shape
from msrt.nn.balance import BalanceKind, BalanceSpec
from msrt.nn.moe import MoESpec
from msrt.nn.router import RouterSpec, ScoreFunction
from msrt.ops.precision import Dtype, Precision

T = TypeVar("T")


def shape_values(model: Model, shape: type[Shape]) -> dict[str, object]:
    """The section's values under the names of `shape`, without those that it leaves out."""
    names = [field.name for field in dataclasses.fields(shape) if hasattr(model, field.name)]
    given = {name: getattr(model, name) for name in names if getattr(model, name) is not None}
    if model.untie_embeddings_and_output_weights is False:
        given["tie_word_embeddings"] = True
    return given


def one_of(model: Model, manual: str, reader: str) -> T | None:
    """The value of a setting that has the manual's name and the one MindFormers reads; both may be given if equal."""
    left, right = getattr(model, manual), getattr(model, reader)
    if left is not None and right is not None and left != right:
        raise UserError(
            f"model.{manual} is {shown(left)} and model.{reader} is {shown(right)}: two names of one setting; keep one."
        )
    value: T | None = right if left is None else left
    return value


def mixture(shape: ExpertShape, model: Model, *, default_score: ScoreFunction, default_bias: bool) -> MoESpec:
    """The mixture of experts of a section; the defaults are the family's of the scores and of the expert bias.

    Raises UserError for a balance loss that PyNative mode does not have.
    """
    if shape.n_group > 1 and shape.num_experts_per_tok % shape.topk_group:
        # MindFormers takes equally many experts from each group; its routers refuse other numbers.
        raise UserError(
            f"model.num_experts_per_tok is {shape.num_experts_per_tok}, which is not a multiple of model.topk_group "
            f"({shape.topk_group})."
        )
    asked: ScoreFunction | None = one_of(model, "scoring_func", "moe_router_score_function")
    score = asked or default_score
    biased = default_bias if model.moe_router_enable_expert_bias is None else model.moe_router_enable_expert_bias
    return MoESpec(
        shape.hidden_size,
        shape.moe_intermediate_size,
        _shared_width(shape, model),
        router(shape, score),
        # MindFormers steers with a bias only where scores do not sum to one.
        expert_bias=biased and score != "softmax",
        balance=_balance(shape, model, score),
    )


def router(shape: ExpertShape, score: ScoreFunction) -> RouterSpec:
    """The router of the sizes `shape`."""
    return RouterSpec(
        shape.n_routed_experts, shape.num_experts_per_tok, shape.n_group, shape.topk_group, score,
        shape.norm_topk_prob, shape.routed_scaling_factor,
    )  # fmt: skip


def bias_update_rate(model: Model) -> float:
    """The step of the expert bias, MindFormers' default when the section leaves it out."""
    return 1e-3 if model.moe_router_bias_update_rate is None else model.moe_router_bias_update_rate


def moe_layers(shape: ExpertShape, frequency: int | tuple[int, ...] | None) -> tuple[int, ...]:
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


def precision(model: Model, *, experts: bool) -> Precision:
    """The types that the section asks for; the router's for a family with `experts`."""
    router_type: str | None = one_of(model, "router_dense_type", "moe_router_dtype") if experts else None
    return Precision(
        params=cast(Dtype, model.params_dtype),
        compute=cast(Dtype, model.compute_dtype),
        norm=cast(Dtype, model.layernorm_compute_dtype),
        softmax=cast(Dtype, model.softmax_compute_dtype),
        rotary=cast(Dtype, model.rotary_dtype),
        router=cast(Dtype, router_type or "float32"),
    )


def longest_positions(model: Model) -> int | None:
    """max_position_embeddings where it bounds the sequences; with YaRN it is their length before scaling."""
    return None if model.position_embedding_type == "yarn" else model.max_position_embeddings


def _shared_width(shape: ExpertShape, model: Model) -> int:
    if shape.n_shared_experts == 0:
        return 0
    if model.moe_shared_expert_intermediate_size is not None:
        return model.moe_shared_expert_intermediate_size
    return shape.moe_intermediate_size * shape.n_shared_experts


def _balance(shape: ExpertShape, model: Model, score: ScoreFunction) -> BalanceSpec | None:
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
    return BalanceSpec(cast(BalanceKind, kind), coefficient, score, shape.num_experts_per_tok)
