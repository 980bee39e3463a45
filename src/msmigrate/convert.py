"""A Graph-mode file becomes a pynative.yaml: one decision per leaf, the text, and what it rests on."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from msmigrate.mapping.context import Context, Fact
from msmigrate.mapping.graph_file import Family, GraphFile, family_of, is_expanded, is_pynative, merge_sources
from msmigrate.mapping.outcome import Carry, Effect, Fate, Outcome, refused
from msmigrate.mapping.rows import match
from msmigrate.mapping.settle import settle
from msmigrate.mapping.spelling import Section, misspelt, section_of
from msmigrate.mapping.table import BY_GRAPH_PATH, DERIVATIONS, DERIVED, LOST
from msmigrate.options import Options
from msmigrate.pynative import Config, specs_of
from msmigrate.yaml.document import Document, is_merge, value_of
from msmigrate.yaml.emit import Item, emit
from msmigrate.yaml.nodes import Alias, Leaf, Node, Path, Scalar, Span, dotted, leaves, resolved
from msmigrate.yaml.nodes import Entry as MapEntry
from msmigrate.yaml.nodes import Mapping as MapNode
from msmigrate.yaml.scalars import Value


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of the report: a leaf of the source, or a key written without one (`graph` None)."""

    graph: str | None
    outcome: Outcome
    old: Value
    new: Value
    span: Span | None


@dataclass(frozen=True, slots=True)
class Conversion:
    """The outcome of a conversion; `text` is None when something is refused."""

    document: Document
    family: Family
    options: Options
    facts: Mapping[str, Fact]
    entries: tuple[Entry, ...]
    notes: tuple[str, ...]
    text: str | None

    @property
    def refusals(self) -> list[Entry]:
        """What stops the conversion, each reason once."""
        found: dict[str, Entry] = {}
        for entry in self.entries:
            outcome = entry.outcome
            if outcome.fate is Fate.REFUSED and (outcome.final or not self.options.allow_lossy):
                found.setdefault(outcome.why, entry)
        return list(found.values())


class AlreadyPynativeError(Exception):
    """The file is a pynative.yaml: there is nothing to convert."""


def convert(document: Document, options: Options) -> Conversion:
    """The conversion of a parsed Graph-mode file.

    Files of families without a PyNative counterpart are refused key by key. Raises AlreadyPynativeError for a
    pynative.yaml, UserError for numbers of the wrong type.
    """
    if is_pynative(document):
        raise AlreadyPynativeError(f"{document.source.name} is a pynative.yaml already; nothing was written")
    graph = GraphFile(document)
    family = family_of(graph)
    context = Context(graph, options, DERIVATIONS)
    decisions = _Decisions(context)
    foreign = FOREIGN.get(family)
    for leaf in leaves(document.root):
        if foreign is None:
            decisions.leaf(leaf)
        else:
            decisions.add(leaf, refused(foreign, final=True), counted=True)
    if foreign is None:
        decisions.remaining()
    facts = {"world": context.world(), "samples": context.samples()}
    conversion = Conversion(document, family, options, facts, tuple(decisions.entries), tuple(context.notes), text=None)
    if conversion.refusals:
        return conversion
    return replace(conversion, text=emit(document, list(decisions.items())))


FOREIGN = {
    Family.LLMTRAINER: "the file has the experimental layout of LLMTrainer (training_args, …), which no release has",
    Family.SPLIT: "the file is split over several files by base_config; merge them into one first",
}
"""Why a family of files cannot be converted at all."""


