"""The form of the mapping table: one row per correspondence, matched by graph path."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cached_property

from msmigrate.mapping.back.context import Back, plain
from msmigrate.mapping.context import Context, Derivation
from msmigrate.mapping.outcome import Effect, Fate, Outcome, carried, dropped, refused, written
from msmigrate.pynative import Config, specs_of
from msmigrate.yaml.document import value_of
from msmigrate.yaml.nodes import Leaf
from msmigrate.yaml.scalars import Value, spell

_CARRIED = (Fate.SAME, Fate.RENAMED, Fate.FLATTENED)

Applies = Callable[[Context], bool]
Rule = Callable[[Context, "Row", Leaf], Outcome]
"""Decides on a leaf."""


class Unknown(Enum):
    """No value is known."""

    DEFAULT = "default"


@dataclass(frozen=True, slots=True)
class Row:
    """One correspondence between the modes.

    `graph` is a path as `GraphFile.row_key` spells it; a last part `*` takes everything below that has no row of its
    own. None for a key that no graph key names: it is written by `derive` when no leaf has written it. `manual` is the
    section of the written spec, None where the manual is silent.

    The other way, from pynative to graph, a row whose value is carried needs nothing more. `back` works out what the
    row's pynative key becomes, and the row's graph key where no pynative key has written it.
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
    back: Back | None = None
    default: Value | Unknown = Unknown.DEFAULT
    """Graph mode's default of the value behind the pynative key, where it is known."""
    about: str = ""
    """What `rule` or `derive` decides, in one sentence for docs/mapping.md; without one `why` holds for every value."""

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
        """The leaf's own text under the row's pynative key; null is carried only to keys that know it."""
        assert self.pynative is not None
        if value_of(leaf.node) is None and not self._takes_null():
            return dropped("null, as if it were absent", Effect.NONE, self.pynative)
        return carried(self.fate, self.pynative, leaf.node, self.why)


def leaf_value(leaf: Leaf) -> Value:
    """The value of a leaf as the real reader sees it."""
    return value_of(leaf.node)


def same(path: str, manual: str, why: str = "", lost: Effect = Effect.TRAINING) -> Row:
    """A key with the same name and meaning in both modes."""
    return Row(path, path, Fate.SAME, Effect.NONE, why, manual, lost=lost)


def renamed(
    graph: str,
    pynative: str,
    manual: str | None,
    why: str = "",
    lost: Effect = Effect.TRAINING,
    back: Back | None = None,
) -> Row:
    """A key whose value moves to another name or place."""
    return Row(graph, pynative, Fate.RENAMED, Effect.NONE, why, manual, lost=lost, back=back)


def goes(
    graph: str, why: str, manual: str | None = None, effect: Effect = Effect.NONE, back: Back | None = None
) -> Row:
    """A key without counterpart that the run does not miss, or misses only in speed or memory."""
    return Row(graph, None, Fate.DROPPED, effect, why, manual, back=back)


def computed(graph: str, pynative: str, manual: str | None, why: str = "", back: Back | None = None) -> Row:
    """A key that takes part in the computation of a pynative key."""
    return Row(graph, pynative, Fate.COMPUTED, Effect.NONE, why, manual, back=back)


def judged(
    graph: str,
    pynative: str | None,
    manual: str | None,
    rule: Rule,
    fate: Fate = Fate.RENAMED,
    why: str = "",
    back: Back | None = None,
    about: str = "",
    effect: Effect = Effect.NONE,
) -> Row:
    """A key whose fate depends on its value or on other keys; `about` says how, `effect` is the gravest."""
    return Row(graph, pynative, fate, effect, why, manual, rule=rule, back=back, about=about)


def derived(
    pynative: str,
    manual: str | None,
    derive: Derivation,
    lost: Effect = Effect.TRAINING,
    back: Back | None = None,
    default: Value | Unknown = Unknown.DEFAULT,
    about: str = "",
) -> Row:
    """A pynative key that is worked out from the whole file; `about` says how."""
    return Row(
        None, pynative, Fate.COMPUTED, Effect.NONE, "", manual, derive=derive, lost=lost, back=back, default=default,
        about=about,
    )  # fmt: skip


def turned_back(pynative: str, back: Back) -> Row:
    """A pynative key that no graph key becomes, and that graph keys follow from."""
    return Row(None, pynative, Fate.DROPPED, Effect.NONE, "graph mode says it by other keys", None, back=back)


def default_of(graph: str, pynative: str, manual: str, value: Value, applies: Applies | None = None) -> Row:
    """A pynative key that is written with graph mode's default where the graph file leaves it out.

    `applies` says whether the run uses the key at all; None for always.
    """
    default = plain(specs_of(Config)[pynative].default)
    why = f"graph mode's default {graph} is {spell(value)}"
    if default not in (value, None):
        why += f", PyNative's is {spell(default)}"

    def derive(context: Context) -> Outcome | None:
        if applies is not None and not applies(context):
            return None
        return written(Fate.DEFAULT, pynative, value, why)

    return derived(pynative, manual, derive, default=value, about=why)


def match(rows: Mapping[str, Row], key: str) -> Row | None:
    """The row for a path: the exact one, else the `*` row with the longest prefix.

    A callback of a type that no row names is matched as `callbacks[]`.
    """
    exact = rows.get(key)
    if exact is not None:
        return exact
    kind, bracket, inside = key.partition("].")
    if kind.startswith("callbacks[") and bracket and not any(name.startswith(f"{kind}].") for name in rows):
        key = f"callbacks[].{inside}"
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


@dataclass(frozen=True, eq=False)
class Table:
    """The rows that hold for one family of graph files."""

    rows: tuple[Row, ...]

    @cached_property
    def by_graph_path(self) -> Mapping[str, Row]:
        """Rows by the graph path that they name."""
        return by_graph_path(self.rows)

    @cached_property
    def derived(self) -> tuple[Row, ...]:
        """Rows of pynative keys that are worked out from the whole file."""
        return tuple(row for row in self.rows if row.derive is not None)

    @cached_property
    def derivations(self) -> Mapping[str, Derivation]:
        """How a pynative key is worked out."""
        return {row.pynative: row.derive for row in self.derived if row.pynative and row.derive}

    @cached_property
    def lost(self) -> Mapping[str, Effect]:
        """What would change for the run if a pynative key could not be written; a derived key's row decides."""
        ordered = sorted(self.rows, key=lambda row: row.derive is not None)
        return {row.pynative: row.lost for row in ordered if row.pynative}

    @cached_property
    def by_pynative(self) -> Mapping[str, tuple[Row, ...]]:
        """Rows by the pynative key that they name, in the order of the table."""
        found: dict[str, tuple[Row, ...]] = {}
        for row in self.rows:
            if row.pynative is not None:
                found[row.pynative] = (*found.get(row.pynative, ()), row)
        return found

    @cached_property
    def graph_defaults(self) -> Mapping[str, Value]:
        """Graph mode's defaults by pynative key, where they are known."""
        return {row.pynative: row.default for row in self.rows if row.pynative and not isinstance(row.default, Unknown)}

    @cached_property
    def children(self) -> Mapping[str, frozenset[str]]:
        """Known graph paths, sections included, by the section around them."""
        found: dict[str, set[str]] = {}
        for key in self.by_graph_path:
            while key:
                parent = key.rpartition(".")[0]
                found.setdefault(parent, set())
                if not key.endswith("*"):
                    found[parent].add(key)
                key = parent
        return {parent: frozenset(inside) for parent, inside in found.items()}
