"""Rows of the manual's section 4: the learning-rate schedule and its warm-up."""

from msmigrate.mapping.back import schedule as back
from msmigrate.mapping.back.schedule import OWN_RATE, steps_by_set
from msmigrate.mapping.context import Context
from msmigrate.mapping.outcome import Effect, Fate, Outcome, carried, dropped, refused, written
from msmigrate.mapping.rows import Row, computed, default_of, derived, judged, leaf_value, renamed, turned_back
from msmigrate.mapping.schedule import Result, warmup_ratio
from msmigrate.mapping.switches import vital, vital_section
from msmigrate.mapping.table.training import planned_steps, run_steps, stop_step
from msmigrate.pynative import Config, LrScheduler, specs_of
from msmigrate.wording import counted, shown
from msmigrate.yaml.nodes import Leaf

USES_LR_END = (
    "CosineWithWarmUpLR",
    "CosineWithRestartsAndWarmUpLR",
    "PolynomialWithWarmUpLR",
    "WarmUpStableDecayLR",
)
_OLD_SHAPES = ("max_lr", "min_lr", "num_iters")
DEFAULT_TYPE = "CosineWithWarmUpLR"
_TYPE, _RATIO, _STEPS = "lr_scheduler.type", "lr_scheduler.warmup_ratio", "lr_scheduler.warmup_steps"
SHORT_NAMES = {
    "constant_with_warmup": "ConstantWarmUpLR",
    "linear": "LinearWithWarmUpLR",
    "cosine": "CosineWithWarmUpLR",
    "cosine_with_restarts": "CosineWithRestartsAndWarmUpLR",
    "polynomial": "PolynomialWithWarmUpLR",
    "cosine_annealing": "CosineAnnealingLR",
    "cosine_annealing_warm_restarts": "CosineAnnealingWarmRestarts",
}
"""Names under which MindFormers registers the same classes a second time."""


def _kind(context: Context) -> str:
    """The class of the schedule that is written; MindFormers takes short names for some."""
    kind = str(context.options.overrides.get(_TYPE, context.graph.value("lr_schedule.type", DEFAULT_TYPE)))
    return SHORT_NAMES.get(kind, kind)


def _needs_length(context: Context) -> bool:
    """Whether the rate after warm-up depends on the number of steps that the schedule is laid out for.

    PolynomialWithWarmUpLR with decay_steps needs it only for the steps behind it, which no run of that length has.
    """
    kind, graph = _kind(context), context.graph
    if kind == "ConstantWithCoolDownLR":
        return graph.value("lr_schedule.decay_ratio") is not None
    if kind == "PolynomialWithWarmUpLR" and graph.value("lr_schedule.decay_steps") is not None:
        laid_out, steps = horizon(context), run_steps(context)
        return not isinstance(laid_out, Result) or steps is None or laid_out.value < steps
    return kind != "ConstantWarmUpLR" and kind not in OWN_RATE


def horizon(context: Context) -> Result | Outcome:
    """The number of steps that graph mode's schedule is laid out for."""
    total = context.graph.integer("lr_schedule.total_steps", -1)
    if total != -1:
        return Result(total, f"total_steps {total}")
    return planned_steps(context)


def warmup_steps(context: Context) -> Result | Outcome:
    """Warm-up steps of the graph run."""
    graph = context.graph
    if _kind(context) in OWN_RATE:
        return Result(0, f"{_kind(context)} has no warm-up")
    if graph.value("lr_schedule.warmup_ratio") is not None:
        ratio = graph.number("lr_schedule.warmup_ratio", 0)
        if not 0 <= ratio <= 1:
            return refused(f"warmup_ratio is {ratio}; it must lie in 0 … 1", final=True)
        steps = horizon(context)
        if isinstance(steps, Outcome):
            return steps
        warm = int(steps.value * ratio)
        return Result(warm, f"int({steps.value} steps × warmup_ratio {ratio}) = {warm}")
    if graph.value("lr_schedule.warmup_epochs") is not None:
        return refused("warmup_epochs: releases read it differently", advice="write warmup_steps instead", final=True)
    warm = graph.integer("lr_schedule.warmup_steps", 0)
    if warm < 0:
        return refused(f"warmup_steps is {warm}; it must be 0 or more", final=True)
    given = graph.given("lr_schedule.warmup_steps")
    return Result(warm, f"warmup_steps {warm}" if given else "the file gives no warm-up")


