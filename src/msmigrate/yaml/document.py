"""Parsing: ruamel.yaml's events become nodes with marks, under the rules of the real readers."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NoReturn, Protocol, cast

from msmigrate.problems import UnreadableError
from msmigrate.yaml.blocks import block_end
from msmigrate.yaml.nodes import Alias, Entry, Mapping, Mark, Node, Path, Scalar, Sequence, Span, dotted, resolved
from msmigrate.yaml.scalars import Value, is_broken_date, resolve_plain, to_float, to_int
from msmigrate.yaml.source import Source

MAX_MAPPING_DEPTH = 10
"""The readers refuse deeper mappings."""
MAX_DEPTH = 60
"""Lists and mappings together: far past any real file, and within Python's recursion limit."""
MAX_NODES = 20_000
"""Keys and values with every alias expanded, many times those of any real file: bounds the time that a file takes."""

_CORE_TAG = "tag:yaml.org,2002:"


class _Mark(Protocol):
    index: int
    line: int
    column: int


class _Event(Protocol):
    """The attributes of ruamel.yaml's events that are used here; which of them exist depends on the class."""

    start_mark: _Mark
    end_mark: _Mark
    anchor: str | None
    tag: object
    value: str
    style: str | None
    flow_style: bool


@dataclass(frozen=True, slots=True)
class Part:
    """A file whose text stands, from an index on, in the source of a document that was merged from several files."""

    name: str
    start: int


@dataclass(frozen=True, slots=True)
class Document:
    """A parsed file, or several merged into one: its source and its root mapping.

    Of a merged document, marks have the line and column of their own file and the index in the source, which holds the
    texts of all `parts` one behind the other. `missing` says why files that it includes could not be merged.
    """

    source: Source
    root: Mapping
    parts: tuple[Part, ...] = ()
    missing: str | None = None

    def name_of(self, mark: Mark) -> str:
        """The file that a mark lies in."""
        before = [part.name for part in self.parts if part.start <= mark.index]
        return before[-1] if before else self.source.name

    def find(self, path: Path) -> Node | None:
        """The node at a path through mappings and lists, seen through aliases; None when the file has none."""
        node: Node | None = self.root
        for part in path:
            inside = resolved(node) if node is not None else None
            if isinstance(part, str):
                node = inside.get(part) if isinstance(inside, Mapping) else None
            else:
                in_list = isinstance(inside, Sequence) and part < len(inside.items)
                node = cast(Sequence, inside).items[part] if in_list else None
        return node


def parse(source: Source) -> Document:
    """The document in a text.

    Raises UnreadableError with file:line:column for a syntax error, a duplicate key, an empty file, a root that is no
    mapping, several documents, an unknown tag, an undefined alias, a control character, and nesting past the readers'
    limit.
    """
    _refuse_control_characters(source)
    composer = _Composer(source)
    root = composer.document()
    if root is None or (isinstance(root, Scalar) and value_of(root) is None):
        raise _empty(source)
    if isinstance(root, Mapping) and not root.entries:
        raise _empty(source)
    if not isinstance(root, Mapping):
        raise _error(source, root.span.start, "expected sections such as `model:` at the top level")
    return Document(source, root)


def _empty(source: Source) -> UnreadableError:
    problem = "the file is empty: there is no key in it"
    return UnreadableError(f"{source.name}: {problem}", problem=problem)


def _refuse_control_characters(source: Source) -> None:
    """Characters that YAML does not have, such as NUL; quoted or not, the reader stops at them."""
    found = _NOT_YAML.search(source.text)
    if found is None:
        return
    line = source.text.count("\n", 0, found.start()) + 1
    column = found.start() - source.text.rfind("\n", 0, found.start())
    code = f"U+{ord(found.group()):04X}" + (" (NUL)" if found.group() == "\0" else "")
    message = f"character {code} cannot be part of a YAML file, and the reader stops at it; remove it"
    raise _error(source, Mark(found.start(), line, column), message)


def _error(source: Source, mark: Mark, message: str) -> UnreadableError:
    text = f"{source.name}:{mark.line}:{mark.column}: {message}"
    return UnreadableError(text, line=mark.line, column=mark.column, problem=message)


def _mark(mark: _Mark) -> Mark:
    return Mark(mark.index, mark.line + 1, mark.column + 1)


