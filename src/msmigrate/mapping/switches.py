"""Rows for settings of graph mode without a counterpart: nothing to say while they are off, a loss when they are on."""

from msmigrate.mapping.back.context import Back
from msmigrate.mapping.context import Context
from msmigrate.mapping.outcome import Effect, Fate, Outcome, dropped, refused
from msmigrate.mapping.rows import Row, leaf_value
from msmigrate.yaml.nodes import Leaf
from msmigrate.yaml.scalars import Value

_OFF = "off, as in PyNative mode"
PER_TOKEN = (
    "the loss is divided by the tokens of the whole step; PyNative mode averages each micro-batch and then these"
)
"""What calculate_per_token_loss does, wherever a graph file has it."""


def spared(graph: str, why: str, effect: Effect, manual: str | None = None, *, idle: tuple[Value, ...] = ()) -> Row:
    """A setting that the run misses in speed or memory only, and not at all while it is off or one of `idle`."""

    def rule(context: Context, row: Row, leaf: Leaf) -> Outcome:
        value = leaf_value(leaf)
        return dropped(why, effect) if _is_on(value) and value not in idle else dropped(_OFF)

    return Row(graph, None, Fate.DROPPED, effect, why, manual, rule=rule)


def vital(
    graph: str, why: str, manual: str | None = None, *, pynative: str | None = None, back: Back | None = None
) -> Row:
    """A setting without which the run would learn something else: refused when it is on."""

    def rule(context: Context, row: Row, leaf: Leaf) -> Outcome:
        return refused(why) if _is_on(leaf_value(leaf)) else dropped(_OFF)

    return Row(graph, pynative, Fate.REFUSED, Effect.TRAINING, why, manual, rule=rule, back=back)


def vital_section(graph: str, why: str) -> tuple[Row, Row]:
    """A section, or one value in its place, without which the run would learn something else."""
    return vital(graph, why), vital(f"{graph}.*", why)


def _is_on(value: Value) -> bool:
    """False, null, 0 and what is empty are off."""
    return bool(value)
