"""Everything that the table's rules may ask: the file, the options, the facts, and each derived key once."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from msmigrate.mapping.graph_file import Family, GraphFile, model_family
from msmigrate.mapping.outcome import Outcome
from msmigrate.mapping.schedule import MEGATRON, PARALLEL_MODES, SEMI_AUTO_MODES, BatchFactors, Result, global_batch
from msmigrate.options import Options
from msmigrate.problems import UserError
from msmigrate.wording import shown
from msmigrate.yaml.scalars import Value, spell


@dataclass(frozen=True, slots=True)
class Fact:
    """A number that a conversion rests on, and where it comes from; value None when nothing tells it."""

    value: Value
    source: str


Derivation = Callable[["Context"], Outcome | None]
"""Works out a pynative key from the whole file; None when nothing needs to be written."""


@dataclass(slots=True)
class Context:
    """One conversion in progress. `outcomes` memoises derived keys; `notes` are sentences for the user."""

    graph: GraphFile
    options: Options
    derivations: Mapping[str, Derivation]
    outcomes: dict[str, Outcome | None] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def note(self, text: str) -> None:
        """Remember a sentence once."""
        if text not in self.notes:
            self.notes.append(text)

    def derive(self, pynative: str) -> Outcome | None:
        """The outcome of a derived pynative key, worked out once."""
        if pynative not in self.outcomes:
            self.outcomes[pynative] = self.derivations[pynative](self)
        return self.outcomes[pynative]

    @property
    def legacy(self) -> bool:
        """Whether the model section names its keys as legacy classes do."""
        return model_family(self.graph) is Family.LEGACY

    @property
    def degrees_hold(self) -> bool:
        """Whether parallel_config counts: use_parallel True and parallel_mode semi-automatic or automatic."""
        return self.graph.flag("use_parallel", True) and self.parallel_mode in SEMI_AUTO_MODES

    @property
    def parallel_mode(self) -> int:
        """Graph mode's parallel_mode, 1 by default; raises UserError for a value that it does not have."""
        path = "parallel.parallel_mode"
        mode = self.graph.value(path, 1)
        if isinstance(mode, int) and not isinstance(mode, bool) and mode in PARALLEL_MODES:
            return mode
        known = ", ".join(f"{number} ({name})" for number, name in PARALLEL_MODES.items())
        raise UserError(f"{self.graph.place(path)}: `{path}` is {shown(mode)}; expected one of the numbers {known}")

    def degree(self, name: str) -> int:
        """A degree of parallel_config as the graph run has it."""
        return self.graph.positive(f"parallel_config.{name}", 1) if self.degrees_hold else 1

    def world(self) -> Fact:
        """Devices of the graph run."""
        if not self.graph.flag("use_parallel", True):
            if self.options.world not in (None, 1):
                self.note(f"--world {self.options.world} does not count: use_parallel: False runs on one device")
            return Fact(1, "use_parallel: False")
        devices = self.devices_of_degrees()
        if not self.graph.given("use_parallel") and devices is not None and devices > 1:
            self.note(
                f"use_parallel is absent, which graph mode reads as False, one device; the file's degrees ask for "
                f"{devices} and are taken as meant: write use_parallel: True or False to be sure"
            )
        if self.options.world is not None:
            return Fact(self.options.world, "--world")
        if not self.degrees_hold:
            return Fact(None, "unknown")
        return Fact(devices, "dp·mp·pp" + ("·cp" if self.degree("context_parallel") > 1 else ""))

    def devices_of_degrees(self) -> int | None:
        """The product of the file's degrees; None when they do not hold."""
        if not self.degrees_hold:
            return None
        names = ("data_parallel", "model_parallel", "pipeline_stage", "context_parallel")
        return math.prod(self.degree(name) for name in names)

    @property
    def megatron(self) -> bool:
        """Whether the run reads Megatron data, whose loader alone has `sizes`."""
        return self.chosen("train_dataset.dataloader.type", "train_dataset.data_loader.type") == MEGATRON

    def chosen(self, pynative: str, graph: str) -> Value:
        """What `--set` says for a pynative key, else the graph file's value."""
        return self.options.overrides.get(pynative, self.graph.value(graph))

    def samples(self) -> Fact:
        """Samples of the training data set."""
        key = "train_dataset.dataloader.sizes"
        sizes = self.chosen(key, "train_dataset.data_loader.sizes") if self.megatron else None
        if self.options.samples is not None:
            if isinstance(sizes, list) and sizes and sizes[0] not in (0, self.options.samples):
                self.note(
                    f"--samples {self.options.samples} decides the steps, but `sizes` stays {spell(sizes)}; set "
                    "train_dataset.dataloader.sizes too if the data set changes"
                )
            return Fact(self.options.samples, "--samples")
        if isinstance(sizes, list) and sizes and isinstance(sizes[0], int) and sizes[0] > 0:
            source = f"--set {key}" if key in self.options.overrides else "train_dataset.data_loader.sizes"
            return Fact(sizes[0], source)
        number = self.graph.value("train_dataset.data_loader.num_samples")
        if isinstance(number, int) and number > 0:
            return Fact(number, "train_dataset.data_loader.num_samples")
        return Fact(None, "unknown")

    def batch_factors(self) -> BatchFactors:
        """What the global batch is made of."""
        devices = self.world().value
        return BatchFactors(
            batch_size=self.graph.positive("runner_config.batch_size", 1),
            data_parallel=self.degree("data_parallel"),
            pipeline_stage=self.degree("pipeline_stage"),
            micro_batch_num=self.graph.positive("parallel_config.micro_batch_num", 1),
            micro_batch_interleave_num=self.graph.positive("micro_batch_interleave_num", 1),
            gradient_accumulation_steps=self.graph.positive("runner_config.gradient_accumulation_steps", 1),
            degrees_hold=self.degrees_hold,
            devices=devices if isinstance(devices, int) else None,
        )

    def global_batch(self) -> Result | None:
        """Samples of one optimizer step, `--set` above the file; None when the devices decide and are unknown."""
        chosen = self.options.overrides.get("training.global_batch_size")
        if isinstance(chosen, int):
            return Result(chosen, f"--set {chosen}")
        return global_batch(self.batch_factors())
