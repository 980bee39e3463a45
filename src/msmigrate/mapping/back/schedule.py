"""Batch, length and learning rate of the graph run that a pynative.yaml describes."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from msmigrate.mapping.back.context import BackContext
from msmigrate.mapping.outcome import Effect, Fate, Outcome, dropped, refused, written
from msmigrate.mapping.schedule import MEGATRON, Result, steps_per_epoch
from msmigrate.options import ExpertMesh
from msmigrate.yaml.scalars import Value

_BATCH = "training.global_batch_size"
_LOCAL = "training.local_batch_size"
_EXPERT = "parallelism.expert_parallel"
_RATIO, _STEPS = "lr_scheduler.warmup_ratio", "lr_scheduler.warmup_steps"
OWN_RATE = {"CosineAnnealingLR": ("base_lr", "t_max"), "CosineAnnealingWarmRestarts": ("base_lr", "t_0")}
"""Types that take keys of their own instead of learning_rate and a warm-up, and the keys that they need."""


DEGREES = {
    "tensor_parallel": "model_parallel",
    "context_parallel": "context_parallel",
    "pipeline_parallel": "pipeline_stage",
}
"""Degrees that both modes have beside data_parallel, under their names in `parallelism` and in `parallel_config`."""


def degrees(context: BackContext) -> dict[str, int]:
    """The degrees of DEGREES that the file has, by their names in parallelism."""
    return {name: context.integer(f"parallelism.{name}") for name in DEGREES}


def degree(context: BackContext) -> Result | Outcome:
    """Graph mode's data_parallel: devices / (model_parallel × context_parallel × pipeline_stage), experts inside it."""
    target = "parallel_config.data_parallel"
    world, held = context.world().value, degrees(context)
    if not isinstance(world, int):
        return refused(
            f"the number of devices is not in the file, and global_batch_size {context.integer(_BATCH)} = "
            f"local_batch_size {context.integer(_LOCAL)} × data_parallel × accumulation needs it",
            pynative=target,
            advice="give it with --world N",
            final=True,
        )
    ranks = _least_ranks(context, held)
    if world % ranks:
        product = context.options.expert_mesh is ExpertMesh.PRODUCT
        named = [f"{name} {value}" for name, value in held.items() if value > 1 or name == "tensor_parallel"]
        named.append(f"expert_parallel {context.integer(_EXPERT)}")
        reading = " × ".join(text.split()[0] for text in named) + " × data_parallel" if product else "MindFormers 2.x"
        below = f"{world // ranks * ranks} and " if world > ranks else ""
        return refused(
            f"{world} devices are no multiple of the {ranks} ranks that {', '.join(named[:-1])} and {named[-1]} need "
            f"({reading}); nearest legal numbers: {below}{-(-world // ranks) * ranks}",
            pynative=target,
            advice="give another number with --world N",
            final=True,
        )
    replicas = world // math.prod(held.values())
    return Result(replicas, f"{world} devices / {_in_graph_mode(held)} = {replicas}")


def _least_ranks(context: BackContext, held: Mapping[str, int]) -> int:
    """The number that the devices must be a multiple of, under the chosen reading of expert_parallel."""
    expert = context.integer(_EXPERT)
    if context.options.expert_mesh is ExpertMesh.PRODUCT:
        return math.prod(held.values()) * expert
    return held["pipeline_parallel"] * math.lcm(held["tensor_parallel"] * held["context_parallel"], expert)


def _in_graph_mode(held: Mapping[str, int]) -> str:
    """The degrees above 1 as a divisor for a message: `model_parallel 2`, `(model_parallel 2 × pipeline_stage 2)`."""
    named = [f"{DEGREES[name]} {value}" for name, value in held.items() if value > 1] or ["model_parallel 1"]
    return named[0] if len(named) == 1 else f"({' × '.join(named)})"


def data_parallel(context: BackContext) -> Outcome:
    found = degree(context)
    if isinstance(found, Outcome):
        return found
    why = "graph mode counts replicas, with expert_parallel inside data_parallel × model_parallel"
    target, fate = "parallel_config.data_parallel", context.fate("parallelism.data_parallel_shard")
    return written(fate, target, found.value, why, arithmetic=found.arithmetic)


def accumulation(context: BackContext) -> Outcome | None:
    """runner_config.gradient_accumulation_steps, which graph mode reads where it has one pipeline stage."""
    stages = context.integer("parallelism.pipeline_parallel")
    return _accumulated(context, "runner_config.gradient_accumulation_steps") if stages == 1 else None


def micro_batch_num(context: BackContext) -> Outcome | None:
    """parallel_config.micro_batch_num, the accumulation of a pipeline; graph mode wants one for each stage at least."""
    stages = context.integer("parallelism.pipeline_parallel")
    if stages == 1:
        return None
    found = _accumulated(context, "parallel_config.micro_batch_num")
    if isinstance(found.value, int) and found.value < stages:
        context.note(
            f"micro_batch_num {found.value} is below pipeline_stage {stages}: graph mode wants a micro-batch for each "
            f"stage at least; a smaller local_batch_size makes more of them"
        )
    return found


