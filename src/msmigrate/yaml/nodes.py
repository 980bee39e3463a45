"""The nodes of a parsed YAML file, each with its place in the source text."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

Key = str | int
Path = tuple[Key, ...]


@dataclass(frozen=True, slots=True)
class Mark:
    """A place in a text: `index` from 0, `line` and `column` from 1."""

    index: int
    line: int
    column: int


class Span(NamedTuple):
    """From `start` up to, not including, `end`."""

    start: Mark
    end: Mark


@dataclass(frozen=True, slots=True)
class Scalar:
    """A scalar as written; `style` is None for plain text, else one of `'`, `"`, `|`, `>`."""

    text: str
    style: str | None
    tag: str | None
    anchor: str | None
    span: Span


@dataclass(frozen=True, slots=True)
class Entry:
    """One `key: value` of a mapping."""

    key: Scalar
    value: "Node"


@dataclass(frozen=True)
class Mapping:
    """A mapping in source order; keys are unique scalars. A merge key keeps its name `<<`."""

    entries: tuple[Entry, ...]
    flow: bool
    anchor: str | None
    span: Span

    def get(self, key: str) -> "Node | None":
        """The value under `key`, or None."""
        entry = self.by_key.get(key)
        return None if entry is None else entry.value

    @cached_property
    def by_key(self) -> dict[str, Entry]:
        """The entries by their key."""
        return {entry.key.text: entry for entry in self.entries}


@dataclass(frozen=True, slots=True)
class Sequence:
    """A list in source order."""

    items: tuple["Node", ...]
    flow: bool
    anchor: str | None
    span: Span


@dataclass(frozen=True, slots=True)
class Alias:
    """`*name`, with the node that it stands for."""

    name: str
    target: "Node"
    span: Span


Node = Scalar | Mapping | Sequence | Alias


def resolved(node: Node) -> "Scalar | Mapping | Sequence":
    """The node itself, or what an alias stands for."""
    while isinstance(node, Alias):
        node = node.target
    return node


@dataclass(frozen=True, slots=True)
class Leaf:
    """A node that counts as one value of a file (contract, section 3), with the key that names it.

    `key` is None inside a list of mappings' own items that are no mappings.
    """

    path: Path
    key: Scalar | None
    node: Node


def leaves(node: Node, path: Path = (), key: Scalar | None = None) -> Iterator[Leaf]:
    """The leaves under a node in source order: scalars, empty collections, plain lists, aliases to collections."""
    if isinstance(node, Mapping) and node.entries:
        for entry in node.entries:
            where = (*path, entry.key.text)
            if entry.key.text == "<<" and entry.key.style is None:
                yield Leaf(where, entry.key, entry.value)
                continue
            yield from leaves(entry.value, where, entry.key)
        return
    if isinstance(node, Sequence) and _holds_mappings(node):
        for position, item in enumerate(node.items):
            yield from leaves(item, (*path, position), key)
        return
    yield Leaf(path, key, node)


def _holds_mappings(node: Node) -> bool:
    shown = resolved(node)
    if isinstance(shown, Sequence):
        return any(_holds_mappings(item) for item in shown.items)
    return isinstance(shown, Mapping)


def dotted(path: Path) -> str:
    """A path for people: `callbacks[2].prefix`."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text
