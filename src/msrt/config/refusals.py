"""Keys that ask for something msrt does not have, and keys that change nothing here."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from msmigrate.pynative import Config, Use, asks_for_nothing, nested_section, specs_of
from msrt.config.degrees import ranks
from msrt.config.problem import Place, Problem
from msrt.config.schedule import warmup_steps


@dataclass(frozen=True, slots=True)
class Verdict:
    """What stops the run, and sentences worth reading that do not."""

    problems: tuple[Problem, ...]
    notes: tuple[str, ...]


def judge(config: Config, given: Mapping[str, Place], world: int) -> Verdict:
    """All refused settings of a config on `world` ranks, and the notes of the run.

    A refused key may stand at its default or at a value that switches it off. Keys without effect that the file or an
    override gives become one note that names them.
    """
    problems = [*_refused(config), *_not_built(config, world)]
    notes = [*_without_effect(given), *_remarks(config)]
    return Verdict(tuple(problems), tuple(notes))


def _refused(config: Config) -> Iterator[Problem]:
    reported: list[str] = []
    for spec in specs_of(Config).values():
        if spec.key.use is not Use.REFUSED or any(spec.path.startswith(path + ".") for path in reported):
            continue
        value = value_at(config, spec.path)
        if asks_for_nothing(spec, value):
            continue
        reported.append(spec.path)
        shown = "given" if nested_section(spec.annotation) else repr(value)
        yield Problem(spec.path, f"is {shown}, which msrt does not have ({spec.key.meaning}) Remove the key.")


def value_at(config: Config, path: str) -> object:
    """The value of a dotted path; None inside a section that is not there."""
    value: object = config
    for name in path.split("."):
        value = getattr(value, name, None)
    return value


def _not_built(config: Config, world: int) -> Iterator[Problem]:
    if world > 1:
        yield Problem("", f"this run has {ranks(world)}; training on several ranks is not there yet. Start it with 1.")
    if config.checkpoint.load_path:
        message = f"is {config.checkpoint.load_path!r}; loading checkpoints is not there yet. Set it to ''."
        yield Problem("checkpoint.load_path", message)
    if config.optimizer.type != "AdamW":
        yield Problem("optimizer.type", f"is {config.optimizer.type}; msrt has AdamW.")


def _without_effect(given: Mapping[str, Place]) -> Iterator[str]:
    specs = specs_of(Config)
    named = sorted(
        path
        for path in given
        if path in specs and specs[path].key.use is Use.NO_EFFECT and nested_section(specs[path].annotation) is None
    )
    if named:
        count = f"{len(named)} key changes" if len(named) == 1 else f"{len(named)} keys change"
        yield f"{count} nothing here: {', '.join(named)}."


def _remarks(config: Config) -> Iterator[str]:
    if config.checkpoint.enable_save:
        yield "checkpoint.enable_save is true, but msrt writes no checkpoints yet."
    if config.recompute.mode != "None" or config.recompute_comm.enable:
        yield "recompute changes memory, not numbers; this run keeps all activations."
    if config.training.max_norm == 0:
        yield "training.max_norm is 0, which multiplies every gradient by 0; write 1.0e+10 for no clipping."
    if warmup_steps(config.lr_scheduler, config.training.steps) == 0 and config.lr_scheduler.warmup_ratio:
        ratio, steps = config.lr_scheduler.warmup_ratio, config.training.steps
        yield (
            f"lr_scheduler.warmup_ratio {ratio:g} of {steps} steps is 0 warm-up steps; the smallest ratio with an "
            f"effect is {1 / steps:g}."
        )
