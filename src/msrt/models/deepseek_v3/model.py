"""The DeepSeek-V3 network (DeepSeek-AI, 2024): latent attention, mixtures of experts behind dense layers."""

from msrt.models.causal_lm import CausalLM
from msrt.models.deepseek_v3.config import DeepSeekV3Config
from msrt.models.deepseek_v3.names import name_table
from msrt.nn.mla import MLASelfAttention


class DeepSeekV3(CausalLM):
    """A DeepSeek-V3 model; its parameters have MindFormers' PyNative names."""

    config: DeepSeekV3Config

    def __init__(self, config: DeepSeekV3Config) -> None:
        super().__init__(config, lambda: MLASelfAttention(config.attention), name_table(config))