class _Composer:
    """Nodes from events; recursive, with bounded depth."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.anchors: dict[str, Node] = {}
        self.anchor_nodes: dict[str, int] = {}
        self.nodes = 0
        self.nodes_of_aliases = 0
        self.open_anchors: set[str] = set()
        self.events = _events(source)

    def document(self) -> Node | None:
        """The node of the only document, None when the stream has none."""
        root = None
        for event in self.events:
            kind = type(event).__name__
            if kind == "DocumentStartEvent":
                if root is not None:
                    self.fail(event, "a second YAML document starts here; a config file holds one document")
                root = self.node(next(self.events), (), 0)
        return root

    def fail(self, event: _Event, message: str) -> NoReturn:
        raise _error(self.source, _mark(event.start_mark), message)

    def node(self, event: _Event, path: Path, mappings: int) -> Node:
        kind = type(event).__name__
        if kind == "AliasEvent":
            return self.alias(event)
        if len(path) > MAX_DEPTH:
            self.fail(event, f"more than {MAX_DEPTH} levels of lists and mappings")
        before = self.nodes
        self.count(event, 1)
        if event.anchor:
            self.check_anchor(event)
            self.open_anchors.add(event.anchor)
        if kind == "ScalarEvent":
            node: Node = self.scalar(event)
        elif kind == "SequenceStartEvent":
            self.check_tag(event, "seq")
            node = self.sequence(event, path, mappings)
        else:
            self.check_tag(event, "map")
            if mappings == MAX_MAPPING_DEPTH:
                self.fail(event, f"`{dotted(path)}` nests more than {MAX_MAPPING_DEPTH} mappings, the readers' limit")
            node = self.mapping(event, path, mappings + 1)
        if event.anchor:
            self.open_anchors.discard(event.anchor)
            self.anchors[event.anchor] = node
            self.anchor_nodes[event.anchor] = self.nodes - before
        return node

    def check_anchor(self, event: _Event) -> None:
        name = event.anchor or ""
        if name in self.anchors or name in self.open_anchors:
            self.fail(event, f"anchor &{name} stands twice; the reader takes each name once")
        if not _ANCHOR.fullmatch(name):
            self.fail(event, f"anchor &{name}: the reader takes letters, digits, - and _ in a name")

    def count(self, event: _Event, nodes: int) -> None:
        self.nodes += nodes
        if self.nodes > MAX_NODES:
            most = ", most of them by aliases" if 2 * self.nodes_of_aliases > self.nodes else ""
            self.fail(event, f"more than {MAX_NODES} keys and values up to here{most}: this is no configuration file")

    def alias(self, event: _Event) -> Alias:
        name = event.anchor or ""
        if name in self.open_anchors:
            self.fail(event, f"alias *{name} stands inside its own anchor &{name}")
        if name not in self.anchors:
            self.fail(event, f"alias *{name} has no anchor &{name} before it")
        self.nodes_of_aliases += self.anchor_nodes[name]
        self.count(event, self.anchor_nodes[name])
        return Alias(name, self.anchors[name], Span(_mark(event.start_mark), _mark(event.end_mark)))

    def scalar(self, event: _Event) -> Scalar:
        tag = self.tag(event)
        span = Span(_mark(event.start_mark), _mark(event.end_mark))
        if event.style in ("|", ">"):
            span = Span(span.start, block_end(self.source.text, span))
        implicit = event.style is None and tag in (None, "!")
        if implicit and is_broken_date(event.value):
            self.fail(event, f"`{event.value}` looks like a date and is none: the reader stops at it; quote it")
        if implicit and event.value == "=":
            self.fail(event, "a plain `=` has a meaning of its own in YAML 1.1, and the reader stops at it; quote it")
        node = Scalar(event.value, event.style or None, tag, event.anchor, span)
        try:
            _scalar_value(node)
        except ValueError:
            self.fail(event, f"`{event.value}` is no value that the YAML 1.1 reader can make")
        return node

    def value(self, event: _Event, path: Path, mappings: int) -> Node:
        """A node that is no key: there the merge sign says nothing."""
        node = self.node(event, path, mappings)
        if isinstance(node, Scalar) and node.text == "<<" and node.style is None and node.tag in (None, "!"):
            self.fail(event, "a plain `<<` is the merge key, and the reader stops at it as a value; quote it")
        return node

    def sequence(self, event: _Event, path: Path, mappings: int) -> Sequence:
        items: list[Node] = []
        end = event
        for inner in self.events:
            if type(inner).__name__ == "SequenceEndEvent":
                end = inner
                break
            items.append(self.value(inner, (*path, len(items)), mappings))
        span = self.span(event, end, items)
        return Sequence(tuple(items), bool(event.flow_style), event.anchor, span)

    def mapping(self, event: _Event, path: Path, mappings: int) -> Mapping:
        entries: dict[str, Entry] = {}
        end = event
        for inner in self.events:
            if type(inner).__name__ == "MappingEndEvent":
                end = inner
                break
            key = self.node(inner, path, mappings)
            if isinstance(key, Alias):
                key = resolved(key)
            if not isinstance(key, Scalar):
                self.fail(inner, "a key must be one word, not a list or a mapping")
            if key.text in entries:
                first = entries[key.text].key.span.start
                self.fail(
                    inner,
                    f"`{dotted((*path, key.text))}` stands twice, on line {first.line} and on line "
                    f"{key.span.start.line}; the reader would take the last one in silence, remove one of them",
                )
            entry = Entry(key, self.value(next(self.events), (*path, key.text), mappings))
            if is_merge(entry) and not _can_be_merged(entry.value):
                self.fail(inner, "the merge key << takes a mapping or a list of mappings")
            entries[key.text] = entry
        span = self.span(event, end, [node for entry in entries.values() for node in (entry.key, entry.value)])
        return Mapping(tuple(entries.values()), bool(event.flow_style), event.anchor, span)

    def span(self, start: _Event, end: _Event, inside: list[Node]) -> Span:
        """A flow collection ends with its bracket; a block collection with its last value."""
        if start.flow_style:
            self.check_gaps(start, [*(node.span for node in inside), Span(_mark(end.end_mark), _mark(end.end_mark))])
        last = inside[-1].span.end if inside and not start.flow_style else _mark(end.end_mark)
        return Span(_mark(start.start_mark), last)

    def check_gaps(self, start: _Event, spans: list[Span]) -> None:
        """No tab may stand between the parts of a flow collection, comments aside: the reader stops at it."""
        after = start.start_mark.index
        for span in spans:
            lines = self.source.text[after : span.start.index].split("\n")
            if any("\t" in line.partition("#")[0] for line in lines):
                self.fail(start, "a tab stands between the brackets, and the reader stops at it; write blanks")
            after = max(after, span.end.index)

    def tag(self, event: _Event) -> str | None:
        tag = None if event.tag is None else str(event.tag)
        if tag in (None, "!"):
            return tag
        assert tag is not None
        if tag.removeprefix(_CORE_TAG) not in ("str", "int", "float", "bool", "null", "seq", "map"):
            self.fail(event, f"tag {tag} is unknown to the readers; only plain YAML values are taken")
        return tag

    def check_tag(self, event: _Event, kind: str) -> None:
        tag = self.tag(event)
        if tag not in (None, "!", _CORE_TAG + kind):
            self.fail(event, f"tag {tag} does not fit here")


def _events(source: Source) -> Iterator[_Event]:
    from ruamel.yaml import YAML
    from ruamel.yaml.error import MarkedYAMLError, YAMLError

    parser = YAML(typ="safe", pure=True)
    parser.version = (1, 1)
    try:
        yield from parser.parse(source.text)
    except MarkedYAMLError as error:
        context = f" ({error.context})" if error.context else ""
        message = f"not valid YAML: {error.problem or 'syntax error'}{context}"
        mark = error.problem_mark or error.context_mark
        if mark is None:
            raise UnreadableError(f"{source.name}: {message}", problem=message) from error
        raise _error(source, _mark(mark), message) from error
    except YAMLError as error:
        raise UnreadableError(f"{source.name}: {' '.join(str(error).split())}") from error


def value_of(node: Node) -> Value:
    """What the real reader makes of a node: PyYAML's values, merge keys merged, aliases expanded.

    Raises ValueError for a scalar that PyYAML takes for a number and cannot convert.
    """
    node = resolved(node)
    if isinstance(node, Scalar):
        return _scalar_value(node)
    if isinstance(node, Sequence):
        return [value_of(item) for item in node.items]
    return {entry.key.text: value_of(entry.value) for entry in effective_entries(node)}


def effective_entries(mapping: Mapping) -> list[Entry]:
    """The entries of a mapping with merge keys replaced by what they merge; own keys win, earlier merges win."""
    own = [entry for entry in mapping.entries if not is_merge(entry)]
    seen = {entry.key.text for entry in own}
    merged: list[Entry] = []
    for entry in mapping.entries:
        if not is_merge(entry):
            continue
        value = resolved(entry.value)
        for part in value.items if isinstance(value, Sequence) else (value,):
            inner = resolved(part)
            if not isinstance(inner, Mapping):
                continue
            for found in effective_entries(inner):
                if found.key.text not in seen:
                    seen.add(found.key.text)
                    merged.append(found)
    return merged + own


def is_merge(entry: Entry) -> bool:
    """Whether an entry is a YAML 1.1 merge key."""
    return entry.key.text == "<<" and entry.key.style is None


def _can_be_merged(node: Node) -> bool:
    value = resolved(node)
    parts = value.items if isinstance(value, Sequence) else (value,)
    return all(isinstance(resolved(part), Mapping) for part in parts)


def _scalar_value(node: Scalar) -> Value:
    tag = None if node.tag == "!" and node.style is None else node.tag
    if tag == "!" or (tag is None and node.style is not None):
        return node.text
    if tag is None:
        return resolve_plain(node.text)
    kind = tag.removeprefix(_CORE_TAG)
    if kind == "str":
        return node.text
    if kind == "null":
        return None
    if kind == "int":
        return to_int(node.text)
    if kind == "float":
        return to_float(node.text)
    value = resolve_plain(node.text.lower())
    if kind == "bool" and isinstance(value, bool):
        return value
    raise ValueError(f"{node.text} is no {kind}")


_ANCHOR = re.compile(r"[A-Za-z0-9_-]+")
_NOT_YAML = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Outside the printable characters of YAML 1.1, section 5.1."""
