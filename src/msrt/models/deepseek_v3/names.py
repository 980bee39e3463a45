"""The parameters of DeepSeek-V3 in PyNative mode, and the Hugging Face tensors that each is made of."""

from msrt.models.deepseek_v3.config import DeepSeekV3Config
from msrt.weights.layout import InterleavedRows, Layout, Rows, Same, StackedExperts
from msrt.weights.names import NameRow

Row = tuple[str, tuple[str, ...], Layout]


def name_table(config: DeepSeekV3Config) -> tuple[NameRow, ...]:
    """One row per kind of parameter of the model, in the order of the network."""
    every, routed = tuple(range(config.num_hidden_layers)), config.moe_layers
    dense = tuple(layer for layer in every if layer not in routed)
    head = () if config.tie_word_embeddings else (NameRow("output_layer.weight", ("lm_head.weight",), Same()),)
    return (
        NameRow("embedding.word_embeddings.weight", ("model.embed_tokens.weight",), Same()),
        *_in_layers(_attention(config), every),
        *_in_layers(_mlp("mlp"), dense),
        *_in_layers(_moe(config), routed),
        *_in_layers(_experts(), routed, config.moe.router.num_experts),
        NameRow("decoder.final_layernorm.weight", ("model.norm.weight",), Same()),
        *head,
    )


def _in_layers(rows: list[Row], layers: tuple[int, ...], experts: int = 1) -> list[NameRow]:
    return [
        NameRow(
            f"decoder.layers.{{layer}}.{ours}", tuple(f"model.layers.{{layer}}.{name}" for name in hub), layout, layers,
            experts,
        )
        for ours, hub, layout in rows
    ]  # fmt: skip


def _attention(config: DeepSeekV3Config) -> list[Row]:
    spec = config.attention
    compressed = spec.q_lora_rank is not None
    blocks = Rows((spec.query_width, spec.kv_lora_rank + spec.qk_rope_head_dim))
    query = "self_attn.q_a_proj.weight" if compressed else "self_attn.q_proj.weight"
    rows: list[Row] = [
        ("input_layernorm.weight", ("input_layernorm.weight",), Same()),
        ("self_attention.linear_qkv.weight", (query, "self_attn.kv_a_proj_with_mqa.weight"), blocks),
        ("self_attention.linear_kvb.weight", ("self_attn.kv_b_proj.weight",), Same()),
        ("self_attention.linear_proj.weight", ("self_attn.o_proj.weight",), Same()),
        ("pre_mlp_layernorm.weight", ("post_attention_layernorm.weight",), Same()),
    ]
    if compressed:
        rows.append(("self_attention.linear_qb.weight", ("self_attn.q_b_proj.weight",), Same()))
    if spec.latent_norm_eps is not None:
        rows.append(("self_attention.k_layernorm.weight", ("self_attn.kv_a_layernorm.weight",), Same()))
    if spec.latent_norm_eps is not None and compressed:
        rows.append(("self_attention.q_layernorm.weight", ("self_attn.q_a_layernorm.weight",), Same()))
    return rows


def _mlp(path: str) -> list[Row]:
    return [
        (f"{path}.linear_fc1.weight", (f"{path}.gate_proj.weight", f"{path}.up_proj.weight"), InterleavedRows()),
        (f"{path}.linear_fc2.weight", (f"{path}.down_proj.weight",), Same()),
    ]


def _moe(config: DeepSeekV3Config) -> list[Row]:
    rows: list[Row] = [("mlp.router.weight", ("mlp.gate.weight",), Same())]
    if config.moe.expert_bias:
        rows.append(("mlp.expert_bias", ("mlp.gate.e_score_correction_bias",), Same()))
    if config.moe.shared_intermediate_size:
        rows += _mlp("mlp.shared_experts")
    return rows


def _experts() -> list[Row]:
    one = "mlp.experts.{expert}."
    return [
        ("mlp.experts.weight1", (f"{one}gate_proj.weight", f"{one}up_proj.weight"), StackedExperts(2)),
        ("mlp.experts.weight2", (f"{one}down_proj.weight",), StackedExperts(1)),
    ]
