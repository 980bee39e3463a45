"""A YAML text from keys that keep the source's own text: values, comments, quotes and list layout move as slices."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from msmigrate.yaml.document import Document, value_of
from msmigrate.yaml.modeline import is_modeline
from msmigrate.yaml.nodes import Alias, Key, Leaf, Node, Path, Scalar, resolved
from msmigrate.yaml.nodes import Sequence as ListNode
from msmigrate.yaml.scalars import Value, spell
from msmigrate.yaml.slices import SourceComments, column_of, content_start, indentation_step, node_text, reindent


@dataclass(frozen=True, slots=True)
class Item:
    """One key to write: its path, and either a value or a node whose text moves there (`verbatim`).

    A number in the path is a place in a list of mappings; its items stand in the order in which they first come. `key`
    and `node` are the source's, when the comments around them come along.
    """

    path: Path
    value: Value = None
    node: Node | None = None
    verbatim: bool = False
    key: Scalar | None = None
    containers: tuple[Scalar, ...] = ()
    """Keys of the source sections around it, innermost first: their comments go to the sections written around it."""
    also: tuple[Leaf, ...] = ()
    """Further keys of the source that say the same: the first of all that has comments gives them."""


@dataclass(slots=True)
class _Section:
    children: "dict[Key, _Section | Item]" = field(default_factory=dict)
    key: Scalar | None = None
    ending: list[Scalar] = field(default_factory=list)
    """Keys of the source sections whose last comments stand at the end of this one."""


def emit(document: Document, items: Sequence[Item], first_line: str | None = None) -> str:
    """The text of a new file that holds the items, sections and keys in the order in which they first come.

    `first_line` is a comment for the top; comments of the source that name its schema stay behind.
    """
    writer = _Writer(document)
    root = _tree(items)
    writer.lines.extend([] if first_line is None else [first_line])
    writer.lines.extend(line for line in writer.comments.head if not is_modeline(line))
    writer.section(root, 0)
    tail = [line for line in writer.comments.tail if not is_modeline(line)]
    if tail:
        writer.lines.extend(["", *tail] if writer.comments.has_blank_lines else tail)
    while writer.lines and not writer.lines[-1]:
        writer.lines.pop()
    return "\n".join(writer.lines) + "\n"


def _tree(items: Iterable[Item]) -> _Section:
    root = _Section()
    used: set[int] = set()
    ended: set[int] = set()
    for item in items:
        section = root
        opened: list[_Section] = []
        for name in item.path[:-1]:
            found = section.children.setdefault(name, _Section())
            assert isinstance(found, _Section)
            section = found
            opened.append(section)
        section.children[item.path[-1]] = item
        _title(opened, item, used)
        _end(opened, item, ended)
    return root


def _title(opened: list[_Section], item: Item, used: set[int]) -> None:
    """Give the sections around an item, innermost first, the comments of the source sections around its source."""
    containers = list(item.containers)
    for section in reversed(opened):
        if not containers:
            return
        container = containers.pop(0)
        index = container.span.start.index
        if section.key is None and index not in used:
            section.key = container
            used.add(index)


def _end(opened: list[_Section], item: Item, ended: set[int]) -> None:
    """Give the sections around an item the last comments of the source sections around its source."""
    inner = list(reversed(opened))
    for number, container in enumerate(item.containers if inner else ()):
        index = container.span.start.index
        if index not in ended:
            inner[min(number, len(inner) - 1)].ending.append(container)
            ended.add(index)


class _Writer:
    def __init__(self, document: Document) -> None:
        self.text = document.source.text
        self.comments = SourceComments(self.text, document.root)
        self.step = indentation_step(document.root)
        self.lines: list[str] = []

    def section(self, section: _Section, indent: int) -> None:
        first = True
        for name, child in section.children.items():
            if isinstance(name, int):
                assert isinstance(child, _Section)
                self.list_item(child, indent)
                continue
            if isinstance(child, Item):
                child = self.with_comments(child)
            key = child.key
            above = self.comments.above(key.span.start) if key is not None else ()
            self.above(above, indent, first=first, section=isinstance(child, _Section) and indent == 0)
            first = False
            if isinstance(child, Item):
                self.item(child, name, indent)
                continue
            self.lines.append(f"{' ' * indent}{name}:{self.section_comment(key)}")
            self.section(child, indent + self.step)
        for container in section.ending:
            self.lines.extend(" " * indent + line for line in self.comments.at_end(container) if not is_modeline(line))

    def with_comments(self, item: Item) -> Item:
        """The item with the comments of another key that says the same, when its own has none."""
        if item.verbatim or (item.key is not None and self.has_comments(item)):
            return item
        others = (replace(item, key=leaf.key, node=leaf.node) for leaf in item.also if leaf.key is not None)
        return next((other for other in others if self.has_comments(other)), item)

    def has_comments(self, item: Item) -> bool:
        assert item.key is not None
        return any(self.comments.above(item.key.span.start)) or bool(self.trailing(item))

    def list_item(self, section: _Section, indent: int) -> None:
        """A mapping in a list: its keys stand two columns behind the dash, which goes before the first of them."""
        start = len(self.lines)
        self.section(section, indent + 2)
        first = next(place for place in range(start, len(self.lines)) if self.lines[place].strip()[:1] not in ("", "#"))
        self.lines[first] = f"{' ' * indent}- {self.lines[first][indent + 2 :]}"

    def above(self, lines: tuple[str, ...], indent: int, *, first: bool, section: bool) -> None:
        """Comment lines above a key; one blank line at most in a row, none at the start of a section."""
        kept = [line for number, line in enumerate(lines) if line or (number and lines[number - 1])]
        kept = [line for line in kept if not is_modeline(line)]
        comments = [line for line in kept if line]
        wants_blank = bool(kept and not kept[0]) or section
        if not self.comments.has_blank_lines:
            wants_blank = False
        if wants_blank and self.lines and self.lines[-1] and not (first and indent):
            self.lines.append("")
        body = kept if kept and kept[0] else kept[1:]
        for line in body if comments else []:
            self.lines.append(" " * indent + line if line else "")

    def section_comment(self, key: Scalar | None) -> str:
        return self.comments.trailing(self.after_colon(key)) if key is not None else ""

    def after_colon(self, key: Scalar) -> int:
        """The index behind the colon of a key; anchors on the section's line are not comments."""
        line_end = self.text.find("\n", key.span.end.index)
        rest = self.text[key.span.end.index : line_end if line_end >= 0 else None]
        colon = rest.find(":")
        anchored = rest[colon + 1 :].split("#", 1)[0].strip().startswith("&")
        offset = rest.find("#") - 1 if anchored and "#" in rest else colon + 1
        return key.span.end.index + offset

    def item(self, item: Item, name: str, indent: int) -> None:
        prefix = f"{' ' * indent}{name}:"
        if item.node is None or not item.verbatim or _from_elsewhere(item):
            self.spelled(item, prefix, indent)
            return
        node = item.node
        shown = resolved(node) if isinstance(node, Alias) else node
        body = node_text(self.text, node)
        delta = indent - (item.key.span.start.column - 1) if item.key else 0
        if isinstance(shown, ListNode) and not shown.flow and not isinstance(node, Alias):
            self.block_list(item, prefix, shown, body, delta)
            return
        first, *rest = body.split("\n")
        lines = [f"{prefix} {first}".rstrip(), *reindent(rest, delta)]
        lines[-1] += self.trailing(item)
        self.lines.extend(lines)

    def trailing(self, item: Item) -> str:
        if item.node is None or item.key is None or _from_elsewhere(item):
            return ""
        return self.comments.trailing(item.node.span.end.index)

    def block_list(self, item: Item, prefix: str, node: ListNode, body: str, delta: int) -> None:
        """A list with dashes keeps its lines, the comments among and behind its items included."""
        lead = " " * column_of(self.text, content_start(self.text, node))
        lines = reindent((lead + body).split("\n"), delta)
        lines[-1] += self.comments.trailing(node.span.end.index)
        self.lines.append(prefix + self.section_comment(item.key))
        self.lines.extend(reindent(self.comments.before_items(item.key, node), delta))
        self.lines.extend(line.rstrip() for line in lines)

    def spelled(self, item: Item, prefix: str, indent: int) -> None:
        value = value_of(item.node) if item.verbatim and item.node is not None else item.value
        if isinstance(value, dict) and value:
            self.lines.append(prefix + self.trailing(item))
            for name, inner in value.items():
                self.lines.append(f"{' ' * (indent + self.step)}{quoted_key(name)}: {spell(inner)}")
            return
        self.lines.append(f"{prefix} {spell(value)}{self.trailing(item)}")


def _from_elsewhere(item: Item) -> bool:
    """Whether a block value stands before its key, where an alias found it: its columns say nothing here."""
    return item.node is not None and item.key is not None and item.node.span.start.index < item.key.span.start.index


def quoted_key(name: str) -> str:
    """A key as written in a mapping of patterns: plain when it is one word, else in single quotes."""
    return name if name.replace("_", "").isalnum() else "'" + name.replace("'", "''") + "'"
