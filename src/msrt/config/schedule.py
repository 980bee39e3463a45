"""The learning rate of every step: the schedule types of MindFormers as pure functions of the 0-based step.

Symbols: t step, T training.steps, w warm-up steps, b base rate, i rate of step 0 of the warm-up, e end rate. While
t < w every type with a warm-up gives i + (b - i) t / w. The functions of this file give what comes after it.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

from msmigrate.problems import UserError
from msmigrate.pynative.sections import LrScheduler
from msrt.config.problem import Problem

SECTION = "lr_scheduler."


@dataclass(frozen=True, slots=True)
class Curve:
    """Every number a rate depends on, with defaults filled in; rates are per update, lengths in steps."""

    total: int
    warmup: int
    base: float
    init: float
    end: float
    cycles: float
    power: float
    decay: int | None
    """Length of the decay, or the step from which the end rate holds; None for the type's own."""
    decay_start: int
    keep: int
    final: int
    final_end: float
    period: int
    growth: int

    @property
    def progress_length(self) -> int:
        """Steps between warm-up and the end, at least 1."""
        return max(1, self.total - self.warmup)


def constant(curve: Curve, t: int) -> float:
    """b."""
    return curve.base


def linear(curve: Curve, t: int) -> float:
    """b (T - t) / (T - w), never below 0; an end rate plays no part."""
    return curve.base * max(0.0, (curve.total - t) / curve.progress_length)


def cosine(curve: Curve, t: int) -> float:
    """e + (b - e) (1 + cos(2π cycles p)) / 2 with p = (t - w) / (T - w); e from step `decay` on."""
    if t >= (curve.total if curve.decay is None else curve.decay):
        return curve.end
    angle = 2 * math.pi * curve.cycles * (t - curve.warmup) / curve.progress_length
    return curve.end + (curve.base - curve.end) * max(0.0, 0.5 * (1 + math.cos(angle)))


def cosine_with_restarts(curve: Curve, t: int) -> float:
    """e + (b - e) (1 + cos(π (cycles p mod 1))) / 2 with p = (t - w) / (T - w); e from step `decay` on."""
    if t >= (curve.total if curve.decay is None else curve.decay):
        return curve.end
    part = (curve.cycles * (t - curve.warmup) / curve.progress_length) % 1.0
    return curve.end + (curve.base - curve.end) * 0.5 * (1 + math.cos(math.pi * part))


def polynomial(curve: Curve, t: int) -> float:
    """e + (b - e) (1 - (t - w) / D) ^ power with D = `decay`, by default T - w; e after step T."""
    if t > curve.total:
        return curve.end
    length = curve.progress_length if curve.decay is None else curve.decay
    return curve.end + (curve.base - curve.end) * math.pow(1 - (t - curve.warmup) / length, curve.power)


def constant_with_cool_down(curve: Curve, t: int) -> float:
    """b for `keep` steps, a half cosine to e over `decay` steps, e for `final` steps, then the final end rate."""
    t -= curve.warmup + curve.keep
    decay = curve.decay or 0
    if t < 0:
        return curve.base
    if t < decay:
        return curve.end + (curve.base - curve.end) * 0.5 * (1 + math.cos(math.pi * t / decay))
    return curve.end if t < decay + curve.final else curve.final_end


def stable_then_decay(curve: Curve, t: int) -> float:
    """b until `decay_start` d, then b - (b - e) (t - d) / (T - d), which goes on falling past T."""
    if t < curve.decay_start:
        return curve.base
    falling = (t - curve.decay_start) / max(1, curve.total - curve.decay_start)
    return curve.base - (curve.base - curve.end) * falling


def cosine_annealing(curve: Curve, t: int) -> float:
    """e + (b - e) (1 + cos(π t / period)) / 2: falls for one period, rises in the next (arXiv 1608.03983, eq. 5)."""
    return curve.end + (curve.base - curve.end) * 0.5 * (1 + math.cos(math.pi * t / curve.period))


