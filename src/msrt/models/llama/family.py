"""Llama (Touvron et al., 2023; Grattafiori et al., 2024): dense, grouped-query attention."""

from msrt.models.gqa.family import dense_family
from msrt.models.gqa.section_keys import NO_EXPERTS
from msrt.models.gqa.traits import Traits

TRAITS = Traits(
    model_type="llama",
    qk_norm=False,
    hf_values={"mlp_bias": (False, None)},
    without_effect={**NO_EXPERTS, "qk_layernorm": "Llama has no norms on queries and keys."},
)

FAMILY = dense_family(TRAITS)
