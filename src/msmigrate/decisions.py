"""The decisions of one conversion as they are made: an entry per leaf, the first writer of each key, what to write."""

from collections.abc import Iterator
from dataclasses import replace

from msmigrate.entries import Brought, Entry, Mode, written_value
from msmigrate.mapping.graph_file import is_expanded, merge_sources
from msmigrate.mapping.outcome import Carry, Effect, Fate, Outcome
from msmigrate.wording import shown
from msmigrate.yaml.document import Document, is_merge, value_of
from msmigrate.yaml.emit import Item
from msmigrate.yaml.nodes import Alias, Key, Leaf, Node, Path, Scalar, Sequence, Span, dotted, leaves, resolved
from msmigrate.yaml.nodes import Entry as MapEntry
from msmigrate.yaml.nodes import Mapping as MapNode

Writer = tuple[str, Outcome, Leaf | None]
"""A key of the output, the decision that writes it, and the leaf that asked for it."""


class Decisions:
    """Entries in source order, and the first writer of each key of the output. A direction says how leaves fare."""

    def __init__(self, document: Document, mode: Mode) -> None:
        self.document = document
        self.mode = mode
        self.entries: list[Entry] = []
        self.writers: dict[str, tuple[Outcome, Leaf | None]] = {}
        self.named: dict[str, list[Leaf]] = {}
        """The leaves that name each key of the output, the first writer's first."""
        self.bringing = ""
        """The alias or merge key whose keys are decided on."""

    def leaf(self, leaf: Leaf, *, counted: bool = True) -> None:
        """Decide on a leaf; `counted` is False for keys that an alias or merge key brings in."""
        raise NotImplementedError

    def expanded(self, leaf: Leaf, *, counted: bool) -> None:
        """An alias to a mapping, or a merge key: the keys it brings in are written out where it stands."""
        merge, base = leaf.path[-1] == "<<", place_of(leaf)
        why = "the keys that it brings in are written out"
        self.add(leaf, Outcome(Fate.FLATTENED, Effect.NONE, why), counted=counted)
        around, self.bringing = self.bringing, _written_text(leaf)
        for inner in self.merged(leaf, base) if merge else leaves(resolved(leaf.node), base, leaf.key):
            self.leaf(inner, counted=False)
        self.bringing = around

    def merged(self, leaf: Leaf, base: Path) -> Iterator[Leaf]:
        """The leaves that a merge key brings in: own keys win, earlier merges win."""
        taken = _own_keys(self.document, base)
        for source in merge_sources(leaf.node):
            yield from (inner for inner in leaves(source, base, leaf.key) if inner.path[len(base)] not in taken)
            taken = taken | {entry.key.text for entry in source.entries}

    def add(self, leaf: Leaf, outcome: Outcome, *, counted: bool) -> None:
        """Account for a leaf."""
        if outcome.writes and outcome.target is not None:
            outcome = self.claim(outcome, leaf)
        old = _alias_text(leaf) if stands_for_others(leaf) else value_of(leaf.node)
        span = Span((leaf.key or leaf.node).span.start, leaf.node.span.end)
        path = dotted(leaf.path)
        source, brought = (path, None) if counted else (None, Brought(path, self.bringing))
        self.entries.append(Entry(source, outcome, old, written_value(outcome), span, self.mode, brought))

    def bare(self, outcome: Outcome) -> None:
        """Account for a key that is written without a leaf."""
        if outcome.writes and outcome.target is not None:
            outcome = self.claim(outcome, None)
        self.entries.append(Entry(None, outcome, None, written_value(outcome), None, self.mode))

    def claim(self, outcome: Outcome, leaf: Leaf | None) -> Outcome:
        """Make a leaf the writer of its key in the output; a second writer must agree."""
        assert outcome.target is not None
        if leaf is not None:
            self.named.setdefault(outcome.target, []).append(leaf)
        first = self.writers.get(outcome.target)
        if first is None:
            self.writers[outcome.target] = (outcome, leaf)
            return outcome
        before, now = written_value(first[0]), written_value(outcome)
        if before == now:
            return replace(outcome, writes=False)
        return Outcome(
            Fate.REFUSED,
            Effect.TRAINING,
            f"`{outcome.target}` is {shown(before)} by another key and {shown(now)} by this one",
            outcome.target,
            help=f"keep one of them in the {self.mode} file",
            final=True,
        )

    def mentioned(self, outcome: Outcome) -> bool:
        """Whether a refusal has been reported by a leaf already, or the key is written."""
        if outcome.target in self.writers:
            return True
        return outcome.fate is Fate.REFUSED and any(entry.outcome.why == outcome.why for entry in self.entries)

    def arranged(self) -> list[Writer]:
        """What to write, in order."""
        raise NotImplementedError

    def names(self, path: str) -> Path:
        """The place in the output of a key by its dotted path."""
        return tuple(path.split("."))

    def items(self) -> Iterator[Item]:
        """What to write; a list of mappings that the source has moves as a whole, with its first key."""
        seen: set[Path] = set()
        for path, outcome, leaf in self.arranged():
            inside = _inside_a_list(path)
            names = self.names(path.partition("[")[0] if inside else path)
            if names not in seen:
                seen.add(names)
                also = () if inside else tuple(self.named.get(path, ())[1:])
                yield replace(self.item(names, outcome, leaf, in_list=inside), also=also)

    def item(self, names: Path, outcome: Outcome, leaf: Leaf | None, *, in_list: bool) -> Item:
        if leaf is None:
            return Item(names, written_value(outcome))
        if in_list:
            leaf = self.list_around(leaf)
        around = tuple(reversed(containers(self.document.root, leaf.path)))
        if outcome.node is None:
            return Item(names, written_value(outcome), leaf.node, key=leaf.key, containers=around)
        verbatim = outcome.value is Carry.TEXT
        return Item(names, written_value(outcome), leaf.node, verbatim, leaf.key, around)

    def list_around(self, leaf: Leaf) -> Leaf:
        """The list that a leaf inside a list of mappings belongs to: it moves as a whole."""
        cut = next(place for place, part in enumerate(leaf.path) if isinstance(part, int))
        path = leaf.path[:cut]
        node = self.document.find(path)
        assert node is not None
        return Leaf(path, containers(self.document.root, (*path, ""))[-1], node)


