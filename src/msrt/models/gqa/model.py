"""The network of all families of grouped-query attention."""

from msrt.models.causal_lm import CausalLM
from msrt.models.gqa.config import GQAConfig
from msrt.models.gqa.names import name_table
from msrt.nn.gqa import SelfAttention


class GQACausalLM(CausalLM):
    """Qwen3, Qwen3-MoE or Llama, as the config says; its parameters have MindFormers' PyNative names."""

    config: GQAConfig

    def __init__(self, config: GQAConfig) -> None:
        super().__init__(config, lambda: SelfAttention(config.attention), name_table(config))
