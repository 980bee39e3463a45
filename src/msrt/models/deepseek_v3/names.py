"""The parameters of DeepSeek-V3 in PyNative mode, and the Hugging Face tensors that each is made of."""

from msrt.models.deepseek_v3.config import DeepSeekV3Config
from msrt.models.names import Row, decoder_names
from msrt.nn.mla import MLASpec
from msrt.weights.layout import Rows, Same
from msrt.weights.names import NameRow


def name_table(config: DeepSeekV3Config) -> tuple[NameRow, ...]:
    """One row per kind of parameter of the model.

    Files may hold a layer of multi-token prediction behind the main model's; a model without one leaves it alone.
    """
    further = () if config.mtp_layers else (f"model.layers.{config.num_hidden_layers}.",)
    return decoder_names(config, _attention(config.attention), ignored=further)


def _attention(spec: MLASpec) -> list[Row]:
    compressed = spec.q_lora_rank is not None
    blocks = Rows((spec.query_width, spec.kv_lora_rank + spec.qk_rope_head_dim))
    query = "self_attn.q_a_proj.weight" if compressed else "self_attn.q_proj.weight"
    rows: list[Row] = [
        ("self_attention.linear_qkv.weight", (query, "self_attn.kv_a_proj_with_mqa.weight"), blocks),
        ("self_attention.linear_kvb.weight", ("self_attn.kv_b_proj.weight",), Same()),
        ("self_attention.linear_proj.weight", ("self_attn.o_proj.weight",), Same()),
    ]
    if compressed:
        rows.append(("self_attention.linear_qb.weight", ("self_attn.q_b_proj.weight",), Same()))
    if spec.latent_norm_eps is not None:
        rows.append(("self_attention.k_layernorm.weight", ("self_attn.kv_a_layernorm.weight",), Same()))
    if spec.latent_norm_eps is not None and compressed:
        rows.append(("self_attention.q_layernorm.weight", ("self_attn.q_a_layernorm.weight",), Same()))
    return rows
