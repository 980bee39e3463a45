"""Rows of the manual's section 3, and of gradient clipping and loss scaling (runner_wrapper)."""

import math

from msmigrate.mapping.back import settings as back
from msmigrate.mapping.back.context import always
from msmigrate.mapping.back.settings import NEVER_CLIPS
from msmigrate.mapping.context import Context
from msmigrate.mapping.model_values import model_value
from msmigrate.mapping.outcome import Effect, Fate, Outcome, dropped, refused, written
from msmigrate.mapping.rows import Row, computed, default_of, derived, goes, judged, leaf_value, same
from msmigrate.mapping.switches import PER_TOKEN, spared, vital
from msmigrate.mapping.table.callbacks import SKIPS
from msmigrate.yaml.nodes import Leaf
from msmigrate.yaml.scalars import Value, spell

_BETAS: Value = [0.9, 0.999]
"""Graph mode's default betas."""
UNCORRECTED = (
    "FP32StateAdamWeightDecay", "FusedAdamWeightDecay", "FusedCastAdamWeightDecay", "AdamWeightDecay", "adamw",
    "fp32_adamw", "fused_adamw",
)  # fmt: skip
"""Optimizers with the update of mindspore.nn.AdamWeightDecay; some keep float32 states, some are one operator."""
_WRAPPERS = ("MFTrainOneStepCell", "MFPipelineWithLossScaleCell")
DEFAULT_RATE = 5e-5
"""Graph mode's rate without an lr_schedule."""


def clip_norm(context: Context) -> tuple[float, str]:
    """The norm at which the graph run clips (`NEVER_CLIPS` for no clipping), and why."""
    graph = context.graph
    threshold = graph.number("runner_wrapper.max_grad_norm", 1.0)
    if not graph.section("runner_wrapper"):
        return threshold, "without runner_wrapper graph mode clips at 1.0"
    if graph.flag("runner_wrapper.use_clip_grad", False):
        return threshold, "use_clip_grad: True clips at max_grad_norm"
    if graph.value("runner_wrapper.use_clip_grad") is not None:
        return NEVER_CLIPS, "use_clip_grad: False; the readers have no off switch, 1.0e+10 never clips"
    factors = context.batch_factors()
    if factors.pipeline_stage > 1 or (factors.degrees_hold and factors.gradient_accumulation_steps > 1):
        return threshold, "graph mode's wrapper for pipelines and accumulation clips unless told otherwise"
    return NEVER_CLIPS, "graph mode clips only with use_clip_grad: True; 1.0e+10 never clips"


def _max_norm(context: Context) -> Outcome:
    norm, why = clip_norm(context)
    fate = Fate.COMPUTED if context.graph.given("runner_wrapper.use_clip_grad") else Fate.DEFAULT
    return written(fate, "training.max_norm", norm, why)


def _loss_scale(context: Context, row: Row, leaf: Leaf) -> Outcome:
    value = leaf_value(leaf)
    if len(leaf.path) == 2 and value in (1, 1.0, None):
        return dropped("a loss scale of 1 changes nothing")
    if model_value(context, "compute_dtype") == "float16":
        return refused(
            "compute_dtype float16 needs loss scaling, which PyNative mode does not have",
            advice="use compute_dtype bfloat16, or --allow-lossy to train float16 without loss scaling",
        )
    return dropped(
        "the loss scale is divided out of the gradients again, exactly for powers of two; a dynamic scale skipped the "
        "steps that overflowed, PyNative mode has no such skip"
    )


def _wrapper(context: Context, row: Row, leaf: Leaf) -> Outcome:
    kind = leaf_value(leaf)
    if kind in (None, *_WRAPPERS):
        return dropped("PyNative mode has one training step, which computes the same")
    return refused(f"training step {kind}: only {' and '.join(_WRAPPERS)} are known to compute what PyNative mode does")


def _own_rate(context: Context, row: Row, leaf: Leaf) -> Outcome:
    rate = leaf_value(leaf)
    if rate in (None, DEFAULT_RATE) or context.graph.section("lr_schedule"):
        return dropped("lr_schedule decides the rate")
    return refused(
        f"optimizer.learning_rate is {rate} and there is no lr_schedule: releases take this rate or {DEFAULT_RATE}",
        pynative="lr_scheduler.learning_rate",
        advice="write an lr_schedule in the graph file",
    )


def _type(context: Context, row: Row, leaf: Leaf) -> Outcome:
    value = leaf_value(leaf)
    if value == "AdamW":
        return row.carry(leaf)
    if value == "FusedAdamW":
        return written(Fate.RENAMED, "optimizer.type", "AdamW", "one operator for AdamW's update; the same numbers")
    if value in UNCORRECTED:
        return _uncorrected(context, str(value))
    return refused(
        f"optimizer {value}: only AdamW is known to compute the same in both modes",
        pynative="optimizer.type",
        advice="set one with --set optimizer.type=AdamW",
    )


def _uncorrected(context: Context, kind: str) -> Outcome:
    """AdamW without bias correction (mindspore.nn.AdamWeightDecay): its first steps go another way."""
    first, second = context.graph.number("optimizer.beta1", 0.9), context.graph.number("optimizer.beta2", 0.999)
    why = f"optimizer {kind} does not correct the bias of its moments"
    if 0 <= first < 1 and 0 <= second < 1:
        ratio = (1 - first) / math.sqrt(1 - second)
        why += (
            f": its first step is (1 - {first:g}) / √(1 - {second:g}) = {ratio:.3g} times AdamW's, and the difference "
            f"fades over some {round(3 / (1 - second))} steps"
        )
    if context.options.allow_lossy:
        return written(Fate.COMPUTED, "optimizer.type", "AdamW", why, effect=Effect.TRAINING)
    return refused(why, pynative="optimizer.type", advice="--allow-lossy or --set optimizer.type=AdamW writes AdamW")


