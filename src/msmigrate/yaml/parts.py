"""Files that include others by `base_config`: read together and merged into one document, as MindFormers 0.3 did."""

import os
from dataclasses import replace

from msmigrate.yaml.document import Document, Part, parse, value_of
from msmigrate.yaml.nodes import Alias, Entry, Mapping, Mark, Node, Scalar, Sequence, Span, resolved
from msmigrate.yaml.source import read_source, shown_path

KEY = "base_config"
MAX_DEPTH = 10
"""Files that include files that include files: real ones go one deep."""
MAX_PARTS = 64


class _MissingPartError(Exception):
    """A sentence on what keeps the parts from being merged."""


def with_parts(document: Document, path: str) -> Document:
    """The document of the file at `path` with the files that it includes; itself when it includes none.

    Paths start from the including file. Sections of later files replace those of earlier ones whole; the including
    file is merged over them key by key. Where a file is missing, or includes itself, `missing` says so. Raises
    UnreadableError for a part that is no YAML file.
    """
    if _included(document.root) is None:
        return document
    if path == "-":
        return replace(
            document, missing="base_config names files beside this one, and standard input has no folder: give its path"
        )
    merger = _Merger(document)
    try:
        root = merger.merged(document.root, path, (os.path.realpath(path),))
    except _MissingPartError as problem:
        return replace(document, missing=str(problem))
    return Document(replace(document.source, text=merger.text), root, tuple(merger.parts))


class _Merger:
    """Texts one behind the other, and where each starts."""

    def __init__(self, document: Document) -> None:
        self.text = _ended(document.source.text)
        self.parts = [Part(document.source.name, 0)]

    def merged(self, own: Mapping, path: str, around: tuple[str, ...]) -> Mapping:
        """A root mapping over those of the files that it includes; `around` are the files that include this one."""
        base: dict[str, Entry] = {}
        for name in _included(own) or ():
            part = os.path.normpath(os.path.join(os.path.dirname(path), name))
            for entry in self.part(part, around).entries:
                if entry.key.text != KEY:
                    base[entry.key.text] = entry
        return _over(own, tuple(base.values()))

    def part(self, path: str, around: tuple[str, ...]) -> Mapping:
        """The root of an included file, its own parts merged in."""
        if len(around) > MAX_DEPTH or len(self.parts) > MAX_PARTS:
            raise _MissingPartError(
                f"base_config of {self.parts[0].name} leads to more than {MAX_PARTS} files, or {MAX_DEPTH} deep"
            )
        if not os.path.exists(path):
            raise _MissingPartError(f"base_config names {shown_path(path)}, and there is no such file")
        real = os.path.realpath(path)
        if real in around:
            raise _MissingPartError(f"base_config leads in a circle: {shown_path(path)} includes itself")
        document = parse(read_source(path))
        root = _Shift(len(self.text)).mapping(document.root)
        self.parts.append(Part(document.source.name, len(self.text)))
        self.text += _ended(document.source.text)
        return self.merged(root, path, (*around, real))


def _included(root: Mapping) -> list[str] | None:
    """The paths of base_config; None without the key. Raises _MissingPartError for anything but paths."""
    node = root.get(KEY)
    value = None if node is None else value_of(node)
    if value is None:
        return None
    names = value if isinstance(value, list) else [value]
    return [str(name) for name in names]


def _over(own: Mapping, base: tuple[Entry, ...]) -> Mapping:
    """Own entries, merged key by key with those of the same sections in `base`, then the rest of `base`."""
    below = {entry.key.text: entry for entry in base}
    entries: list[Entry] = []
    for entry in own.entries:
        under = below.pop(entry.key.text, None)
        upper = resolved(entry.value)
        lower = None if under is None else resolved(under.value)
        if isinstance(upper, Mapping) and isinstance(lower, Mapping):
            entry = Entry(entry.key, _over(upper, lower.entries))
        entries.append(entry)
    return replace(own, entries=(*entries, *below.values()))


def _ended(text: str) -> str:
    return text if text.endswith("\n") else text + "\n"


class _Shift:
    """Nodes with their indices moved behind the texts of other files."""

    def __init__(self, offset: int) -> None:
        self.offset = offset
        self.done: dict[int, Node] = {}

    def node(self, node: Node) -> Node:
        """The moved node; one that several aliases share stays one."""
        found = self.done.get(id(node))
        if found is None:
            found = self.done[id(node)] = self.moved(node)
        return found

    def moved(self, node: Node) -> Node:
        if isinstance(node, Scalar):
            return self.scalar(node)
        if isinstance(node, Sequence):
            return replace(node, items=tuple(self.node(item) for item in node.items), span=self.span(node.span))
        if isinstance(node, Alias):
            return replace(node, target=self.node(node.target), span=self.span(node.span))
        return self.mapping(node)

    def mapping(self, node: Mapping) -> Mapping:
        entries = tuple(Entry(self.scalar(entry.key), self.node(entry.value)) for entry in node.entries)
        return replace(node, entries=entries, span=self.span(node.span))

    def scalar(self, node: Scalar) -> Scalar:
        return replace(node, span=self.span(node.span))

    def span(self, span: Span) -> Span:
        return Span(self.mark(span.start), self.mark(span.end))

    def mark(self, mark: Mark) -> Mark:
        return replace(mark, index=mark.index + self.offset)
