"""The model families: from a config to a network with its initial weights."""

from msrt.models.api import LossParts, Model
from msrt.models.registry import (
    build_model,
    config_from_hf,
    config_from_model_section,
    keys_without_effect,
)

__all__ = [
    "LossParts",
    "Model",
    "build_model",
    "config_from_hf",
    "config_from_model_section",
    "keys_without_effect",
]
