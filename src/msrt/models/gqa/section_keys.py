"""Keys of a model section that change nothing in families of grouped-query attention, and those they cannot honour."""

from collections.abc import Iterator

from msmigrate.pynative.model import Model
from msrt.models.gqa.traits import Traits
from msrt.models.section_keys import keys_without_effect, refuse, unsupported

OTHER_ATTENTION = {
    **dict.fromkeys(
        ("multi_latent_attention", "q_lora_rank", "kv_lora_rank", "qk_rope_head_dim", "qk_nope_head_dim", "v_head_dim"),
        "A setting of MLA.",
    ),
    "mtp_loss_scaling_factor": "There is no MTP layer whose loss it could weigh.",
}
"""Settings of DeepSeek-V3."""

NO_EXPERTS = dict.fromkeys(
    (
        "first_k_dense_replace", "moe_layer_freq", "n_routed_experts", "num_experts_per_tok", "n_shared_experts",
        "moe_intermediate_size", "moe_shared_expert_intermediate_size", "scoring_func", "moe_router_score_function",
        "router_dense_type", "moe_router_dtype", "norm_topk_prob", "routed_scaling_factor", "n_group", "topk_group",
        "moe_router_enable_expert_bias", "moe_router_bias_update_rate", "moe_router_load_balancing_type",
        "moe_aux_loss_coeff", "decoder_sparse_step", "mlp_only_layers",
    ),
    "There are no experts.",
)  # fmt: skip
"""Settings of a mixture of experts, for families without one."""

OF_YARN = dict.fromkeys(
    (
        "scaling_factor", "rotary_scaling_factor", "original_max_position_embeddings", "beta_fast", "beta_slow",
        "mscale", "mscale_all_dim",
    ),
    "Read with position_embedding_type: yarn and without rope_scaling only.",
)  # fmt: skip


def without_effect(model: Model, traits: Traits) -> dict[str, str]:
    """See `models.section_keys.keys_without_effect`."""
    flat_yarn = model.position_embedding_type == "yarn" and model.rope_scaling is None
    return keys_without_effect(model, {**OTHER_ATTENTION, **traits.without_effect, **({} if flat_yarn else OF_YARN)})


def refuse_unsupported(model: Model, traits: Traits) -> None:
    """Raises UserError with one sentence for each setting that asks for another network than the family's."""
    refuse([*_unsupported(model, traits), *unsupported(model)])


def _unsupported(model: Model, traits: Traits) -> Iterator[str]:
    if model.multi_latent_attention:
        yield f"model.multi_latent_attention is true; {traits.model_type} has no MLA: remove the key."
    if model.qk_layernorm and not traits.qk_norm:
        yield f"model.qk_layernorm is true; {traits.model_type} has no norms on queries and keys: remove the key."
    if model.num_nextn_predict_layers:
        yield (
            f"model.num_nextn_predict_layers is {model.num_nextn_predict_layers}; {traits.model_type} has no "
            "multi-token prediction here: set it to 0."
        )