def cosine_annealing_warm_restarts(curve: Curve, t: int) -> float:
    """The falling half of `cosine_annealing` again and again, each period `growth` times as long as the last."""
    period = curve.period
    if curve.growth == 1:
        t %= period
    while t >= period:
        t, period = t - period, period * curve.growth
    return curve.end + (curve.base - curve.end) * 0.5 * (1 + math.cos(math.pi * t / period))


@dataclass(frozen=True, slots=True)
class Kind:
    """One schedule type: its function, what it needs from the config, and its own defaults."""

    rate: Callable[[Curve, int], float]
    needs: tuple[str, ...] = ()
    warms_up: bool = True
    needs_warmup: bool = True
    """Whether warmup_ratio or warmup_steps must be given; MindFormers' classes stop with a TypeError without."""
    end_key: str = "lr_end"
    base_key: str = "learning_rate"
    end: float = 0.0
    cycles: float = 0.5


KINDS: dict[str, Kind] = {
    "ConstantWarmUpLR": Kind(constant),
    "LinearWithWarmUpLR": Kind(linear),
    "CosineWithWarmUpLR": Kind(cosine, needs_warmup=False),
    "CosineWithRestartsAndWarmUpLR": Kind(cosine_with_restarts, cycles=1.0),
    "PolynomialWithWarmUpLR": Kind(polynomial, end=1e-7),
    "ConstantWithCoolDownLR": Kind(constant_with_cool_down, needs=("decay_steps",), end_key="lr_end1"),
    "WarmUpStableDecayLR": Kind(stable_then_decay, end=1e-7),
    "CosineAnnealingLR": Kind(
        cosine_annealing, needs=("base_lr", "t_max"), warms_up=False, end_key="eta_min", base_key="base_lr"
    ),
    "CosineAnnealingWarmRestarts": Kind(
        cosine_annealing_warm_restarts, needs=("base_lr", "t_0"), warms_up=False, end_key="eta_min", base_key="base_lr"
    ),
}


def learning_rate(scheduler: LrScheduler, steps: int) -> Callable[[int], float]:
    """The rate of each 0-based step of a run of `steps` steps, as a function.

    Raises `UserError` with every parameter that the type cannot work with.
    """
    problems = schedule_problems(scheduler, steps)
    if problems:
        raise UserError("\n".join(f"{problem.key}: {problem.message}" for problem in problems))
    kind, curve = KINDS[str(scheduler.type)], _curve(scheduler, steps)

    def rate(t: int) -> float:
        if t < curve.warmup:
            return curve.init + (curve.base - curve.init) * t / curve.warmup
        return kind.rate(curve, t)

    return rate


def warmup_steps(scheduler: LrScheduler, steps: int) -> int:
    """The number of warm-up steps: int(steps × warmup_ratio), else warmup_steps, else 0 (as MindFormers 2.x)."""
    kind = KINDS.get(str(scheduler.type))
    if kind is None or not kind.warms_up:
        return 0
    if scheduler.warmup_ratio is not None:
        return int(steps * scheduler.warmup_ratio)
    return scheduler.warmup_steps or 0


def schedule_problems(scheduler: LrScheduler, steps: int) -> list[Problem]:
    """Every reason why the schedule has no usable rate at some step of 0 … steps - 1."""
    kind = KINDS.get(str(scheduler.type))
    if kind is None:
        message = f"is {scheduler.type}; it must be one of {', '.join(KINDS)}."
        return [Problem(SECTION + "type", message)]
    problems = [*_missing(scheduler, kind), *_out_of_range(scheduler)]
    return problems or _inconsistent(scheduler, kind, steps)


