"""Everything known about a pynative.yaml: keys, types, defaults, meanings."""

from msmigrate.pynative.keys import (
    Key,
    Spec,
    Use,
    asks_for_nothing,
    holds_integer,
    in_floats,
    is_open,
    nested_section,
    specs_of,
)
from msmigrate.pynative.model import Model
from msmigrate.pynative.sections import Config, LrScheduler

__all__ = [
    "Config",
    "Key",
    "LrScheduler",
    "Model",
    "Spec",
    "Use",
    "asks_for_nothing",
    "holds_integer",
    "in_floats",
    "is_open",
    "nested_section",
    "specs_of",
]
