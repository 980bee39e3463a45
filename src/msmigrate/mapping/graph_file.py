"""A Graph-mode file as the graph trainer reads it: values by dotted path, and which family of files it belongs to."""

import sys
from dataclasses import dataclass, field
from enum import StrEnum

from msmigrate.problems import UserError
from msmigrate.wording import shown
from msmigrate.yaml.document import Document, effective_entries, value_of
from msmigrate.yaml.nodes import Alias, Mapping, Node, Path, Scalar, Sequence, resolved
from msmigrate.yaml.scalars import Value, is_unsafe_float, resolve_plain


class Family(StrEnum):
    """Layouts of Graph-mode files."""

    MCORE = "mcore"
    LEGACY = "legacy"
    LLMTRAINER = "llmtrainer"
    SPLIT = "split"


_TRUTH = "True or False"
LARGEST = 10**12
"""Far past any count of samples or steps: a bound against typing errors."""
MODEL_SECTION = "model.model_config"
"""Where a graph file describes its model."""
GRAPH_SECTIONS = ("runner_config", "parallel_config", "lr_schedule", "recompute_config", "runner_wrapper")
PYNATIVE_SECTIONS = ("training", "lr_scheduler", "parallelism", "recompute", "recompute_comm")


@dataclass(frozen=True, slots=True)
class GraphFile:
    """A parsed graph file."""

    document: Document
    _found: dict[str, Node | None] = field(default_factory=dict, compare=False, repr=False)
    """Nodes by path: rules ask for the same few hundred paths again and again."""

    def node(self, path: str) -> Node | None:
        """The node at a dotted path through mappings, aliases and merge keys; None when absent."""
        if path not in self._found:
            above, _, name = path.rpartition(".")
            around = self.node(above) if above else self.document.root
            inside = None if around is None else resolved(around)
            self._found[path] = None if not isinstance(inside, Mapping) else _value_in(inside, name)
        return self._found[path]

    def value(self, path: str, default: Value = None) -> Value:
        """The value at a path; the default when the key is absent or null."""
        node = self.node(path)
        value = None if node is None else value_of(node)
        return default if value is None else value

    def integer(self, path: str, default: int) -> int:
        """A whole number; raises UserError naming the place for anything else."""
        value = self.value(path, default)
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if not isinstance(value, int) or isinstance(value, bool):
            raise self._wrong(path, "a whole number")
        if abs(value) > LARGEST:
            raise self._wrong(path, f"a whole number up to {LARGEST}")
        return value

    def positive(self, path: str, default: int) -> int:
        """A whole number of at least 1."""
        value = self.integer(path, default)
        if value < 1:
            raise self._wrong(path, "a whole number of at least 1")
        return value

    def number(self, path: str, default: float) -> float:
        """A finite number; a text such as 5e-1, which YAML 1.1 does not take for one, counts as the number meant."""
        value = self.value(path, default)
        if isinstance(value, str) and is_unsafe_float(value):
            value = float(value)
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise self._wrong(path, "a number")
        if not -sys.float_info.max <= value <= sys.float_info.max:  # NaN, infinities, integers past all floats
            raise self._wrong(path, "a finite number")
        return float(value)

    def section(self, path: str) -> bool:
        """Whether the file gives a section with keys in it; raises UserError for a list or a single value."""
        value = self.value(path)
        if value is None or isinstance(value, dict):
            return bool(value)
        raise self.no_section(path)

    def flag(self, path: str, default: bool) -> bool:
        """True or False."""
        value = self.value(path, default)
        if not isinstance(value, bool):
            raise self._wrong(path, _TRUTH)
        return value

    def given(self, path: str) -> bool:
        """Whether the file has the key, with a value or with null."""
        return self.node(path) is not None

    def callbacks(self) -> list[dict[str, Value]]:
        """The items of `callbacks` that are mappings."""
        value = self.value("callbacks", [])
        return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []

    def callback(self, kind: str) -> dict[str, Value] | None:
        """The last callback of a type, which is the one that rules; None when there is none."""
        found = [item for item in self.callbacks() if callback_name(item.get("type")) == kind]
        return found[-1] if found else None

    def place(self, path: str) -> str:
        """`file:line:col` of a key, or the file's name."""
        node = self.node(path)
        if node is None:
            return self.document.source.name
        return f"{self.document.name_of(node.span.start)}:{node.span.start.line}:{node.span.start.column}"

    def line(self, path: str) -> int:
        """The line of a value, from 1; the key must be in the file."""
        node = self.node(path)
        assert node is not None
        return node.span.start.line

    def row_key(self, path: Path) -> str:
        """The form in which the table names a path: `callbacks[CheckpointMonitor].prefix`, other list items as `[]`."""
        text = ""
        for position, part in enumerate(path):
            if isinstance(part, str):
                text += f".{part}" if text else part
                continue
            text += f"[{self._kind(path[: position + 1])}]" if text == "callbacks" else "[]"
        return text

    def _kind(self, path: Path) -> str:
        node = self.document.find((*path, "type"))
        return callback_name(value_of(node)) if node is not None else "?"

    def no_section(self, path: str) -> UserError:
        """The error for a list or a single value where keys belong."""
        kind = "a list" if isinstance(self.value(path), list) else "a single value"
        return UserError(
            f"{self.place(path)}: `{path}` is {kind}; expected a section of keys, such as `{path}:` and keys below"
        )

    def _wrong(self, path: str, expected: str) -> UserError:
        value = self.value(path)
        quotes = isinstance(value, str) and self._quoted(path) and _holds(value, expected)
        advice = "; remove the quotes" if quotes else ""
        return UserError(f"{self.place(path)}: `{path}` is {shown(value)}; expected {expected}{advice}")

    def _quoted(self, path: str) -> bool:
        node = self.node(path)
        inside = resolved(node) if node is not None else None
        return isinstance(inside, Scalar) and inside.style is not None


