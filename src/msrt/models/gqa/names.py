"""The parameters of a model with grouped-query attention, and the Hugging Face tensors that each is made of."""

from msrt.models.gqa.config import GQAConfig
from msrt.models.names import Row, decoder_names
from msrt.nn.gqa import GQASpec
from msrt.weights.layout import GroupedRows, Same
from msrt.weights.names import NameRow


def name_table(config: GQAConfig) -> tuple[NameRow, ...]:
    """One row per kind of parameter of the model."""
    return decoder_names(config, _attention(config.attention))


def _attention(spec: GQASpec) -> list[Row]:
    groups = GroupedRows(spec.num_key_value_heads, spec.group_widths)
    rows = [_fused("weight", groups), _projection("weight")]
    if spec.qkv_bias:
        rows.append(_fused("bias", groups))
    if spec.proj_bias:
        rows.append(_projection("bias"))
    if spec.qk_norm_eps is not None:
        rows.append(("self_attention.q_layernorm.weight", ("self_attn.q_norm.weight",), Same()))
        rows.append(("self_attention.k_layernorm.weight", ("self_attn.k_norm.weight",), Same()))
    return rows


def _fused(part: str, groups: GroupedRows) -> Row:
    return f"self_attention.linear_qkv.{part}", tuple(f"self_attn.{x}_proj.{part}" for x in "qkv"), groups


def _projection(part: str) -> Row:
    return f"self_attention.linear_proj.{part}", (f"self_attn.o_proj.{part}",), Same()
