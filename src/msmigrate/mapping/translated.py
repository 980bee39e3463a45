"""Rows for keys of legacy models: refused as a whole where the model has no PyNative counterpart."""

from collections.abc import Callable

from msmigrate.mapping.context import Context
from msmigrate.mapping.legacy_classes import Architecture, counterpart
from msmigrate.mapping.outcome import Effect, Fate, Outcome, dropped, refused
from msmigrate.mapping.rows import Row, judged
from msmigrate.yaml.nodes import Leaf

Translation = Callable[[Context, Row, Leaf, Architecture], Outcome]
"""Decides on a leaf of a model that has a counterpart."""


def translated(
    graph: str,
    pynative: str | None,
    rule: Translation,
    fate: Fate = Fate.RENAMED,
    why: str = "",
    about: str = "",
    effect: Effect = Effect.NONE,
) -> Row:
    """A row for a key of a legacy model that has a counterpart; `about` and `effect` as in `judged`."""

    def decide(context: Context, row: Row, leaf: Leaf) -> Outcome:
        found = counterpart(context.graph)
        if isinstance(found, str):
            return refused(found, final=True)
        return rule(context, row, leaf, found)

    return judged(graph, pynative, None, decide, fate, why, about=about, effect=effect)


def gone(graph: str, why: str, effect: Effect = Effect.NONE) -> Row:
    """A row for a key that no training number depends on."""

    def rule(context: Context, row: Row, leaf: Leaf, found: Architecture) -> Outcome:
        return dropped(why, effect)

    return translated(graph, None, rule, Fate.DROPPED, why, effect=effect)


def architecture(context: Context) -> Architecture | None:
    """The counterpart of the file's model; None where it has none."""
    found = counterpart(context.graph)
    return None if isinstance(found, str) else found
