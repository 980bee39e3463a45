"""The model families that msrt can build; a new family is a new row."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from msmigrate.problems import UserError
from msmigrate.pynative.model import Model as ModelSection
from msrt.models.api import Model
from msrt.models.deepseek_v3.config import DeepSeekV3Config
from msrt.models.deepseek_v3.model import DeepSeekV3
from msrt.models.deepseek_v3.section_keys import without_effect
from msrt.nn.init import initialise

ModelConfig: TypeAlias = DeepSeekV3Config
"""Any family's config: it names its `model_type` and the spread of its initial weights."""


@dataclass(frozen=True)
class Family:
    """How one model family is configured and built."""

    from_hf: Callable[[Mapping[str, object]], ModelConfig]
    from_model_section: Callable[[ModelSection], ModelConfig]
    without_effect: Callable[[ModelSection], dict[str, str]]
    network: Callable[[ModelConfig], Model]


FAMILIES: Mapping[str, Family] = {
    "deepseek_v3": Family(DeepSeekV3Config.from_hf, DeepSeekV3Config.from_model_section, without_effect, DeepSeekV3),
}


def config_from_hf(values: Mapping[str, object]) -> ModelConfig:
    """The model of a Hugging Face config.json, in transformers' arithmetic. Raises UserError for what msrt lacks."""
    return _family(values.get("model_type")).from_hf(values)


def config_from_model_section(model: ModelSection) -> ModelConfig:
    """The model of a pynative.yaml's `model:`, in MindFormers' arithmetic. Raises UserError for what msrt lacks."""
    return _family(model.model_type).from_model_section(model)


def keys_without_effect(model: ModelSection) -> dict[str, str]:
    """The keys that a pynative.yaml's `model:` gives and that change no number in its family: key → why."""
    return _family(model.model_type).without_effect(model)


def build_model(config: ModelConfig, seed: int) -> Model:
    """The model of `config` with initial weights drawn from `seed`, each parameter's by its own name."""
    model = _family(config.model_type).network(config)
    initialise(model, seed=seed, std=config.initializer_range)
    return model


def _family(model_type: object) -> Family:
    if isinstance(model_type, str) and model_type in FAMILIES:
        return FAMILIES[model_type]
    raise UserError(f"model_type is {model_type!r}; msrt has {', '.join(sorted(FAMILIES))}.")
