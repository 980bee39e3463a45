"""Pieces of Markdown: headings with an anchor of their own, tables, and text that a table cell holds as it is."""

from collections.abc import Iterable, Sequence

from msmigrate.mapping.back.context import plain
from msmigrate.pynative import Spec
from msmigrate.yaml.scalars import Value, spell

NOTHING = "—"


def heading(level: int, title: str, anchor: str) -> str:
    """A heading that `#anchor` leads to, whatever language its title has."""
    return f'<a id="{anchor}"></a>\n{"#" * level} {title}\n'


def link(title: str, anchor: str) -> str:
    """A link to a heading of the same document."""
    return f"[{title}](#{anchor})"


def table(head: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """A table of cells that are Markdown already."""
    rows = [head, ["---"] * len(head), *lines]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def text(words: str | None) -> str:
    """A sentence as a cell; a dash for none."""
    return words.replace("<", "&lt;").replace("*", "\\*").replace("|", "\\|") if words else NOTHING


def code(name: str | None) -> str:
    """A name or value in code letters; a dash for none."""
    return f"`{name}`".replace("|", "\\|") if name else NOTHING


def value(of: Value) -> str:
    """A value as a file spells it, in code letters."""
    return code(spell(of))


def default_of(spec: Spec) -> str:
    """A key's default; a dash for null."""
    return NOTHING if spec.default is None else value(plain(spec.default))
