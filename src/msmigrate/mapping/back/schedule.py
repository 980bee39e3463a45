"""Batch, length and learning rate of the graph run that a pynative.yaml describes."""

import math
from dataclasses import dataclass

from msmigrate.mapping.back.context import BackContext
from msmigrate.mapping.outcome import Fate, Outcome, dropped, refused, written
from msmigrate.mapping.schedule import Result, steps_per_epoch
from msmigrate.options import ExpertMesh

_BATCH = "training.global_batch_size"
_LOCAL = "training.local_batch_size"
_RATIO = "lr_scheduler.warmup_ratio"
MEGATRON = "BlendedMegatronDatasetDataLoader"
OWN_RATE = {"CosineAnnealingLR": ("base_lr", "t_max"), "CosineAnnealingWarmRestarts": ("base_lr", "t_0")}
"""Types that take keys of their own instead of learning_rate and a warm-up, and the keys that they need."""


def degree(context: BackContext) -> Result | Outcome:
    """Graph mode's data_parallel: devices / model_parallel, with one pipeline stage and experts inside it."""
    target = "parallel_config.data_parallel"
    world = context.world().value
    tensor, expert = context.integer("parallelism.tensor_parallel"), context.integer("parallelism.expert_parallel")
    if not isinstance(world, int):
        return refused(
            f"the number of devices is not in the file, and global_batch_size {context.integer(_BATCH)} = "
            f"local_batch_size {context.integer(_LOCAL)} × data_parallel × accumulation needs it",
            pynative=target,
            advice="give it with --world N",
            final=True,
        )
    product = context.options.expert_mesh is ExpertMesh.PRODUCT
    ranks = tensor * expert if product else math.lcm(tensor, expert)
    if world % ranks:
        reading = "tensor_parallel × expert_parallel × data_parallel" if product else "MindFormers 2.x"
        below = f"{world // ranks * ranks} and " if world > ranks else ""
        return refused(
            f"{world} devices are no multiple of the {ranks} ranks that tensor_parallel {tensor} and expert_parallel "
            f"{expert} need ({reading}); nearest legal numbers: {below}{-(-world // ranks) * ranks}",
            pynative=target,
            advice="give another number with --world N",
            final=True,
        )
    return Result(world // tensor, f"{world} devices / model_parallel {tensor} = {world // tensor}")


def data_parallel(context: BackContext) -> Outcome:
    found = degree(context)
    if isinstance(found, Outcome):
        return found
    why = "graph mode counts replicas, with expert_parallel inside data_parallel × model_parallel"
    target, fate = "parallel_config.data_parallel", context.fate("parallelism.data_parallel_shard")
    return written(fate, target, found.value, why, arithmetic=found.arithmetic)


def accumulation(context: BackContext) -> Outcome:
    """runner_config.gradient_accumulation_steps: global batch / (batch_size × data_parallel), which must be whole."""
    batch, local = context.integer(_BATCH), context.integer(_LOCAL)
    if batch % local:
        return _odd_batch(batch, local, f"batch_size {local}", "it runs on no number of devices")
    replicas = degree(context)
    if isinstance(replicas, Outcome):
        return replicas
    unit = local * replicas.value
    if batch % unit:
        tensor, share = context.integer("parallelism.tensor_parallel"), batch // local
        fitting = [str(tensor * count) for count in range(min(share, 1024), 0, -1) if share % count == 0]
        text = f"batch_size {local} × data_parallel {replicas.value} = {unit} ({replicas.arithmetic})"
        return _odd_batch(batch, unit, text, f"or give a fitting --world: {', '.join(fitting[:6])}")
    text = f"global_batch_size {batch} / (batch_size {local} × data_parallel {replicas.value}) = {batch // unit}"
    target = "runner_config.gradient_accumulation_steps"
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


def warmup_ratio(context: BackContext) -> Outcome | None:
    """The ratio as it is: the graph schedule is laid out for training.steps too."""
    if context.value(_RATIO) is None:
        return dropped("null, as if it were absent") if context.given(_RATIO) else None
    return context.bring("lr_schedule.warmup_ratio", _RATIO)


def warmup_steps(context: BackContext) -> Outcome | None:
    given = "lr_scheduler.warmup_steps"
    if context.value(_RATIO) is not None:
        return dropped("warmup_ratio wins when both are given", pynative="lr_schedule.warmup_ratio")
    if context.value(given) is not None:
        return context.bring("lr_schedule.warmup_steps", given)
    if context.value("lr_scheduler.type") in OWN_RATE:
        return None
    return written(Fate.DEFAULT, "lr_schedule.warmup_steps", 0, "the file gives no warm-up; graph mode needs a number")