def _accumulated(context: BackContext, target: str) -> Outcome:
    """Micro-batches of one step: global batch / (batch_size × data_parallel), which must be whole."""
    batch, local = context.integer(_BATCH), context.integer(_LOCAL)
    if batch % local:
        return _odd_batch(batch, local, f"batch_size {local}", "it runs on no number of devices")
    replicas = degree(context)
    if isinstance(replicas, Outcome):
        return replicas
    unit = local * replicas.value
    if batch % unit:
        held, share = math.prod(degrees(context).values()), batch // local
        fitting = [str(held * count) for count in range(min(share, 1024), 0, -1) if share % count == 0]
        text = f"batch_size {local} × data_parallel {replicas.value} = {unit} ({replicas.arithmetic})"
        return _odd_batch(batch, unit, text, f"or give a fitting --world: {', '.join(fitting[:6])}")
    text = f"global_batch_size {batch} / (batch_size {local} × data_parallel {replicas.value}) = {batch // unit}"
    return written(context.fate(_BATCH), target, batch // unit, "the same global batch", arithmetic=text)


def _odd_batch(batch: int, unit: int, text: str, hint: str) -> Outcome:
    below = f"{batch // unit * unit} and " if batch > unit else ""
    return refused(
        f"global_batch_size {batch} is not a multiple of {text}; nearest legal values: {below}"
        f"{-(-batch // unit) * unit}",
        pynative="runner_config.gradient_accumulation_steps",
        advice=f"set one with --set {_BATCH}=N; {hint}",
        final=True,
    )


@dataclass(frozen=True, slots=True)
class Length:
    """A run's length as graph mode has it: `stop` is the last step when the epochs hold more, else None."""

    epochs: int
    stop: int | None
    arithmetic: str


def length(context: BackContext) -> Length | Outcome:
    """Epochs that hold training.steps, or the refusal that names the missing fact."""
    steps, batch = context.integer("training.steps"), context.integer(_BATCH)
    samples = context.samples().value
    if not isinstance(samples, int):
        return refused(
            "graph mode counts epochs, and the number of training samples is not in the file",
            pynative="runner_config.epochs",
            advice="give it with --samples N",
            final=True,
        )
    per_epoch = steps_per_epoch(
        samples,
        batch,
        drop_remainder=context.value("train_dataset.drop_remainder") is True,
        repeat=1,
        whole_batches_only=context.value("train_dataset.dataloader.type") == MEGATRON,
    )
    if per_epoch.value < 1:
        return refused(
            f"{samples} samples are fewer than the global batch of {batch}: graph mode has no step in an epoch",
            pynative="runner_config.epochs",
            advice="give more with --set train_dataset.dataloader.sizes=[N,0,0], or --samples N where it has none",
            final=True,
        )
    epochs = -(-steps // per_epoch.value)
    whole = epochs * per_epoch.value
    text = f"{per_epoch.arithmetic}; {steps} steps / {per_epoch.value} = {epochs} epochs"
    return Length(epochs, None if whole == steps else steps, text if whole == steps else f"{text}, rounded up")


def epochs(context: BackContext) -> Outcome:
    found = length(context)
    if isinstance(found, Outcome):
        return found
    why = "epochs that hold the steps" if found.stop is None else f"stop_step {found.stop} ends the last epoch early"
    fate = context.fate("training.steps")
    return written(fate, "runner_config.epochs", found.epochs, why, arithmetic=found.arithmetic)


def stop_step(context: BackContext) -> Outcome | None:
    found = length(context)
    if isinstance(found, Outcome) or found.stop is None:
        return None
    return written(Fate.COMPUTED, "runner_config.stop_step", found.stop, "training.steps, before the epochs end")


def total_steps(context: BackContext) -> Outcome | None:
    """The horizon of the learning rate, where the epochs are longer than the run."""
    found = length(context)
    if isinstance(found, Outcome) or found.stop is None:
        return None
    why = "the schedule is laid out for training.steps, not for whole epochs"
    return written(Fate.COMPUTED, "lr_schedule.total_steps", found.stop, why)


def batch_size(context: BackContext) -> Outcome | None:
    return context.bring("runner_config.batch_size", _LOCAL)


def learning_rate(context: BackContext) -> Outcome | None:
    kind = context.value("lr_scheduler.type")
    if kind in OWN_RATE:
        return dropped(f"{kind} takes base_lr")
    return context.bring("lr_schedule.learning_rate", "lr_scheduler.learning_rate")


def steps_by_set(overrides: Mapping[str, Value]) -> bool:
    """Whether `--set` gives the warm-up as steps: then no ratio is written, which would win over them."""
    return overrides.get(_STEPS) is not None and overrides.get(_RATIO) is None


def warmup_ratio(context: BackContext) -> Outcome | None:
    """The ratio as it is: the graph schedule is laid out for training.steps too."""
    if steps_by_set(context.options.overrides):
        reason = f"--set {_STEPS} takes its place"
        return dropped(reason, Effect.TRAINING, "lr_schedule.warmup_steps") if context.given(_RATIO) else None
    if context.value(_RATIO) is None:
        return dropped("null, as if it were absent") if context.given(_RATIO) else None
    return context.bring("lr_schedule.warmup_ratio", _RATIO)


def warmup_steps(context: BackContext) -> Outcome | None:
    if context.value(_RATIO) is not None and not steps_by_set(context.options.overrides):
        return dropped("warmup_ratio wins when both are given", pynative="lr_schedule.warmup_ratio")
    if context.value(_STEPS) is not None:
        return context.bring("lr_schedule.warmup_steps", _STEPS)
    if context.value("lr_scheduler.type") in OWN_RATE:
        return None
    return written(Fate.DEFAULT, "lr_schedule.warmup_steps", 0, "the file gives no warm-up; graph mode needs a number")
