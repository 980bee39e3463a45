"""Pieces of a source text: the text of a node without anchors and aliases, and the comments around a key."""

from bisect import bisect_right
from collections.abc import Iterator
from functools import cached_property
from itertools import accumulate

from msmigrate.yaml.document import value_of
from msmigrate.yaml.nodes import Alias, Mapping, Mark, Node, Scalar, Sequence, resolved
from msmigrate.yaml.scalars import spell


def content_start(text: str, node: Node) -> int:
    """The index at which a node's own text starts, behind its anchor."""
    start = node.span.start.index
    if isinstance(node, Alias) or node.anchor is None:
        return start
    start = text.index(node.anchor, start) + len(node.anchor)
    return start + len(text[start:]) - len(text[start:].lstrip(" \n"))


def column_of(text: str, index: int) -> int:
    """The column, from 0, of an index."""
    return index - text.rfind("\n", 0, index) - 1


def node_text(text: str, node: Node) -> str:
    """A node's own text, with anchors left out and aliases replaced by what they stand for."""
    if isinstance(node, Alias):
        target = resolved(node)
        inline = isinstance(target, Scalar) or target.flow
        shown = node_text(text, target) if inline else spell(value_of(target))
        return shown if "\n" not in shown else spell(value_of(target))
    start, end = content_start(text, node), node.span.end.index
    pieces: list[str] = []
    for child in _children(node):
        pieces.append(text[start : child.span.start.index])
        pieces.append(node_text(text, child))
        start = child.span.end.index
    pieces.append(text[start:end])
    return "".join(pieces)


def _children(node: Node) -> Iterator[Node]:
    if isinstance(node, Sequence):
        yield from node.items
    elif isinstance(node, Mapping):
        for entry in node.entries:
            yield entry.value


def reindent(lines: list[str], delta: int) -> list[str]:
    """Lines moved by `delta` columns; blank lines stay blank, and no line moves left of column 0."""
    if delta >= 0:
        return [" " * delta + line if line.strip() else "" for line in lines]
    return [line[min(-delta, len(line) - len(line.lstrip(" "))) :] for line in lines]


class SourceComments:
    """Comments of a source text, found by the line of a key."""

    def __init__(self, text: str, root: Mapping) -> None:
        self._text = text
        self._lines = text.split("\n")
        self._starts = list(accumulate((len(line) + 1 for line in self._lines), initial=0))
        self._root = root
        self._inside = frozenset(self._multiline(root))

    def above(self, key: Mark) -> tuple[str, ...]:
        """The comments directly above the start of a key; deeper ones belong to what ends there."""
        line, column = self._line(key), key.column
        first = line - 1
        while first > 0 and self._is_aside(first):
            first -= 1
        region = self._lines[first : line - 1]
        deeper = [number for number, one in enumerate(region) if one.strip() and _indent(one) > column - 1]
        region = region[deeper[-1] + 1 :] if deeper else region
        if first == 0:
            region = region[len(self.head) :]
        return tuple(one.strip() for one in region)

    def trailing(self, index: int) -> str:
        """The rest of a line from an index of the text if it is a comment, with the gap before it; else empty."""
        end = self._text.find("\n", index)
        rest = self._text[index : end if end >= 0 else None]
        return rest.rstrip() if rest.lstrip().startswith("#") else ""

    def before_items(self, key: Scalar | None, items: Sequence) -> list[str]:
        """The comment lines between a key and the first item of its block list, as they stand."""
        if key is None:
            return []
        first, last = self._line(key.span.end), bisect_right(self._starts, content_start(self._text, items))
        return [line.rstrip() for line in self._lines[first : last - 1] if line.lstrip().startswith("#")]

    def at_end(self, section: Scalar) -> tuple[str, ...]:
        """The comments behind the last key of a section, named by its own key, that are indented as its keys are."""
        return self._ends.get(section.span.start.index, ())

    @cached_property
    def _ends(self) -> dict[int, tuple[str, ...]]:
        return dict(self._last_comments(self._root))

    def _last_comments(self, node: Mapping) -> Iterator[tuple[int, tuple[str, ...]]]:
        for entry in node.entries:
            value = entry.value
            if not isinstance(value, Mapping) or value.flow or not value.entries:
                continue
            last = value.entries[-1]
            deepest = last.key.span.start.column - 1 if _is_section(last.value) else len(self._text)
            found: list[str] = []
            for line in self._lines[self._line(value.span.end) :]:
                if line.strip() and (not line.lstrip().startswith("#") or _indent(line) < entry.key.span.start.column):
                    break
                if line.strip() and _indent(line) <= deepest:
                    found.append(line.strip())
            yield entry.key.span.start.index, tuple(found)
            yield from self._last_comments(value)

    @cached_property
    def head(self) -> list[str]:
        """The comment block at the top of the file that a blank line sets apart, up to that blank line."""
        count = 0
        while count < len(self._lines) and self._is_aside(count + 1):
            count += 1
        block = self._lines[:count]
        if count == len(self._lines):
            return block
        blank = [number for number, one in enumerate(block) if not one.strip()]
        return block[: blank[-1] + 1] if blank else []

    @cached_property
    def tail(self) -> list[str]:
        """Comments at column 0 after the last key."""
        count = len(self._lines)
        while count > 0 and self._is_aside(count):
            count -= 1
        block = self._lines[count:]
        return [line for line in block if line.startswith("#")]

    @cached_property
    def has_blank_lines(self) -> bool:
        """Whether the author sets keys apart with blank lines."""
        return any(not line.strip() for line in self._lines[len(self.head) : -1])

    def _line(self, mark: Mark) -> int:
        """The line of the whole text; a mark's own line counts in the file that it comes from."""
        return bisect_right(self._starts, mark.index)

    def _multiline(self, node: Node) -> Iterator[int]:
        """Lines that belong to scalars of several lines."""
        if isinstance(node, Scalar):
            yield from range(self._line(node.span.start) + 1, self._line(node.span.end) + 1)
        for child in _children(node):
            yield from self._multiline(child)

    def _is_aside(self, line: int) -> bool:
        text = self._lines[line - 1].strip()
        return line not in self._inside and (not text or text.startswith("#"))


def _is_section(node: Node) -> bool:
    return isinstance(node, Mapping) and not node.flow


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def indentation_step(root: Mapping) -> int:
    """Columns by which the author indents a section's keys; 2 when the file has no section."""
    for entry in root.entries:
        value = resolved(entry.value)
        if isinstance(value, Mapping) and not value.flow and value.entries:
            return max(value.entries[0].key.span.start.column - entry.key.span.start.column, 1)
    return 2