def _eps(context: Context) -> Outcome | None:
    if context.graph.value("optimizer.type") not in UNCORRECTED:
        return None
    why = f"{context.graph.value('optimizer.type')}'s default eps; that of PyNative's AdamW is 1.0e-08"
    return written(Fate.DEFAULT, "optimizer.eps", 1e-6, why)


def _beta(context: Context, row: Row, leaf: Leaf) -> Outcome:
    betas = context.derive("optimizer.betas") if leaf_value(leaf) is not None else None
    return betas or dropped("null, as if it were absent", pynative="optimizer.betas")


def _betas(context: Context) -> Outcome:
    """The betas of a file that gives beta1 and beta2, or none."""
    graph = context.graph
    if any(graph.value(f"optimizer.{name}") is not None for name in ("beta1", "beta2")):
        pair: list[Value] = [graph.number("optimizer.beta1", 0.9), graph.number("optimizer.beta2", 0.999)]
        return written(Fate.COMPUTED, "optimizer.betas", pair, "beta1 and beta2 in one list")
    return written(Fate.DEFAULT, "optimizer.betas", _BETAS, "graph mode's default betas; PyNative's are 0.9, 0.95")


_SCALED = (
    "dropped: the loss scale is divided out of the gradients again; refused with compute_dtype float16, which needs it"
)

ROWS: tuple[Row, ...] = (
    judged(
        "optimizer.type",
        "optimizer.type",
        "3.2",
        _type,
        Fate.SAME,
        back=back.optimizer_type,
        effect=Effect.TRAINING,
        about="AdamW is carried, FusedAdamW becomes AdamW; others are refused, --allow-lossy turns those without bias "
        "correction into AdamW",
    ),
    same("optimizer.betas", "3.2"),
    same("optimizer.eps", "3.2"),
    same("optimizer.weight_decay", "3.2"),
    default_of("optimizer", "optimizer.type", "3.1", "AdamW"),
    judged("optimizer.beta1", "optimizer.betas", None, _beta, Fate.COMPUTED),
    judged("optimizer.beta2", "optimizer.betas", None, _beta, Fate.COMPUTED),
    derived("optimizer.eps", None, _eps, about="1.0e-06 for AdamWeightDecay and its kind, whose default it is"),
    derived(
        "optimizer.betas",
        "3.1",
        _betas,
        default=_BETAS,
        about=f"beta1 and beta2 in one list; graph mode's default betas are {spell(_BETAS)}",
    ),
    default_of("weight_decay", "optimizer.weight_decay", "3.1", 0.0),
    spared("optimizer.swap", "optimizer state stays on the device", Effect.MEMORY, "3.2"),
    goes("optimizer.use_fused", "a fusion of graph mode; the same numbers", None, Effect.SPEED),
    vital("optimizer.amsgrad", "the largest second moment so far; PyNative mode's AdamW takes the present one"),
    vital("optimizer.maximize", "the objective goes up; PyNative mode's AdamW goes down"),
    judged(
        "optimizer.learning_rate",
        None,
        None,
        _own_rate,
        Fate.DROPPED,
        effect=Effect.TRAINING,
        about=f"dropped beside an lr_schedule, which decides; refused without one, unless it is {spell(DEFAULT_RATE)}",
    ),
    computed("runner_wrapper.max_grad_norm", "training.max_norm", None, back=back.max_grad_norm),
    computed("runner_wrapper.use_clip_grad", "training.max_norm", None, back=back.use_clip_grad),
    derived(
        "training.max_norm",
        None,
        _max_norm,
        about="max_grad_norm where the graph run clips, else 1.0e+10, which never clips; without runner_wrapper graph "
        "mode clips at 1.0",
    ),
    judged(
        "runner_wrapper.type",
        None,
        "appendix",
        _wrapper,
        Fate.DROPPED,
        back=always("runner_wrapper.type", _WRAPPERS[0], "the training step that clips"),
        about=f"dropped for {' and '.join(_WRAPPERS)}, which compute what PyNative mode does; others are refused",
        effect=Effect.TRAINING,
    ),
    goes("runner_wrapper.local_norm", "logging only; training is the same"),
    vital("runner_wrapper.calculate_per_token_loss", PER_TOKEN),
    vital("runner_wrapper.use_skip_data_by_global_norm", SKIPS),
    goes("runner_wrapper.global_norm_spike_threshold", "read only with use_skip_data_by_global_norm: True"),
    goes("runner_wrapper.print_separate_loss", "logging only; the training loss is the same"),
    goes("runner_wrapper.enable_check_overflow", "PyNative mode takes every step"),
    vital("runner_wrapper.enable_global_norm", "an old name of clipping; write use_clip_grad and max_grad_norm"),
    judged("runner_wrapper.sens", None, None, _loss_scale, Fate.DROPPED, about=_SCALED, effect=Effect.TRAINING),
    judged(
        "runner_wrapper.scale_sense",
        None,
        "appendix",
        _loss_scale,
        Fate.DROPPED,
        back=always("runner_wrapper.scale_sense", 1.0, "PyNative mode does not scale the loss"),
        about=_SCALED,
        effect=Effect.TRAINING,
    ),
    judged(
        "runner_wrapper.scale_sense.*",
        None,
        "appendix",
        _loss_scale,
        Fate.DROPPED,
        about=_SCALED,
        effect=Effect.TRAINING,
    ),
    goes("layer_decay", "read only with layer_scale: True"),
    vital("layer_scale", "per-layer learning rates: PyNative mode has one rate"),
    vital("lr_scale", "a learning rate scaled by the batch: write the scaled rate into lr_schedule"),
    goes("lr_scale_factor", "read only with lr_scale: True"),
)
