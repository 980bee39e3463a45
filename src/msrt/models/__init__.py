"""The model families: from a config to a network with its initial weights. Importing it does not load MindSpore."""

from msrt.models.registry import (
    build_model,
    config_from_hf,
    config_from_model_section,
    empty_model,
    keys_without_effect,
    parameter_count,
    unknown_family,
)

__all__ = [
    "build_model",
    "config_from_hf",
    "config_from_model_section",
    "empty_model",
    "keys_without_effect",
    "parameter_count",
    "unknown_family",
]
