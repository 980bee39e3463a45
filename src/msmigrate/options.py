"""What a user tells a conversion beyond the file."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from msmigrate.yaml.scalars import Value


class Target(StrEnum):
    """The MindFormers release that an emitted file is for."""

    V2_0 = "2.0"
    V2_1 = "2.1"


class ExpertMesh(StrEnum):
    """How expert_parallel enters the number of ranks."""

    PRODUCT = "product"
    """ranks = tensor_parallel × expert_parallel × data_parallel (manual section 11.4)."""
    NESTED = "nested"
    """ranks = tensor_parallel × data_parallel; expert_parallel divides data_parallel_shard × tensor_parallel."""


@dataclass(frozen=True, slots=True)
class Options:
    """Facts and choices from the command line; None where the user said nothing."""

    target: Target = Target.V2_0
    manual_only: bool = False
    world: int | None = None
    samples: int | None = None
    hf_config: Mapping[str, Value] | None = None
    hf_config_path: str | None = None
    expert_mesh: ExpertMesh = ExpertMesh.PRODUCT
    overrides: Mapping[str, Value] = field(default_factory=dict)
    allow_lossy: bool = False
