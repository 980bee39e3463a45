"""What tells one family of grouped-query attention from another."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Traits:
    """A family's name, whether it norms queries and keys, and which settings it does not have."""

    model_type: str
    qk_norm: bool
    hf_values: Mapping[str, tuple[object, ...]]
    """Keys of a config.json that must have one of these values."""
    without_effect: Mapping[str, str]
    """Keys of a model section that mean something for other families only: key → why they change nothing here."""
