"""What becomes of one key: its fate, its effect on the run, and the value that is written."""

from dataclasses import dataclass, replace
from enum import Enum, StrEnum

from msmigrate.yaml.nodes import Node
from msmigrate.yaml.scalars import Value


class Fate(StrEnum):
    """What the converter did with a key (contract, section 3)."""

    SAME = "same"
    RENAMED = "renamed"
    COMPUTED = "computed"
    FLATTENED = "flattened"
    DEFAULT = "default"
    DROPPED = "dropped"
    REFUSED = "refused"
    UNKNOWN = "unknown"


class Effect(StrEnum):
    """What changes for the run because of it."""

    NONE = "none"
    SPEED = "speed"
    MEMORY = "memory"
    TRAINING = "training"
    """The run would learn something else."""


LEARNS = ("training", "optimizer", "lr_scheduler", "train_dataset", "model")
"""Pynative sections whose values decide what a run learns."""


UNTOLD = "and whether training changes without it is not known: it may be a typing error"
"""What is said of an unknown key where keys decide what a run learns."""


class Carry(Enum):
    """The value is the source's own text."""

    TEXT = "text"


@dataclass(frozen=True, slots=True)
class Outcome:
    """The decision on one key.

    `pynative` is the key it speaks for, None when it has no counterpart. `value` is what is written there; None
    writes `null`. `writes` is False when the key is only mentioned. `final` marks a refusal that `--allow-lossy`
    cannot lift, because something is missing rather than lost.
    """

    fate: Fate
    effect: Effect
    why: str
    pynative: str | None = None
    value: Value | Carry = None
    node: Node | None = None
    writes: bool = False
    arithmetic: str | None = None
    help: str | None = None
    final: bool = False

    @property
    def target(self) -> str | None:
        """The key of the output: a pynative key, and a graph key where a pynative.yaml is turned back."""
        return self.pynative

    def noting(self, text: str) -> "Outcome":
        """The same decision with one more sentence."""
        return replace(self, why=f"{self.why}; {text}" if self.why else text)


def carried(fate: Fate, pynative: str, node: Node, why: str = "", effect: Effect = Effect.NONE) -> Outcome:
    """Write the source's own text under a pynative key."""
    return Outcome(fate, effect, why, pynative, Carry.TEXT, node, writes=True)


def written(
    fate: Fate, pynative: str, value: Value, why: str, *, effect: Effect = Effect.NONE, arithmetic: str | None = None
) -> Outcome:
    """Write a value under a pynative key."""
    return Outcome(fate, effect, why, pynative, value, writes=True, arithmetic=arithmetic)


def dropped(why: str, effect: Effect = Effect.NONE, pynative: str | None = None) -> Outcome:
    """Leave the key out; `pynative` names the key that decides instead."""
    return Outcome(Fate.DROPPED, effect, why, pynative)


def refused(
    why: str,
    *,
    pynative: str | None = None,
    advice: str | None = None,
    final: bool = False,
    effect: Effect = Effect.TRAINING,
) -> Outcome:
    """Stop the conversion: the run would learn something else, or a fact is missing (`final`)."""
    return Outcome(Fate.REFUSED, effect, why, pynative, help=advice, final=final)
