"""The form of the mapping table: one row per correspondence, matched by graph path."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from msmigrate.mapping.context import Context, Derivation
from msmigrate.mapping.outcome import Effect, Fate, Outcome, carried, dropped, refused
from msmigrate.pynative import Config, specs_of
from msmigrate.yaml.document import value_of
from msmigrate.yaml.nodes import Leaf
from msmigrate.yaml.scalars import Value

_CARRIED = (Fate.SAME, Fate.RENAMED, Fate.FLATTENED)

Rule = Callable[[Context, "Row", Leaf], Outcome]
"""Decides on a leaf."""


@dataclass(frozen=True, slots=True)
class Row:
    """One correspondence between the modes.

    `graph` is a path as `GraphFile.row_key` spells it; a last part `*` takes everything below that has no row of its
    own. None for a key that no graph key names: it is written by `derive` when no leaf has written it. `manual` is the
    section of the written spec, None where the manual is silent.
    """

    graph: str | None
    pynative: str | None
    fate: Fate
    effect: Effect
    why: str
    manual: str | None
    rule: Rule | None = None
    derive: Derivation | None = None
    lost: Effect = Effect.TRAINING
    """What would change for the run if the pynative key could not be written (`--manual-only`)."""

    def decide(self, context: Context, leaf: Leaf) -> Outcome:
        """The outcome for a leaf that the row matches."""
        if self.rule is not None:
            return self.rule(context, self, leaf)
        if value_of(leaf.node) is None and self.fate in _CARRIED and not self._takes_null():
            return dropped("null, as if it were absent", Effect.NONE, self.pynative)
        if self.fate is Fate.DROPPED:
            return dropped(self.why, self.effect, self.pynative)
        if self.fate is Fate.REFUSED:
            return refused(self.why, pynative=self.pynative, effect=self.effect)
        if self.fate is Fate.COMPUTED:
            assert self.pynative is not None
            return context.derive(self.pynative) or dropped(self.why, Effect.NONE, self.pynative)
        return self.carry(leaf)

    def _takes_null(self) -> bool:
        spec = specs_of(Config).get(self.pynative or "")
        return spec is None or "None" in str(spec.annotation)

    def carry(self, leaf: Leaf) -> Outcome:
        """The leaf's own text under the row's pynative key."""
        assert self.pynative is not None
        return carried(self.fate, self.pynative, leaf.node, self.why)


def leaf_value(leaf: Leaf) -> Value:
    """The value of a leaf as the real reader sees it."""
    return value_of(leaf.node)


def same(path: str, manual: str, why: str = "") -> Row:
    """A key with the same name and meaning in both modes."""
    return Row(path, path, Fate.SAME, Effect.NONE, why, manual)


def renamed(graph: str, pynative: str, manual: str | None, why: str = "", lost: Effect = Effect.TRAINING) -> Row:
    """A key whose value moves to another name or place."""
    return Row(graph, pynative, Fate.RENAMED, Effect.NONE, why, manual, lost=lost)


def goes(graph: str, why: str, manual: str | None = None, effect: Effect = Effect.NONE) -> Row:
    """A key without counterpart that the run does not miss, or misses only in speed or memory."""
    return Row(graph, None, Fate.DROPPED, effect, why, manual)


def computed(graph: str, pynative: str, manual: str | None, why: str = "") -> Row:
    """A key that takes part in the computation of a pynative key."""
    return Row(graph, pynative, Fate.COMPUTED, Effect.NONE, why, manual)


def judged(
    graph: str, pynative: str | None, manual: str | None, rule: Rule, fate: Fate = Fate.RENAMED, why: str = ""
) -> Row:
    """A key whose fate depends on its value or on other keys."""
    return Row(graph, pynative, fate, Effect.NONE, why, manual, rule=rule)


def derived(pynative: str, manual: str | None, derive: Derivation, lost: Effect = Effect.TRAINING) -> Row:
    """A pynative key that is worked out from the whole file."""
    return Row(None, pynative, Fate.COMPUTED, Effect.NONE, "", manual, derive=derive, lost=lost)


def match(rows: dict[str, Row], key: str) -> Row | None:
    """The row for a path: the exact one, else the `*` row with the longest prefix."""
    exact = rows.get(key)
    if exact is not None:
        return exact
    prefix = key
    while prefix:
        prefix = prefix.rpartition(".")[0]
        found = rows.get(f"{prefix}.*" if prefix else "*")
        if found is not None:
            return found
    return None


def by_graph_path(rows: Iterable[Row]) -> dict[str, Row]:
    """Rows with a graph path; raises ValueError when two rows claim one path."""
    found: dict[str, Row] = {}
    for row in rows:
        if row.graph is None:
            continue
        if row.graph in found:
            raise ValueError(f"two rows for {row.graph}")
        found[row.graph] = row
    return found