def _ratio(context: Context) -> Outcome:
    """A ratio that resolves to the graph run's warm-up steps under truncation; the steps where `--set` gives those."""
    target = _RATIO
    warm = warmup_steps(context)
    if isinstance(warm, Outcome):
        return warm
    if steps_by_set(context.options.overrides):
        return written(Fate.COMPUTED, _STEPS, warm.value, warm.arithmetic)
    steps = run_steps(context)
    if warm.value == 0:
        return written(Fate.COMPUTED, target, 0, "no warm-up", arithmetic=warm.arithmetic)
    if steps is None:
        outcome = context.derive("training.steps")
        advice = outcome.help if outcome is not None else None
        return refused("the warm-up ratio needs the number of steps", pynative=target, advice=advice, final=True)
    if warm.value > steps:
        return refused(
            f"warm-up of {counted(warm.value, 'step')} does not fit into a run of {counted(steps, 'step')}: no ratio "
            "in 0 … 1 says that",
            pynative=target,
            advice="shorten warmup_steps, or lengthen the run (--samples N, --set training.steps=N)",
            final=True,
        )
    ratio = warmup_ratio(steps, warm.value)
    return written(
        Fate.COMPUTED,
        target,
        ratio,
        f"resolves to {counted(warm.value, 'warm-up step')} of {steps}",
        arithmetic=f"{warm.arithmetic}; int({steps} × {ratio!r}) = {int(steps * ratio)}",
    )


def _given_ratio(context: Context, row: Row, leaf: Leaf) -> Outcome:
    """The file's own ratio where it resolves to the same steps in PyNative mode."""
    found = _ratio(context)
    value = leaf_value(leaf)
    warm = warmup_steps(context)
    steps = run_steps(context)
    if found.target != _RATIO or found.fate is Fate.REFUSED or steps is None or isinstance(warm, Outcome):
        return found
    if isinstance(value, (int, float)) and int(steps * value) == warm.value:
        return carried(Fate.RENAMED, _RATIO, leaf.node, found.why)
    return found


def _given_steps(context: Context, row: Row, leaf: Leaf) -> Outcome:
    if context.graph.value("lr_schedule.warmup_ratio") is not None:
        return dropped("graph mode ignores warmup_steps beside warmup_ratio", pynative=_RATIO)
    found = context.derive(_RATIO)
    assert found is not None
    return found


def _total_steps(context: Context, row: Row, leaf: Leaf) -> Outcome:
    value = leaf_value(leaf)
    if value in (None, -1):
        return dropped("-1: the schedule follows the steps of the run")
    steps = run_steps(context)
    if steps == value:
        return dropped(f"equal to training.steps {value}")
    if not _needs_length(context):
        return dropped(f"{_kind(context)} does not depend on it after warm-up")
    run = "the number of steps of the run is not known" if steps is None else f"the run has {steps}"
    return refused(
        f"the schedule is laid out for {shown(value)} steps, {run}; PyNative mode lays {_kind(context)} out for "
        "training.steps",
        pynative="training.steps",
    )


def _lr_end(context: Context, row: Row, leaf: Leaf) -> Outcome:
    if _kind(context) not in USES_LR_END:
        return dropped(f"{_kind(context)} does not use it")
    return row.carry(leaf)


def _warmup_lr_init(context: Context, row: Row, leaf: Leaf) -> Outcome:
    warm = warmup_steps(context)
    if leaf_value(leaf) in (0, 0.0, None):
        return dropped("0, as in PyNative mode")
    if isinstance(warm, Result) and warm.value == 0:
        return dropped("no warm-up, so it is not used")
    return row.carry(leaf)


def _type(context: Context, row: Row, leaf: Leaf) -> Outcome:
    choices = specs_of(Config)[_TYPE].key.choices
    if _TYPE in context.options.overrides:
        return row.carry(leaf)
    kind = _kind(context)
    if kind not in choices:
        return refused(
            f"schedule {kind} has no PyNative counterpart; there are {', '.join(choices)}",
            pynative="lr_scheduler.type",
            advice="choose one with --set lr_scheduler.type=…",
        )
    missing = [name for name in OWN_RATE.get(kind, ()) if not context.graph.given(f"lr_schedule.{name}")]
    if missing:
        return refused(
            f"{kind} takes {' and '.join(missing)} instead of learning_rate and a warm-up, and the file gives none",
            pynative="lr_scheduler.type", final=True,
            advice="give them with --set lr_scheduler." + "=… --set lr_scheduler.".join(missing) + "=…",
        )  # fmt: skip
    stop, steps, laid_out = stop_step(context), planned_steps(context), horizon(context)
    ends_early, length = stop is not None and isinstance(steps, Result) and stop < steps.value, run_steps(context)
    if ends_early and isinstance(laid_out, Result) and laid_out.value != length and _needs_length(context):
        return refused(
            f"stop_step {stop} ends the run, but {kind} is laid out for {counted(laid_out.value, 'step')}; PyNative "
            f"mode would lay it out for {length}",
            pynative="lr_scheduler.type",
        )
    if kind != leaf_value(leaf):
        return written(Fate.RENAMED, "lr_scheduler.type", kind, f"{leaf_value(leaf)} is a short name of this class")
    return row.carry(leaf)


