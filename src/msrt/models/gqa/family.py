"""The row of a dense family of grouped-query attention in the table of families."""

from collections.abc import Mapping

from msmigrate.pynative.model import Model
from msrt.models.gqa.config import GQAConfig, hf_config, hf_shape, section_config, section_shape
from msrt.models.gqa.model import GQACausalLM
from msrt.models.gqa.section_keys import without_effect
from msrt.models.gqa.shape import GQAShape
from msrt.models.gqa.size import parameter_count
from msrt.models.gqa.traits import Traits
from msrt.models.registry import Family


def dense_family(traits: Traits) -> Family[GQAConfig]:
    """The family that `traits` describe."""

    def from_hf(values: Mapping[str, object]) -> GQAConfig:
        return hf_config(values, traits, hf_shape(values, traits, GQAShape))

    def from_model_section(model: Model) -> GQAConfig:
        return section_config(model, traits, section_shape(model, traits, GQAShape))

    return Family(
        from_hf, from_model_section, lambda model: without_effect(model, traits), parameter_count, GQACausalLM
    )
