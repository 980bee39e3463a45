"""Graph mode's true batch, steps and warm-up from a graph file's numbers; each result with its arithmetic as text.

Formulas read from the graph-mode trainer of MindFormers: batch sizes first, then the dataset, epochs, learning rate.
"""

import math
from dataclasses import dataclass

PARALLEL_MODES = {0: "data_parallel", 1: "semi_auto_parallel", 2: "auto_parallel", 3: "hybrid_parallel"}
"""Graph mode's values of parallel_mode, and MindSpore's names for them."""
SEMI_AUTO_MODES = (1, 2)
"""parallel_mode values in which the degrees of parallel_config hold: semi-automatic and automatic."""
MEGATRON = "BlendedMegatronDatasetDataLoader"
"""The loader that takes its number of samples from `sizes`; the others read whole files, or `num_samples` of them."""


@dataclass(frozen=True, slots=True)
class Result:
    """A number and how it came about."""

    value: int
    arithmetic: str


@dataclass(frozen=True, slots=True)
class BatchFactors:
    """What the global batch is made of; `devices` is None when the file cannot tell it."""

    batch_size: int
    data_parallel: int
    pipeline_stage: int
    micro_batch_num: int
    micro_batch_interleave_num: int
    gradient_accumulation_steps: int
    degrees_hold: bool
    """use_parallel is True and parallel_mode is 1 or 2: else every degree is reset to 1."""
    devices: int | None


def global_batch(factors: BatchFactors) -> Result | None:
    """Samples of one optimizer step, or None when the number of devices decides and is unknown."""
    b, interleave = factors.batch_size, factors.micro_batch_interleave_num
    if not factors.degrees_hold:
        if factors.devices is None:
            return None
        return Result(b * factors.devices, f"batch_size {b} × devices {factors.devices}")
    dp = factors.data_parallel
    if factors.pipeline_stage > 1:
        count, name = factors.micro_batch_num, "micro_batch_num"
    else:
        count, name = factors.gradient_accumulation_steps, "gradient_accumulation_steps"
    total = b * dp * count * interleave
    text = f"batch_size {b} × data_parallel {dp} × {name} {count} × micro_batch_interleave_num {interleave} = {total}"
    return Result(total, text)


def steps_per_epoch(samples: int, batch: int, *, drop_remainder: bool, repeat: int, whole_batches_only: bool) -> Result:
    """Optimizer steps of one epoch; `whole_batches_only` is the Megatron loader, which floors in any case."""
    if whole_batches_only:
        steps = samples // batch
        return Result(steps, f"{samples} samples // {batch} = {steps}")
    steps = samples // batch if drop_remainder else math.ceil(samples / batch)
    rounding = "//" if drop_remainder else "/ (rounded up)"
    times = f" × repeat {repeat}" if repeat != 1 else ""
    return Result(steps * repeat, f"{samples} samples {rounding} {batch}{times} = {steps * repeat}")


def total_steps(per_epoch: int, epochs: int, *, sink_mode: bool, sink_size: int) -> Result:
    """Optimizer steps before stop_step; sinking rounds down to a multiple of sink_size, in float division."""
    if not sink_mode or sink_size == -1:
        return Result(epochs * per_epoch, f"{epochs} epochs × {per_epoch} = {epochs * per_epoch}")
    steps = int((per_epoch / sink_size) * epochs) * sink_size
    if sink_size == 1:
        return Result(steps, f"{epochs} epochs × {per_epoch} = {steps}")
    return Result(steps, f"int({per_epoch} / sink_size {sink_size} × {epochs} epochs) × {sink_size} = {steps}")


def warmup_ratio(steps: int, warmup_steps: int) -> float:
    """The smallest-looking ratio r with int(steps * r) == warmup_steps, for 0 <= warmup_steps <= steps."""
    ratio = warmup_steps / steps
    while int(steps * ratio) < warmup_steps:
        ratio = math.nextafter(ratio, 2.0)
    return ratio
