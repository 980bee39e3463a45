"""Graph keys that no row knows: which part of the path is wrong, and what was probably meant."""

from dataclasses import dataclass

from msmigrate.findings import nearest
from msmigrate.mapping.graph_file import GraphFile
from msmigrate.mapping.outcome import Fate
from msmigrate.mapping.rows import Table
from msmigrate.yaml.nodes import Path, dotted


@dataclass(frozen=True, slots=True)
class Section:
    """A section that rows know; `matters` when some row carries or computes with a key of it."""

    path: str
    matters: bool


def section_of(table: Table, graph: GraphFile, path: Path) -> Section | None:
    """The section that a path names, None when it is no section."""
    key = graph.row_key(path)
    if key not in table.children:
        return None
    inside = [row for name, row in table.by_graph_path.items() if name.startswith(key + ".")]
    return Section(key, any(row.fate is not Fate.DROPPED for row in inside))


def misspelt(table: Table, graph: GraphFile, path: Path) -> tuple[str, str | None]:
    """The shortest part of an unknown path that nothing knows, and the known path that it probably means."""
    for length in range(1, len(path) + 1):
        part = path[:length]
        key = graph.row_key(part)
        if key not in table.children.get(_parent(key), ()):
            return dotted(part), _suggestion(table, key, path, length)
    return dotted(path), None


def _suggestion(table: Table, key: str, path: Path, length: int) -> str | None:
    parent = _parent(key)
    beside = {name.rpartition(".")[2]: name for name in table.children.get(parent, ())}
    close = nearest(key.rpartition(".")[2], beside)
    if close is not None:
        return beside[close]
    if length < len(path):
        return None
    same = sorted(name for name in table.by_graph_path if name.rpartition(".")[2] == path[-1])
    return same[0] if same else None


def _parent(key: str) -> str:
    return key.rpartition(".")[0]
