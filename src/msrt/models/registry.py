"""The model families that msrt can build; a new family is a new row.

A family's module is imported when it is asked for, so that the names are there without MindSpore.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Generic, TypeAlias, TypeVar

from msmigrate.problems import UserError
from msmigrate.pynative.model import Model as ModelSection
from msrt.config.problem import shown

if TYPE_CHECKING:
    from msrt.models.api import Model
    from msrt.models.config import DecoderConfig

ModelConfig: TypeAlias = "DecoderConfig"
"""Any family's config: it names its `model_type` and the spread of its initial weights."""

C = TypeVar("C", bound="DecoderConfig")


@dataclass(frozen=True)
class Family(Generic[C]):
    """How one model family is configured, measured and built."""

    from_hf: Callable[[Mapping[str, object]], C]
    from_model_section: Callable[[ModelSection], C]
    without_effect: Callable[[ModelSection], dict[str, str]]
    parameter_count: Callable[[C], int]
    network: "Callable[[C], Model]"


FAMILIES: Mapping[str, str] = {
    "deepseek_v3": "msrt.models.deepseek_v3.family",
    "llama": "msrt.models.llama.family",
    "qwen3": "msrt.models.qwen3.family",
    "qwen3_moe": "msrt.models.qwen3_moe.family",
}
"""The module of each family, whose FAMILY is a `Family`."""


def unknown_family(model_type: object) -> str | None:
    """What to tell of a model_type that msrt does not have; None for one that it has."""
    if isinstance(model_type, str) and model_type in FAMILIES:
        return None
    return f"is {shown(model_type)}; msrt has {', '.join(sorted(FAMILIES))}."


def config_from_hf(values: Mapping[str, object]) -> ModelConfig:
    """The model of a Hugging Face config.json, in transformers' arithmetic. Raises UserError for what msrt lacks."""
    from msrt.models.hf import own_names

    with own_names(values):
        return _family(values.get("model_type"), "model_type").from_hf(values)


def config_from_model_section(model: ModelSection) -> ModelConfig:
    """The model of a pynative.yaml's `model:`, in MindFormers' arithmetic. Raises UserError for what msrt lacks."""
    return _family(model.model_type).from_model_section(model)


def keys_without_effect(model: ModelSection) -> dict[str, str]:
    """The keys that a pynative.yaml's `model:` gives and that change no number in its family: key → why."""
    return _family(model.model_type).without_effect(model)


def parameter_count(config: ModelConfig) -> int:
    """Trained parameters of the model of `config`, counted from its sizes without making it."""
    return _family(config.model_type).parameter_count(config)


def build_model(config: ModelConfig, seed: int) -> "Model":
    """The model of `config` with initial weights drawn from `seed`, each parameter's by its own name."""
    from msrt.nn.init import initialise

    model = empty_model(config)
    initialise(model, seed=seed, std=config.initializer_range)
    return model


def empty_model(config: ModelConfig) -> "Model":
    """The model of `config` with zeros for weights, to be filled: memory is taken as they are written."""
    return _family(config.model_type).network(config)


def _family(model_type: object, key: str = "model.model_type") -> Family[ModelConfig]:
    unknown = unknown_family(model_type)
    if unknown is not None:
        raise UserError(f"{key} {unknown}")
    family = import_module(FAMILIES[str(model_type)]).FAMILY
    assert isinstance(family, Family)
    return family
