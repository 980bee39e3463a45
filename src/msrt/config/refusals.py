"""Keys that ask for something msrt does not have, and keys that change nothing here."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from msmigrate.mapping.schedule import warmup_ratio
from msmigrate.pynative import Config, Use, asks_for_nothing, nested_section, specs_of
from msmigrate.pynative.families import ARCHITECTURES
from msmigrate.pynative.sections import Checkpoint, Optimizer
from msrt.config.degrees import ranks
from msrt.config.problem import Place, Problem, shown
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
    notes = [*_without_effect(given), *_other_optimizers_keys(config, given), *_remarks(config)]
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
        found = "given" if nested_section(spec.annotation) else shown(value)
        yield Problem(spec.path, f"is {found}, which msrt does not have ({spec.key.meaning}) Remove the key.")


def value_at(config: Config, path: str) -> object:
    """The value of a dotted path; None inside a section that is not there."""
    value: object = config
    for name in path.split("."):
        value = getattr(value, name, None)
    return value


def _not_built(config: Config, world: int) -> Iterator[Problem]:
    if world > 1:
        yield Problem("", f"this run has {ranks(world)}; training on several ranks is not there yet. Start it with 1.")
    prefix = config.checkpoint.prefix or ""
    if "/" in prefix or "\0" in prefix:
        yield Problem("checkpoint.prefix", f"is {prefix!r}; it begins the names of files: write one without '/'.")


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


def _other_optimizers_keys(config: Config, given: Mapping[str, Place]) -> Iterator[str]:
    kind = config.optimizer.type
    specs = specs_of(Optimizer, "optimizer.")
    named = sorted(path for path in given if path in specs and kind not in (specs[path].key.types or (kind,)))
    if named:
        yield f"without effect with optimizer.type {kind}: {', '.join(named)}."


def _remarks(config: Config) -> Iterator[str]:
    yield from _checkpoint_remarks(config.checkpoint)
    if config.recompute.mode != "None" or config.recompute_comm.enable:
        yield "recompute changes memory, not numbers; this run keeps all activations."
    yield from _model_remarks(config)
    if config.training.max_norm == 0:
        yield "training.max_norm is 0, which multiplies every gradient by 0; write 1.0e+10 for no clipping."
    ratio, steps = config.lr_scheduler.warmup_ratio, config.training.steps
    warmup = warmup_steps(config.lr_scheduler, steps)
    if warmup > steps:
        yield (
            f"lr_scheduler.warmup_steps is {warmup}, more than the {steps} of training.steps: the learning rate ends "
            "before it has reached its top."
        )
    if warmup == 0 and ratio:
        yield (
            f"lr_scheduler.warmup_ratio {ratio:g} of {steps} steps is 0 warm-up steps; the smallest ratio with an "
            f"effect is {warmup_ratio(steps, 1)!r}."
        )


def _checkpoint_remarks(section: Checkpoint) -> Iterator[str]:
    if section.enable_save and not section.save_path:
        yield (
            "checkpoint.save_path is empty, at which MindFormers stops; checkpoints go to `checkpoints` in the run's "
            "folder."
        )
    if section.enable_save and section.no_save_optim:
        yield (
            "checkpoint.no_save_optim is true: checkpoints of this run have no optimizer state, and training cannot go "
            "on from them."
        )
    if section.load_path and section.no_load_optim:
        yield (
            f"checkpoint.no_load_optim is true: of {section.load_path} only the weights are loaded; step, learning "
            "rate and data start from the beginning."
        )
    shares = (
        ("remove_redundancy", section.enable_save and section.remove_redundancy),
        ("load_balanced", section.load_path and section.load_balanced),
        ("load_worker_number", section.load_path and section.load_worker_number > 1),
    )
    idle = [f"checkpoint.{name}" for name, given in shares if given]
    if idle:
        yield f"without effect on one rank: {', '.join(idle)}."


def _model_remarks(config: Config) -> Iterator[str]:
    model, seq_length = config.model, config.train_dataset.dataloader.config.seq_length
    expected = ARCHITECTURES.get(model.model_type or "")
    if expected is not None and model.architectures not in (None, expected):
        yield f"model.architectures is {model.architectures}; model.model_type {model.model_type} is {expected} here."
    if model.initializer_range == 0:
        yield "model.initializer_range is 0: all matrices start at 0, and most of them get no gradient."
    longest = model.max_position_embeddings
    if longest is not None and longest < seq_length and model.position_embedding_type != "yarn":
        yield beyond_positions(longest, f"the seq_length {seq_length} of the data")
    if model.seq_length is not None and model.seq_length > seq_length:
        yield (
            f"model.seq_length is {model.seq_length}, and train_dataset.dataloader.config.seq_length {seq_length}: the "
            f"model sees no sequence above {seq_length} tokens."
        )


def beyond_positions(longest: int, sequence: str) -> str:
    """The note on a `sequence` that is longer than `longest`, the model's max_position_embeddings."""
    return f"model.max_position_embeddings is {longest}, below {sequence}; later positions are rotated like the others."
