"""Keys of a pynative.yaml's model section that change nothing in DeepSeek-V3 here, and those it cannot honour."""

from collections.abc import Iterator

from msmigrate.pynative.model import Model
from msrt.models.section_keys import keys_without_effect, refuse, unsupported

WITHOUT_EFFECT = {
    "num_key_value_heads": "MLA makes keys and values for every query head.",
    "head_dim": "MLA's heads are qk_nope_head_dim + qk_rope_head_dim and v_head_dim wide.",
    "original_max_position_embeddings": "MindFormers takes max_position_embeddings as the length before YaRN.",
    "decoder_sparse_step": "A key of Qwen; first_k_dense_replace and moe_layer_freq decide.",
    "mlp_only_layers": "A key of Qwen; first_k_dense_replace and moe_layer_freq decide.",
}
"""Keys that mean something for other families, and why they change nothing for this one."""

WITHOUT_MTP = {**WITHOUT_EFFECT, "mtp_loss_scaling_factor": "There is no MTP layer whose loss it could weigh."}
"""The same for a model without multi-token prediction."""


def without_effect(model: Model) -> dict[str, str]:
    """See `models.section_keys.keys_without_effect`."""
    return keys_without_effect(model, WITHOUT_EFFECT if model.num_nextn_predict_layers != 0 else WITHOUT_MTP)


def refuse_unsupported(model: Model) -> None:
    """Raises UserError with one sentence for each setting that asks for another network than DeepSeek-V3's."""
    refuse([*_unsupported(model), *unsupported(model)])


def _unsupported(model: Model) -> Iterator[str]:
    if model.multi_latent_attention is False:
        yield "model.multi_latent_attention is false; DeepSeek-V3 has no other attention than MLA: remove the key."
    if model.attention_bias:
        yield "model.attention_bias is true; DeepSeek-V3's attention has no bias: set it to false."
