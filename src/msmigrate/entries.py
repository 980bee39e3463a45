"""The account of one conversion, in either direction: a line per leaf of the source, and the text that came out."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from msmigrate.mapping.context import Fact
from msmigrate.mapping.graph_file import Family
from msmigrate.mapping.outcome import Carry, Fate, Outcome
from msmigrate.options import Options
from msmigrate.yaml.document import Document, value_of
from msmigrate.yaml.nodes import Span
from msmigrate.yaml.scalars import Value


class Mode(StrEnum):
    """The two kinds of config files."""

    GRAPH = "graph"
    PYNATIVE = "pynative"

    @property
    def other(self) -> "Mode":
        """The mode that a file of this mode is converted to."""
        return Mode.PYNATIVE if self is Mode.GRAPH else Mode.GRAPH

    @property
    def label(self) -> str:
        """The mode's name for people."""
        return "PyNative" if self is Mode.PYNATIVE else "Graph mode"


@dataclass(frozen=True, slots=True)
class Brought:
    """A key that an alias or a merge key brings in: the path that it stands for, and the alias as the file has it."""

    path: str
    by: str


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of the report: a leaf of the source, or a key written without one of its own (`source` None)."""

    source: str | None
    outcome: Outcome
    old: Value
    new: Value
    span: Span | None
    mode: Mode = Mode.GRAPH
    """The mode of the file that was read."""
    brought: Brought | None = None
    """Where the key comes from when an alias brings it in: it is no leaf of its own (contract, section 3)."""

    @property
    def name(self) -> str:
        """The key for people: as the source has it, else as the output has it."""
        return self.source or (self.brought.path if self.brought else None) or str(self.outcome.target)

    @property
    def graph(self) -> str | None:
        """The key of the graph file."""
        return self.source if self.mode is Mode.GRAPH else self.outcome.target

    @property
    def pynative(self) -> str | None:
        """The key of the pynative file."""
        return self.source if self.mode is Mode.PYNATIVE else self.outcome.target


@dataclass(frozen=True, slots=True)
class Conversion:
    """The outcome of a conversion; `text` is None when something is refused."""

    document: Document
    mode: Mode
    family: Family
    options: Options
    facts: Mapping[str, Fact]
    entries: tuple[Entry, ...]
    notes: tuple[str, ...]
    text: str | None

    @property
    def refusals(self) -> list[Entry]:
        """What stops the conversion, each reason once."""
        found: dict[str, Entry] = {}
        for entry in self.entries:
            outcome = entry.outcome
            if outcome.fate is Fate.REFUSED and (outcome.final or not self.options.allow_lossy):
                found.setdefault(outcome.why, entry)
        return list(found.values())


class ConvertedAlreadyError(Exception):
    """The file is of the other mode already: there is nothing to do."""

    def __init__(self, name: str, mode: Mode) -> None:
        super().__init__(f"{name} is a {mode}.yaml already; nothing was written")
        self.mode = mode


def written_value(outcome: Outcome) -> Value:
    """The value that the output holds, None when the key writes none."""
    if not isinstance(outcome.value, Carry):
        return outcome.value
    assert outcome.node is not None
    return value_of(outcome.node)
