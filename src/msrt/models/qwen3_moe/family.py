"""The row of Qwen3-MoE in the table of families."""

from msrt.models.gqa.model import GQACausalLM
from msrt.models.gqa.section_keys import without_effect
from msrt.models.gqa.size import parameter_count
from msrt.models.qwen3_moe.config import TRAITS, from_hf, from_model_section
from msrt.models.registry import Family

FAMILY = Family(from_hf, from_model_section, lambda model: without_effect(model, TRAITS), parameter_count, GQACausalLM)
