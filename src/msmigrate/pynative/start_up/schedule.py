"""Rules of the learning-rate schedule: what its class needs, what it ignores, and rates that are no numbers."""

from collections.abc import Iterator

from msmigrate.findings import Severity
from msmigrate.pynative.keys import specs_of
from msmigrate.pynative.lr_scheduler import ANNEALING, WARMING_UP, LrScheduler
from msmigrate.pynative.start_up.rule import Facts, Problem, Rule
from msmigrate.wording import counted

SECTION = "lr_scheduler."
TYPE = SECTION + "type"
RATIO, STEPS = SECTION + "warmup_ratio", SECTION + "warmup_steps"
START_RATIO, START_STEPS = SECTION + "decay_start_ratio", SECTION + "decay_start_steps"
FALLING = ("PolynomialWithWarmUpLR", "WarmUpStableDecayLR")
"""Schedules that stop unless the rate falls."""
FALLING_END = 1e-7
"""Their lr_end when the file has none."""


def _missing(facts: Facts) -> Iterator[Problem]:
    here = facts.config.lr_scheduler
    for spec in specs_of(LrScheduler).values():
        if here.type in spec.key.needed_by and getattr(here, spec.name) is None:
            key = SECTION + spec.name
            yield Problem((TYPE, key), f"{here.type} needs `{key}`, which is missing")
    # CosineWithWarmUpLR alone has a default: it starts without warm-up, unless null is written
    optional = here.type == "CosineWithWarmUpLR" and STEPS not in facts.written
    if here.type in WARMING_UP and not optional and here.warmup_ratio is None and here.warmup_steps is None:
        message = f"{here.type} needs `{RATIO}` or `{STEPS}`; both are missing"
        yield Problem((TYPE, RATIO, STEPS), message, "write `warmup_ratio: 0` for no warm-up")
    if here.type == "WarmUpStableDecayLR" and here.decay_start_ratio is None and here.decay_start_steps is None:
        message = f"{here.type} needs `{START_RATIO}` or `{START_STEPS}`; both are missing"
        yield Problem((TYPE, START_RATIO, START_STEPS), message, "write the step at which the decay starts")


def _ignored(facts: Facts) -> Iterator[Problem]:
    here = facts.config.lr_scheduler
    for spec in specs_of(LrScheduler).values():
        key = SECTION + spec.name
        if key not in facts.written or not spec.key.types or here.type is None or here.type in spec.key.types:
            continue
        message = f"`{key}` has no effect: {here.type} does not read it"
        yield Problem((key, TYPE), message, "remove it or choose another type", Severity.WARNING)


def _two_warmups(facts: Facts) -> Iterator[Problem]:
    here = facts.config.lr_scheduler
    if here.warmup_ratio is None or here.warmup_steps is None or here.type not in WARMING_UP:
        return
    resolved = counted(int(facts.config.training.steps * here.warmup_ratio), "step")
    message = (
        f"`{STEPS}` {here.warmup_steps} has no effect: `{RATIO}` {here.warmup_ratio:g} wins and gives {resolved} of "
        f"{facts.config.training.steps}"
    )
    yield Problem((STEPS, RATIO, TYPE), message, "remove one of them", Severity.WARNING)


def _no_rate(facts: Facts) -> Iterator[Problem]:
    """A peak rate of 0: the readers take it, and nothing is learnt."""
    here = facts.config.lr_scheduler
    name = "base_lr" if here.type in ANNEALING else "learning_rate"
    if getattr(here, name) == 0:
        yield Problem((SECTION + name, TYPE), f"`{SECTION}{name}` is 0: nothing is learnt", None, Severity.WARNING)


def _does_not_fall(facts: Facts) -> Iterator[Problem]:
    here = facts.config.lr_scheduler
    end = FALLING_END if here.lr_end is None else here.lr_end
    if here.type in FALLING and here.learning_rate <= end:
        yield Problem(
            (SECTION + "learning_rate", SECTION + "lr_end", TYPE),
            f"learning_rate {here.learning_rate:g} is not above lr_end {end:g}; {here.type} stops at start-up",
        )


def _not_a_number(facts: Facts) -> Iterator[Problem]:
    """WarmUpStableDecayLR divides 0 by the warm-up steps at step 0 unless the decay starts there."""
    here, steps = facts.config.lr_scheduler, facts.config.training.steps
    warmup = _steps(here.warmup_ratio, here.warmup_steps, steps)
    start = _steps(here.decay_start_ratio, here.decay_start_steps, steps)
    if here.type == "WarmUpStableDecayLR" and warmup == 0 and start:
        yield Problem(
            (RATIO if here.warmup_ratio is not None else STEPS, TYPE),
            f"{here.type} without warm-up has no number as its rate at step 0 (it computes 0 / 0), and decays from "
            f"step {start}",
            "give at least 1 warm-up step",
            Severity.WARNING,
        )


def _steps(ratio: float | None, count: int | None, steps: int) -> int | None:
    return int(steps * ratio) if ratio is not None else count


RULES = (
    Rule("P040", "schedule-needs-key", _missing),
    Rule("P041", "schedule-ignores-key", _ignored),
    Rule("P042", "schedule-does-not-fall", _does_not_fall),
    Rule("P043", "rate-is-no-number", _not_a_number),
    Rule("P044", "warm-up-given-twice", _two_warmups),
    Rule("P045", "rate-of-nothing", _no_rate),
)