class _Decisions:
    """Entries in source order, and the first writer of each pynative key."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.entries: list[Entry] = []
        self.writers: dict[str, tuple[Outcome, Leaf | None]] = {}

    def leaf(self, leaf: Leaf, *, counted: bool = True) -> None:
        """Decide on a leaf; `counted` is False for keys that an alias or merge key brings in."""
        graph = self.context.graph
        section = section_of(graph, leaf.path)
        row = match(BY_GRAPH_PATH, graph.row_key(leaf.path))
        if _stands_for_others(leaf):
            matters = section.matters if section else row is None or row.fate is not Fate.DROPPED
            if matters:
                self.expanded(leaf, counted=counted)
                return
        if row is None:
            outcome = self.unknown(leaf) if section is None else self.bare_section(leaf, section)
        else:
            outcome = row.decide(self.context, leaf)
        self.add(leaf, self.settled(outcome), counted=counted)

    def settled(self, outcome: Outcome) -> Outcome:
        return settle(self.context, outcome, LOST.get(outcome.pynative or "", Effect.TRAINING))

    def expanded(self, leaf: Leaf, *, counted: bool) -> None:
        """An alias to a mapping, or a merge key: the keys it brings in are written out where it stands."""
        merge = leaf.path[-1] == "<<"
        base = leaf.path[:-1] if merge else leaf.path
        why = "the keys that it brings in are written out"
        self.add(leaf, Outcome(Fate.FLATTENED, Effect.NONE, why), counted=counted)
        if not merge:
            for inner in leaves(resolved(leaf.node), base, leaf.key):
                self.leaf(inner, counted=False)
            return
        taken = _own_keys(self.context.graph.document, base)
        for source in merge_sources(leaf.node):
            for inner in leaves(source, base, leaf.key):
                if inner.path[len(base)] not in taken:
                    self.leaf(inner, counted=False)
            taken = taken | {entry.key.text for entry in source.entries}

    def unknown(self, leaf: Leaf) -> Outcome:
        lost, close = misspelt(self.context.graph, leaf.path)
        advice = f"did you mean `{close}`?" if close else None
        kind = "key" if lost == dotted(leaf.path) else "section"
        why = f"{kind} `{lost}` is not in the mapping table; it is not carried"
        return Outcome(Fate.UNKNOWN, Effect.NONE, why, help=advice)

    def bare_section(self, leaf: Leaf, section: Section) -> Outcome:
        """A section without keys: graph mode takes its defaults, which is worth a word when it matters."""
        if self.context.graph.section(dotted(leaf.path)):  # by an alias, to keys that PyNative mode does not have
            return Outcome(Fate.DROPPED, Effect.NONE, "a section that PyNative mode does not have")
        if section.matters:
            line = (leaf.key or leaf.node).span.start.line
            self.context.note(
                f"`{dotted(leaf.path)}` (line {line}) is empty: graph mode takes the defaults of the whole section"
            )
        return Outcome(Fate.DROPPED, Effect.NONE, "an empty section: graph mode takes its defaults")

    def add(self, leaf: Leaf, outcome: Outcome, *, counted: bool) -> None:
        if outcome.writes and outcome.pynative is not None:
            outcome = self.claim(outcome, leaf)
        old = _alias_text(leaf) if _stands_for_others(leaf) else value_of(leaf.node)
        span = Span((leaf.key or leaf.node).span.start, leaf.node.span.end)
        graph = dotted(leaf.path) if counted else None
        self.entries.append(Entry(graph, outcome, old, written_value(outcome), span))

    def claim(self, outcome: Outcome, leaf: Leaf | None) -> Outcome:
        """Make a leaf the writer of its pynative key; a second writer must agree."""
        assert outcome.pynative is not None
        first = self.writers.get(outcome.pynative)
        if first is None:
            self.writers[outcome.pynative] = (outcome, leaf)
            return outcome
        before, now = written_value(first[0]), written_value(outcome)
        if before == now:
            return replace(outcome, writes=False)
        return Outcome(
            Fate.REFUSED,
            Effect.TRAINING,
            f"`{outcome.pynative}` is {before!r} by another key and {now!r} by this one",
            outcome.pynative,
            help="keep one of them in the graph file",
            final=True,
        )

    def remaining(self) -> None:
        """Derived keys that no leaf has written, then the user's own."""
        for row in DERIVED:
            assert row.pynative is not None
            if row.pynative in self.writers:
                continue
            outcome = self.context.derive(row.pynative)
            if outcome is None or self.mentioned(outcome):
                continue
            self.bare(self.settled(outcome))
        for path, value in self.context.options.overrides.items():
            if path not in self.writers:
                self.bare(Outcome(Fate.COMPUTED, Effect.NONE, "--set", path, value, writes=True))

    def mentioned(self, outcome: Outcome) -> bool:
        """Whether a refusal has been reported by a leaf already, or the key is written."""
        if outcome.pynative in self.writers:
            return True
        return outcome.fate is Fate.REFUSED and any(entry.outcome.why == outcome.why for entry in self.entries)

    def bare(self, outcome: Outcome) -> None:
        if outcome.writes and outcome.pynative is not None:
            outcome = self.claim(outcome, None)
        self.entries.append(Entry(None, outcome, None, written_value(outcome), None))

    def items(self) -> Iterator[Item]:
        """What to write: keys with a source in source order, then the rest, sections in the manual's order."""
        sourced = [(path, found) for path, found in self.writers.items() if found[1] is not None]
        opened = {path.partition(".")[0] for path, _ in sourced}
        bare = [(path, found) for path, found in self.writers.items() if found[1] is None]
        order = list(specs_of(Config))
        bare.sort(key=lambda pair: order.index(pair[0]) if pair[0] in order else len(order))
        bare.sort(key=lambda pair: pair[0].partition(".")[0] not in opened)
        seen: set[str] = set()
        for path, (outcome, leaf) in sourced + bare:
            base = path.partition("[")[0]
            if base not in seen:
                seen.add(base)
                yield self.item(base, outcome, leaf, in_list=base != path)

    def item(self, path: str, outcome: Outcome, leaf: Leaf | None, *, in_list: bool) -> Item:
        names = tuple(path.split("."))
        if leaf is None:
            return Item(names, written_value(outcome))
        if in_list:
            leaf = self.list_around(leaf)
        containers = tuple(reversed(_containers(self.context.graph.document.root, leaf.path)))
        if outcome.node is None:
            value = written_value(outcome)
            kept = outcome.fate is Fate.FLATTENED or value == value_of(leaf.node)
            return Item(
                names, value, leaf.node if kept else None, key=leaf.key if kept else None, containers=containers
            )
        verbatim = outcome.value is Carry.TEXT
        return Item(names, written_value(outcome), leaf.node, verbatim, leaf.key, containers)

    def list_around(self, leaf: Leaf) -> Leaf:
        """The list that a leaf inside a list of mappings belongs to: it moves as a whole."""
        cut = next(place for place, part in enumerate(leaf.path) if isinstance(part, int))
        path = leaf.path[:cut]
        document = self.context.graph.document
        node = document.find(path)
        assert node is not None
        return Leaf(path, _containers(document.root, (*path, ""))[-1], node)


