"""Graph keys that no row knows: which part of the path is wrong, and what was probably meant."""

from dataclasses import dataclass
from functools import lru_cache

from msmigrate.findings import nearest
from msmigrate.mapping.graph_file import GraphFile
from msmigrate.mapping.outcome import LEARNS, Fate
from msmigrate.mapping.rows import Table, match
from msmigrate.yaml.nodes import Path, dotted

DECIDING = (
    "optimizer", "lr_schedule", "train_dataset", "train_dataset_task", "runner_wrapper", "runner_config", "model",
    "model_config",
)  # fmt: skip
"""Sections of graph files whose keys decide what a run learns."""


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


def is_known(table: Table, graph: GraphFile, path: Path) -> bool:
    """Whether rows know a path or something below it; the whole file is known."""
    key = graph.row_key(path)
    inside = any(section.startswith(f"{key}[") for section in table.children)
    return not path or key in table.children or inside or match(table.by_graph_path, key) is not None


def decides_training(table: Table, path: str) -> bool:
    """Whether a key, known or not, stands where keys decide what a run learns; a misspelt section counts as meant."""
    if _is_near_deciding(path.partition(".")[0]):
        return True
    row = table.by_graph_path.get(path)
    return row is not None and (row.pynative or "").partition(".")[0] in LEARNS


@lru_cache(maxsize=1024)
def _is_near_deciding(section: str) -> bool:
    return nearest(section, DECIDING) is not None


def misspelt(table: Table, graph: GraphFile, path: Path) -> tuple[str, str | None]:
    """The shortest part of an unknown path that nothing knows, and the known path that it probably means."""
    for length in range(1, len(path) + 1):
        part = path[:length]
        key = graph.row_key(part)
        if key not in table.children.get(_parent(key), ()):
            return dotted(part), _suggestion(table, key, path, length)
    return dotted(path), None


def _suggestion(table: Table, key: str, path: Path, length: int) -> str | None:
    close = _near(table, key)
    if close is not None or length < len(path):
        return close
    same = [name for name in table.by_graph_path if name.rpartition(".")[2] == path[-1] and _is_shallow(name)]
    return same[0] if len(same) == 1 else None


def _is_shallow(name: str) -> bool:
    """Whether a path is a key at the top or right below a section there, where a lost indentation leaves it."""
    return name.count(".") <= 1 and "[" not in name


@lru_cache(maxsize=1024)  # the keys of an unknown section all ask for the section
def _near(table: Table, key: str) -> str | None:
    """The known path beside a key that its name probably means."""
    beside = {name.rpartition(".")[2]: name for name in table.children.get(_parent(key), ())}
    close = nearest(key.rpartition(".")[2], [name for name in beside if "[" not in name])
    return None if close is None else beside[close]


def _parent(key: str) -> str:
    return key.rpartition(".")[0]
