"""How many parameters a DeepSeek-V3 model trains, from its sizes alone."""

from msrt.models.deepseek_v3.config import DeepSeekV3Config
from msrt.nn.mla import MLASpec
from msrt.nn.moe import MoESpec


def parameter_count(config: DeepSeekV3Config) -> int:
    """Trained parameters; the expert biases, which no gradient moves, are not counted."""
    hidden, layers, routed = config.hidden_size, config.num_hidden_layers, len(config.moe_layers)
    vocabulary = config.vocab_size * hidden * (1 if config.tie_word_embeddings else 2)
    every_layer = _attention(config.attention) + 2 * hidden
    dense = _mlp(hidden, config.intermediate_size)
    return vocabulary + hidden + layers * every_layer + (layers - routed) * dense + routed * _moe(config.moe)


def _attention(spec: MLASpec) -> int:
    heads, latent = spec.num_attention_heads, spec.kv_lora_rank
    into = spec.hidden_size * (spec.query_width + latent + spec.qk_rope_head_dim)
    queries = (spec.q_lora_rank or 0) * heads * spec.qk_head_dim
    keys_and_values = latent * heads * (spec.qk_nope_head_dim + spec.v_head_dim)
    norms = 0 if spec.latent_norm_eps is None else latent + (spec.q_lora_rank or 0)
    return into + queries + keys_and_values + norms + heads * spec.v_head_dim * spec.hidden_size


def _moe(spec: MoESpec) -> int:
    experts = spec.router.num_experts
    router = experts * spec.hidden_size
    routed = experts * _mlp(spec.hidden_size, spec.intermediate_size)
    return router + routed + _mlp(spec.hidden_size, spec.shared_intermediate_size)


def _mlp(hidden: int, intermediate: int) -> int:
    """Gate, up and down."""
    return 3 * hidden * intermediate