def _holds(text: str, expected: str) -> bool:
    """Whether a quoted text is what was expected once its quotes are gone: a truth value, else a number."""
    try:
        inside = resolve_plain(text)
    except ValueError:
        return False
    if expected == _TRUTH:
        return isinstance(inside, bool)
    return is_unsafe_float(text) or (isinstance(inside, (int, float)) and not isinstance(inside, bool))


def _value_in(mapping: Mapping, name: str) -> Node | None:
    """The value of a key of a mapping, merge keys merged; own keys win."""
    own = mapping.get(name)
    if own is not None or mapping.get("<<") is None:
        return own
    return next((entry.value for entry in effective_entries(mapping) if entry.key.text == name), None)


def callback_name(kind: Value) -> str:
    """The name of a callback; MindFormers before 1.1 spelt CheckpointMonitor wrong and still takes that."""
    return "CheckpointMonitor" if kind == "CheckpointMointor" else str(kind)


def family_of(graph: GraphFile) -> Family:
    """The layout of a graph file."""
    return Family.SPLIT if graph.value("base_config") is not None else model_family(graph)


def model_family(graph: GraphFile) -> Family:
    """The layout of a file once the parts that it includes are merged into it."""
    root = graph.document.root
    if any(root.get(key) is not None for key in ("training_args", "checkpoint_config", "distribute_parallel_config")):
        return Family.LLMTRAINER
    if graph.flag("use_legacy", False):
        return Family.LEGACY
    legacy_marks = ("model.arch", "model.model_config.type", "model_config")
    if any(graph.given(path) for path in legacy_marks) and graph.value("use_legacy") is None:
        return Family.LEGACY
    return Family.MCORE


def is_pynative(document: Document) -> bool:
    """Whether a file is a pynative.yaml already: it has a section of that kind and none of Graph mode's."""
    has = {entry.key.text for entry in document.root.entries}
    return bool(has.intersection(PYNATIVE_SECTIONS)) and not has.intersection(GRAPH_SECTIONS)


def is_graph(document: Document) -> bool:
    """Whether a file is a graph.yaml: it has a section or a model of that kind, and no section of PyNative mode's."""
    root = document.root
    has = {entry.key.text for entry in root.entries}
    if has.intersection(PYNATIVE_SECTIONS):
        return False
    marks = {*GRAPH_SECTIONS, "use_legacy", "trainer", "base_config", "training_args"}
    return bool(has.intersection(marks)) or document.find(("model", "model_config")) is not None


def is_expanded(node: Node) -> bool:
    """Whether a leaf stands for keys written elsewhere: an alias to a mapping or list, or what a merge key takes."""
    return isinstance(node, Alias) and not isinstance(resolved(node), Scalar)


def merge_sources(node: Node) -> list[Mapping]:
    """The mappings that a merge key's value names."""
    value = resolved(node)
    parts = value.items if isinstance(value, Sequence) else (value,)
    return [inner for part in parts if isinstance(inner := resolved(part), Mapping)]
