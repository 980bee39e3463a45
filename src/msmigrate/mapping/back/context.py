"""Everything that `back` functions may ask: the pynative file, the options, the facts, and each answer once."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from msmigrate.mapping.back.pynative_file import PynativeFile
from msmigrate.mapping.context import Fact
from msmigrate.mapping.outcome import Fate, Outcome, carried, written
from msmigrate.options import ExpertMesh, Options
from msmigrate.pynative import Config, specs_of
from msmigrate.yaml.scalars import Value, spell


@dataclass(slots=True)
class BackContext:
    """One conversion to a graph file in progress.

    `defaults` are graph mode's defaults by pynative key, as the table knows them; `notes` are sentences for the user.
    """

    file: PynativeFile
    options: Options
    defaults: Mapping[str, Value]
    outcomes: "dict[Back, Outcome | None]" = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def note(self, text: str) -> None:
        """Remember a sentence once."""
        if text not in self.notes:
            self.notes.append(text)

    def outcome(self, back: "Back") -> Outcome | None:
        """What a `back` function says, worked out once."""
        if back not in self.outcomes:
            self.outcomes[back] = back(self)
        return self.outcomes[back]

    def given(self, path: str) -> bool:
        """Whether the file or `--set` gives a key."""
        return self.file.given(path)

    def value(self, path: str) -> object:
        """The typed value of a declared key, its default when absent."""
        return self.file.value(path)

    def integer(self, path: str) -> int:
        """The value of a key that is declared as a whole number."""
        value = self.value(path)
        assert isinstance(value, int)
        return value

    def text(self, path: str) -> str:
        """The value of a key that is declared as a text; empty for null."""
        value = self.value(path)
        return "" if value is None else str(value)

    def fate(self, path: str) -> Fate:
        """How a graph key that follows from one pynative key came about."""
        return Fate.COMPUTED if self.given(path) else Fate.DEFAULT

    def bring(self, graph: str, pynative: str, why: str = "") -> Outcome | None:
        """A key under its graph name: its own text, what `--set` says, or PyNative mode's default where it differs."""
        if pynative in self.options.overrides:
            return written(Fate.COMPUTED, graph, self.options.overrides[pynative], "--set")
        node = self.file.node(pynative)
        if node is not None:
            return carried(Fate.SAME if graph == pynative else Fate.RENAMED, graph, node, why)
        return self.default(graph, pynative)

    def default(self, graph: str, pynative: str) -> Outcome | None:
        """PyNative mode's default of a key, written where graph mode would take another."""
        default = plain(specs_of(Config)[pynative].default)
        if self.given(pynative) or default is None or pynative not in self.defaults:
            return None
        theirs = self.defaults[pynative]
        if default == theirs:
            return None
        name = graph.rpartition(".")[2]
        why = f"PyNative mode's default {name} is {spell(default)}, graph mode's is {spell(theirs)}"
        return written(Fate.DEFAULT, graph, default, why)

    def world(self) -> Fact:
        """Devices of the run; one data-parallel rank alone needs no option."""
        if self.options.world is not None:
            return Fact(self.options.world, "--world")
        if self.integer("training.global_batch_size") == self.integer("training.local_batch_size"):
            return Fact(self.ranks(), "global_batch_size = local_batch_size: one data-parallel rank")
        return Fact(None, "unknown")

    def ranks(self) -> int:
        """Ranks of one data-parallel replica of the PyNative run, under the chosen reading of expert_parallel."""
        names = ["tensor_parallel", "context_parallel", "pipeline_parallel"]
        if self.options.expert_mesh is ExpertMesh.PRODUCT:
            names.append("expert_parallel")
        return math.prod(self.integer(f"parallelism.{name}") for name in names)

    def samples(self) -> Fact:
        """Samples of the training data set."""
        sizes = self.value("train_dataset.dataloader.sizes")
        first = sizes[0] if isinstance(sizes, tuple) and sizes else 0
        if self.options.samples is not None:
            if first not in (0, self.options.samples):
                self.note(
                    f"--samples {self.options.samples} decides the epochs, but `sizes` stays {spell(plain(sizes))}; "
                    "set train_dataset.dataloader.sizes too if the data set changes"
                )
            return Fact(self.options.samples, "--samples")
        return Fact(first, "train_dataset.dataloader.sizes") if first > 0 else Fact(None, "unknown")


Back = Callable[[BackContext], Outcome | None]
"""Works out a graph key from the whole pynative file; None when nothing needs to be written."""


def plain(value: object) -> Value:
    """A typed value as YAML has it: tuples become lists."""
    if isinstance(value, tuple):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {str(name): plain(item) for name, item in value.items()}
    assert value is None or isinstance(value, (bool, int, float, str))
    return value


def always(graph: str, value: Value, why: str) -> Back:
    """A graph key that no pynative key names and every graph file needs."""

    def back(context: BackContext) -> Outcome | None:
        return written(Fate.DEFAULT, graph, value, why)

    return back