def place_of(leaf: Leaf) -> Path:
    """The path of what a leaf fills: its own, and that of the mapping around a merge key."""
    return leaf.path[:-1] if leaf.path[-1] == "<<" else leaf.path


def stands_for_others(leaf: Leaf) -> bool:
    """Whether a leaf brings in keys that are written elsewhere: an alias to a mapping, or a merge key."""
    return is_expanded(leaf.node) or leaf.path[-1] == "<<"


def brought_in(node: Node) -> Iterator[Leaf]:
    """The leaves of what the aliases in a leaf's node stand for."""
    if isinstance(node, Alias):
        yield from leaves(resolved(node))
    elif isinstance(node, Sequence):
        for item in node.items:
            yield from brought_in(item)


def containers(root: MapNode, path: Path) -> list[Scalar]:
    """The keys of the mappings around a leaf, outermost first; none inside lists, which have no key of their own."""
    found: list[Scalar] = []
    node: Node = root
    for part in path[:-1]:
        entry = _entry(node, part)
        if entry is None:
            return []
        found.append(entry.key)
        node = entry.value
    return found


def _entry(node: Node, part: Key) -> MapEntry | None:
    inside = resolved(node)
    return inside.by_key.get(str(part)) if isinstance(inside, MapNode) else None


def _inside_a_list(path: str) -> bool:
    """Whether a path names a key of a numbered list item, such as `handler[0].type`."""
    return path.partition("[")[2][:1].isdigit()


def _alias_text(leaf: Leaf) -> str:
    return f"*{leaf.node.name}" if isinstance(leaf.node, Alias) else "<<"


def _written_text(leaf: Leaf) -> str:
    """`optimizer: *o` or `<<: [*a, *b]`, for people."""
    parts = leaf.node.items if isinstance(leaf.node, Sequence) else (leaf.node,)
    names = ", ".join(f"*{part.name}" if isinstance(part, Alias) else "{…}" for part in parts)
    return f"{dotted(leaf.path)}: " + (f"[{names}]" if isinstance(leaf.node, Sequence) else names)


def _own_keys(document: Document, path: Path) -> frozenset[str]:
    node = document.find(path)
    inside = resolved(node) if node is not None else None
    entries = inside.entries if isinstance(inside, MapNode) else ()
    return frozenset(entry.key.text for entry in entries if not is_merge(entry))
