"""Qwen3 (Yang et al., 2025): dense, grouped-query attention with norms on each head's query and key."""

from msrt.models.gqa.family import dense_family
from msrt.models.gqa.section_keys import NO_EXPERTS
from msrt.models.gqa.traits import Traits

TRAITS = Traits(
    model_type="qwen3",
    qk_norm=True,
    hf_values={"use_sliding_window": (False, None)},
    without_effect={**NO_EXPERTS, "qk_layernorm": "Qwen3 always has norms on queries and keys."},
)

FAMILY = dense_family(TRAITS)
