"""Everything that the table's rules may ask: the file, the options, the facts, and each derived key once."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from msmigrate.mapping.graph_file import Family, GraphFile, model_family
from msmigrate.mapping.outcome import Outcome
from msmigrate.mapping.schedule import SEMI_AUTO_MODES, BatchFactors, Result, global_batch
from msmigrate.options import Options
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
        mode = self.graph.integer("parallel.parallel_mode", 1)
        return self.graph.flag("use_parallel", True) and mode in SEMI_AUTO_MODES

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

    def samples(self) -> Fact:
        """Samples of the training data set."""
        sizes = self.graph.value("train_dataset.data_loader.sizes")
        if self.options.samples is not None:
            if isinstance(sizes, list) and sizes and sizes[0] not in (0, self.options.samples):
                self.note(
                    f"--samples {self.options.samples} decides the steps, but `sizes` stays {spell(sizes)}; set "
                    "train_dataset.dataloader.sizes too if the data set changes"
                )
            return Fact(self.options.samples, "--samples")
        if isinstance(sizes, list) and sizes and isinstance(sizes[0], int) and sizes[0] > 0:
            return Fact(sizes[0], "train_dataset.data_loader.sizes")
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
