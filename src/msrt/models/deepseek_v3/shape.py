"""The sizes of a DeepSeek-V3 model, and what must hold between them."""

import dataclasses
import types
import typing
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from msmigrate.problems import UserError
from msmigrate.pynative.families import FAMILY_DEFAULTS
from msrt.config.problem import shown


@dataclass(frozen=True)
class Shape:
    """Sizes under their Hugging Face names."""

    vocab_size: int
    hidden_size: int
    intermediate_size: int
    num_hidden_layers: int
    num_nextn_predict_layers: int
    num_attention_heads: int
    q_lora_rank: int | None
    kv_lora_rank: int
    qk_nope_head_dim: int
    qk_rope_head_dim: int
    v_head_dim: int
    max_position_embeddings: int
    rope_theta: float
    rms_norm_eps: float
    hidden_act: str
    tie_word_embeddings: bool
    initializer_range: float
    first_k_dense_replace: int
    n_routed_experts: int
    num_experts_per_tok: int
    n_shared_experts: int
    moe_intermediate_size: int
    n_group: int
    """Expert groups; 0 and 1: the choice is not limited to groups."""
    topk_group: int
    norm_topk_prob: bool
    routed_scaling_factor: float

    @classmethod
    def of(cls, values: Mapping[str, object]) -> "Shape":
        """The shape with the given `values`, others at the family's defaults; keys that are no sizes are left alone.

        Raises UserError with every value of a wrong type and every broken relation.
        """
        hints = typing.get_type_hints(cls)
        known = {**FAMILY_DEFAULTS["deepseek_v3"], **values}
        given = {field.name: known[field.name] for field in dataclasses.fields(cls)}
        problems = [
            f"model.{name} is {shown(value)}; it must be {_spelled(hints[name])}."
            for name, value in given.items()
            if not _fits(value, hints[name])
        ]
        if not problems:
            shape = cls(**given)  # type: ignore[arg-type]  # _fits has checked the types
            problems = list(_broken_relations(shape))
        if problems:
            raise UserError("\n".join(problems))
        return shape


def _fits(value: object, annotation: object) -> bool:
    if isinstance(annotation, types.UnionType):
        return any(_fits(value, part) for part in annotation.__args__)
    if isinstance(value, bool):
        return annotation is bool
    if annotation is float:
        return isinstance(value, int | float)
    return isinstance(annotation, type) and isinstance(value, annotation)


_KINDS: Mapping[object, str] = {
    int: "an integer", float: "a number", str: "a text", bool: "true or false", types.NoneType: "null",
}  # fmt: skip


def _spelled(annotation: object) -> str:
    if isinstance(annotation, types.UnionType):
        return " or ".join(_spelled(part) for part in annotation.__args__)
    return _KINDS[annotation]


_AT_LEAST_ONE = (
    "vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads", "q_lora_rank",
    "kv_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim", "max_position_embeddings",
    "n_routed_experts", "num_experts_per_tok", "moe_intermediate_size",
)  # fmt: skip
_NOT_NEGATIVE = ("first_k_dense_replace", "n_shared_experts", "n_group", "topk_group", "num_nextn_predict_layers")


def _broken_relations(shape: Shape) -> Iterator[str]:
    """One sentence for each relation that does not hold."""
    for names, least in ((_AT_LEAST_ONE, 1), (_NOT_NEGATIVE, 0)):
        for name in names:
            value = getattr(shape, name)
            if value is not None and value < least:
                yield f"model.{name} is {value}; it must be at least {least}."
    if shape.qk_rope_head_dim % 2:
        yield f"model.qk_rope_head_dim is {shape.qk_rope_head_dim}; lanes rotate in pairs, so it must be even."
    if shape.first_k_dense_replace > shape.num_hidden_layers:
        yield (
            f"model.first_k_dense_replace is {shape.first_k_dense_replace} but the model has only "
            f"{shape.num_hidden_layers} layers (model.num_hidden_layers)."
        )
    if shape.num_nextn_predict_layers > 0:
        yield (
            f"model.num_nextn_predict_layers is {shape.num_nextn_predict_layers}: multi-token prediction is not "
            "trained here yet; set it to 0 to train the main model alone (a pynative.yaml without the key asks for 1)."
        )
    if shape.hidden_act not in ("silu", "swiglu", "fusedswiglu"):
        yield f"model.hidden_act is {shown(shape.hidden_act)}; DeepSeek-V3's MLPs know silu only."
    yield from _broken_routing(shape)


def _broken_routing(shape: Shape) -> Iterator[str]:
    experts, chosen, groups = shape.n_routed_experts, shape.num_experts_per_tok, shape.n_group
    if chosen > experts:
        yield (
            f"model.num_experts_per_tok is {chosen} but there are only {experts} experts (model.n_routed_experts): "
            f"set it to at most {experts}."
        )
    if groups <= 1:
        return
    if experts % groups:
        yield (
            f"model.n_group is {groups}, which does not divide the {experts} experts (model.n_routed_experts): "
            f"{experts} = {groups} × {experts // groups} + {experts % groups}."
        )
        return
    if not 1 <= shape.topk_group <= groups:
        yield f"model.topk_group is {shape.topk_group}; it must be from 1 to the {groups} groups of model.n_group."
        return
    size = experts // groups
    if size < 2:
        yield (
            f"model.n_group is {groups} for {experts} experts: a group's score is the sum of its two best experts, so "
            f"n_group must be at most {experts // 2} (0 for no groups; left out, it is 8)."
        )
    if chosen > shape.topk_group * size:
        yield (
            f"model.num_experts_per_tok is {chosen}, but {shape.topk_group} groups (model.topk_group) of {size} "
            f"experts hold {shape.topk_group * size}: lower num_experts_per_tok or raise topk_group."
        )