def _default_type(context: Context) -> Outcome:
    return written(Fate.DEFAULT, "lr_scheduler.type", DEFAULT_TYPE, "graph mode's default schedule")


def _learning_rate(context: Context, row: Row, leaf: Leaf) -> Outcome:
    if _kind(context) in OWN_RATE:
        return dropped(f"{_kind(context)} takes base_lr")
    return row.carry(leaf)


def _takes_a_rate(context: Context) -> bool:
    return _kind(context) not in OWN_RATE


def _shape_rows() -> tuple[Row, ...]:
    """The keys of special schedules: the scheduler classes of both modes take the same names."""
    special = (
        "num_cycles",
        "power",
        "decay_steps",
        "decay_ratio",
        "decay_start_steps",
        "decay_start_ratio",
        "keep_steps",
        "lr_end1",
        "final_steps",
        "lr_end2",
        "base_lr",
        "t_max",
        "t_0",
        "t_mult",
        "eta_min",
    )
    known = specs_of(LrScheduler)
    return tuple(renamed(f"lr_schedule.{name}", f"lr_scheduler.{name}", None) for name in special if name in known)


ROWS: tuple[Row, ...] = (
    judged(
        "lr_schedule.type",
        "lr_scheduler.type",
        "4.2",
        _type,
        effect=Effect.TRAINING,
        about="carried, short names as the class; refused for a class that PyNative mode does not have, and where "
        "stop_step ends the run inside the schedule",
    ),
    derived("lr_scheduler.type", "4.1", _default_type, about=f"{DEFAULT_TYPE}, graph mode's default schedule"),
    judged(
        "lr_schedule.learning_rate",
        "lr_scheduler.learning_rate",
        "4.2",
        _learning_rate,
        back=back.learning_rate,
        about=f"carried; dropped with {' and '.join(OWN_RATE)}, which take base_lr",
    ),
    default_of("learning_rate", "lr_scheduler.learning_rate", "4.1", 5e-5, _takes_a_rate),
    judged(
        "lr_schedule.warmup_ratio",
        "lr_scheduler.warmup_ratio",
        "4.2",
        _given_ratio,
        back=back.warmup_ratio,
        about="carried where it gives the graph run's warm-up steps, else worked out so that it does",
    ),
    judged(
        "lr_schedule.warmup_steps",
        "lr_scheduler.warmup_ratio",
        "4.2",
        _given_steps,
        Fate.COMPUTED,
        back=back.warmup_steps,
        about="the ratio that gives these steps; dropped beside warmup_ratio, which wins in graph mode",
    ),
    turned_back("lr_scheduler.warmup_steps", back.warmup_steps),
    computed("lr_schedule.warmup_epochs", "lr_scheduler.warmup_ratio", None),
    derived(
        "lr_scheduler.warmup_ratio",
        "4.1",
        _ratio,
        about="the ratio that gives the graph run's warm-up steps; refused where the warm-up is longer than the run",
    ),
    judged(
        "lr_schedule.lr_end",
        "lr_scheduler.lr_end",
        "4.2",
        _lr_end,
        about="carried where the schedule uses it, else dropped",
    ),
    judged(
        "lr_schedule.warmup_lr_init",
        "lr_scheduler.warmup_lr_init",
        "4.2",
        _warmup_lr_init,
        about="carried where there is a warm-up and it is not 0, else dropped",
    ),
    judged(
        "lr_schedule.total_steps",
        None,
        "4.2",
        _total_steps,
        Fate.DROPPED,
        back=back.total_steps,
        about="dropped where it is -1, the run's length, or of no consequence; else refused: PyNative mode lays the "
        "schedule out for training.steps",
        effect=Effect.TRAINING,
    ),
    *_shape_rows(),
    vital("lr_schedule.auto_register", "a schedule class of its own"),
    *(vital(f"lr_schedule.{name}", "part of a schedule that PyNative mode does not have") for name in _OLD_SHAPES),
    *vital_section("grouped_lr_schedule", "rates by groups of parameters: PyNative mode has one rate"),
)
