"""The row of DeepSeek-V3 in the table of families."""

from msrt.models.deepseek_v3.config import DeepSeekV3Config
from msrt.models.deepseek_v3.model import DeepSeekV3
from msrt.models.deepseek_v3.section_keys import without_effect
from msrt.models.deepseek_v3.size import parameter_count
from msrt.models.registry import Family

FAMILY = Family(
    DeepSeekV3Config.from_hf, DeepSeekV3Config.from_model_section, without_effect, parameter_count, DeepSeekV3
)