def written_value(outcome: Outcome) -> Value:
    """The value that the output holds, None when the key writes none."""
    if not isinstance(outcome.value, Carry):
        return outcome.value
    assert outcome.node is not None
    return value_of(outcome.node)


def _stands_for_others(leaf: Leaf) -> bool:
    return is_expanded(leaf.node) or leaf.path[-1] == "<<"


def _alias_text(leaf: Leaf) -> str:
    return f"*{leaf.node.name}" if isinstance(leaf.node, Alias) else "<<"


def _own_keys(document: Document, path: Path) -> frozenset[str]:
    node = document.find(path)
    inside = resolved(node) if node is not None else None
    entries = inside.entries if isinstance(inside, MapNode) else ()
    return frozenset(entry.key.text for entry in entries if not is_merge(entry))


def _containers(root: MapNode, path: Path) -> list[Scalar]:
    """The keys of the mappings around a leaf, outermost first; none inside lists, which have no key of their own."""
    found: list[Scalar] = []
    node: Node = root
    for part in path[:-1]:
        inside = resolved(node)
        entry: MapEntry | None = None
        if isinstance(inside, MapNode):
            entry = next((one for one in inside.entries if one.key.text == part), None)
        if entry is None:
            return []
        found.append(entry.key)
        node = entry.value
    return found
