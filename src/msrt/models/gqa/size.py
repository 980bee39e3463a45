"""How many parameters a model with grouped-query attention trains, from its sizes alone."""

from msrt.models.gqa.config import GQAConfig
from msrt.models.size import decoder_parameters
from msrt.nn.gqa import GQASpec


def parameter_count(config: GQAConfig) -> int:
    """See `models.size.decoder_parameters`."""
    return decoder_parameters(config, _attention(config.attention))


def _attention(spec: GQASpec) -> int:
    into, out = spec.num_key_value_heads * sum(spec.group_widths), spec.num_attention_heads * spec.head_dim
    biases = into * spec.qkv_bias + spec.hidden_size * spec.proj_bias
    norms = 0 if spec.qk_norm_eps is None else 2 * spec.head_dim
    return spec.hidden_size * (into + out) + biases + norms