def _curve(scheduler: LrScheduler, steps: int) -> Curve:
    kind = KINDS[str(scheduler.type)]
    end: float | None = getattr(scheduler, kind.end_key)
    end = kind.end if end is None else end
    return Curve(
        total=steps,
        warmup=warmup_steps(scheduler, steps),
        base=getattr(scheduler, kind.base_key),
        init=scheduler.warmup_lr_init,
        end=end,
        cycles=kind.cycles if scheduler.num_cycles is None else scheduler.num_cycles,
        power=1.0 if scheduler.power is None else scheduler.power,
        decay=_steps_or_share(scheduler.decay_steps, scheduler.decay_ratio, steps),
        decay_start=_steps_or_share(scheduler.decay_start_steps, scheduler.decay_start_ratio, steps) or 0,
        keep=scheduler.keep_steps or 0,
        final=scheduler.final_steps or 0,
        final_end=scheduler.lr_end2 or end,
        period=scheduler.t_max or scheduler.t_0 or 1,
        growth=scheduler.t_mult or 1,
    )


def _steps_or_share(count: int | None, ratio: float | None, steps: int) -> int | None:
    return int(steps * ratio) if ratio is not None else count


def _missing(scheduler: LrScheduler, kind: Kind) -> list[Problem]:
    problems = [
        Problem(SECTION + name, f"is not given; {scheduler.type} needs it.")
        for name in kind.needs
        if getattr(scheduler, name) is None
    ]
    if kind.warms_up and kind.needs_warmup and scheduler.warmup_ratio is None and scheduler.warmup_steps is None:
        message = f"is not given; {scheduler.type} needs it or warmup_steps. Write 0 for no warm-up."
        problems.append(Problem(SECTION + "warmup_ratio", message))
    starts = (scheduler.decay_start_steps, scheduler.decay_start_ratio)
    if kind.rate is stable_then_decay and starts == (None, None):
        message = f"is not given; {scheduler.type} needs it or decay_start_ratio."
        problems.append(Problem(SECTION + "decay_start_steps", message))
    return problems


LARGEST = {"warmup_ratio": 1.0, "decay_ratio": 1.0, "decay_start_ratio": 1.0}
SMALLEST = {"t_max": 1, "t_0": 1, "t_mult": 1}
NUMBERS = (
    "learning_rate", "warmup_ratio", "warmup_steps", "warmup_lr_init", "lr_end", "num_cycles", "power", "decay_steps",
    "decay_ratio", "decay_start_steps", "decay_start_ratio", "keep_steps", "lr_end1", "final_steps", "lr_end2",
    "base_lr", "t_max", "t_0", "t_mult", "eta_min",
)  # fmt: skip


def _out_of_range(scheduler: LrScheduler) -> list[Problem]:
    problems = []
    for name in NUMBERS:
        value: float | None = getattr(scheduler, name)
        low, high = SMALLEST.get(name, 0), LARGEST.get(name, math.inf)
        if value is not None and not (low <= value <= high and math.isfinite(value)):
            bounds = f"from {low} to {high:g}" if name in LARGEST else f"finite and at least {low}"
            problems.append(Problem(SECTION + name, f"is {value}; it must be {bounds}."))
    return problems


def _inconsistent(scheduler: LrScheduler, kind: Kind, steps: int) -> list[Problem]:
    curve = _curve(scheduler, steps)
    if kind.rate is stable_then_decay and curve.decay_start < curve.warmup:
        message = f"starts the decay at step {curve.decay_start}, before the warm-up of {curve.warmup} steps ends."
        return [Problem(SECTION + "decay_start_steps", message)]
    if kind.rate is not polynomial:
        return []
    problems = []
    if curve.base <= curve.end:
        message = f"is {curve.base:g}, not above lr_end {curve.end:g}; {scheduler.type} falls from one to the other."
        problems.append(Problem(SECTION + "learning_rate", message))
    needed = steps - 1 - curve.warmup
    if curve.decay is not None and curve.decay < max(needed, 1):
        message = (
            f"is {curve.decay}, but step {steps - 1} is {needed} steps after the warm-up of {curve.warmup}: the rate "
            f"would pass its end. Smallest legal value: {max(needed, 1)}."
        )
        problems.append(Problem(SECTION + "decay_steps", message))
    return problems
