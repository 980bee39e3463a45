"""How many parameters a DeepSeek-V3 model trains, from its sizes alone."""

from msrt.models.deepseek_v3.config import DeepSeekV3Config
from msrt.models.size import decoder_parameters
from msrt.nn.mla import MLASpec


def parameter_count(config: DeepSeekV3Config) -> int:
    """See `models.size.decoder_parameters`."""
    return decoder_parameters(config, _attention(config.attention))


def _attention(spec: MLASpec) -> int:
    heads, latent = spec.num_attention_heads, spec.kv_lora_rank
    into = spec.hidden_size * (spec.query_width + latent + spec.qk_rope_head_dim)
    queries = (spec.q_lora_rank or 0) * heads * spec.qk_head_dim
    keys_and_values = latent * heads * (spec.qk_nope_head_dim + spec.v_head_dim)
    norms = 0 if spec.latent_norm_eps is None else latent + (spec.q_lora_rank or 0)
    return into + queries + keys_and_values + norms + heads * spec.v_head_dim * spec.hidden_size
