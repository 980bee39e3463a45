import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msmigrate.problems import UserError
from msmigrate.pynative.sections import LrScheduler
from msrt.config.schedule import KINDS, learning_rate, schedule_problems, warmup_steps


def scheduler(kind: str, **values: float) -> LrScheduler:
    base = LrScheduler(type=kind, learning_rate=1e-3, warmup_steps=10)
    return replace(base, **values)  # type: ignore[arg-type]  # any key of the section


def rates(section: LrScheduler, steps: int, *at: int) -> list[float]:
    rate = learning_rate(section, steps)
    return [rate(t) for t in at]


def test_warm_up_rises_in_equal_steps_from_the_first_rate() -> None:
    section = scheduler("ConstantWarmUpLR", warmup_steps=4, warmup_lr_init=2e-4)
    assert rates(section, 100, 0, 1, 2, 3, 4, 99) == pytest.approx([2e-4, 4e-4, 6e-4, 8e-4, 1e-3, 1e-3])


def test_linear_reaches_zero_one_step_after_the_last() -> None:
    # T 100, w 10: (100 - t) / 90
    section = scheduler("LinearWithWarmUpLR", lr_end=5e-4)
    assert rates(section, 100, 10, 55, 99, 100) == pytest.approx([1e-3, 5e-4, 1e-3 / 90, 0.0])


def test_cosine_is_half_way_in_the_middle() -> None:
    # e 1e-4, middle of the decay: e + (b - e) / 2; a third of the way: cos(60°) = 1/2, so e + 3/4 (b - e)
    section = scheduler("CosineWithWarmUpLR", lr_end=1e-4)
    assert rates(section, 100, 10, 40, 55, 100) == pytest.approx([1e-3, 1e-4 + 0.75 * 9e-4, 5.5e-4, 1e-4])


def test_cosine_stops_at_its_decay_step_but_keeps_the_slope_of_the_whole_run() -> None:
    section = scheduler("CosineWithWarmUpLR", decay_steps=55)
    assert rates(section, 100, 54, 55, 99) == pytest.approx([1e-3 * 0.5 * (1 + math.cos(math.pi * 44 / 90)), 0.0, 0.0])


def test_restarts_begin_again_at_the_base_rate() -> None:
    section = scheduler("CosineWithRestartsAndWarmUpLR", num_cycles=3, warmup_steps=0)
    # p mod 1 of 3 t / 90 at t 0, 15, 30, 45, 60
    assert rates(section, 90, 0, 15, 30, 45, 60) == pytest.approx([1e-3, 5e-4, 1e-3, 5e-4, 1e-3])


def test_polynomial_of_power_two() -> None:
    section = scheduler("PolynomialWithWarmUpLR", power=2, lr_end=1e-4)
    assert rates(section, 110, 10, 60, 110, 111) == pytest.approx([1e-3, 1e-4 + 9e-4 * 0.25, 1e-4, 1e-4])


def test_cool_down_has_four_parts() -> None:
    section = scheduler(
        "ConstantWithCoolDownLR", keep_steps=5, decay_steps=10, lr_end1=2e-4, final_steps=3, lr_end2=1e-4
    )
    assert rates(section, 100, 14, 15, 20, 25, 27, 28) == pytest.approx([1e-3, 1e-3, 6e-4, 2e-4, 2e-4, 1e-4])


@pytest.mark.parametrize("final_end", [0.0, None])
def test_cool_down_without_a_final_rate_stays(final_end: float | None) -> None:
    section = replace(scheduler("ConstantWithCoolDownLR", decay_steps=10, lr_end1=2e-4), lr_end2=final_end)
    assert rates(section, 100, 99) == pytest.approx([2e-4])


def test_stable_then_falling() -> None:
    section = scheduler("WarmUpStableDecayLR", decay_start_steps=80, lr_end=0)
    assert rates(section, 100, 10, 79, 80, 90) == pytest.approx([1e-3, 1e-3, 1e-3, 5e-4])


def test_stable_without_warm_up_has_a_rate_at_step_zero() -> None:
    section = scheduler("WarmUpStableDecayLR", decay_start_ratio=0.5, warmup_steps=0)
    assert rates(section, 100, 0) == [1e-3]


def test_annealing_falls_and_rises() -> None:
    section = LrScheduler(type="CosineAnnealingLR", base_lr=1e-3, t_max=10, eta_min=2e-4)
    assert rates(section, 100, 0, 5, 10, 15, 20) == pytest.approx([1e-3, 6e-4, 2e-4, 6e-4, 1e-3])


def test_annealing_restarts_with_growing_periods() -> None:
    # periods 4, 8, 16: step 8 is the middle of the second, steps 4 and 12 start one
    section = LrScheduler(type="CosineAnnealingWarmRestarts", base_lr=1e-3, t_0=4, t_mult=2)
    assert rates(section, 100, 0, 2, 4, 8, 12) == pytest.approx([1e-3, 5e-4, 1e-3, 5e-4, 1e-3])


def test_annealing_restarts_with_equal_periods() -> None:
    section = LrScheduler(type="CosineAnnealingWarmRestarts", base_lr=1e-3, t_0=4)
    assert rates(section, 100, 2, 10, 12) == pytest.approx([5e-4, 5e-4, 1e-3])


@pytest.mark.parametrize(
    ("ratio", "steps", "expected"),
    [(0.0299, 100, 2), (0.29, 100, 28), (0.29000000000000004, 100, 29), (0.0, 9, 0), (1.0, 9, 9)],
)
def test_a_warm_up_ratio_is_truncated(ratio: float, steps: int, expected: int) -> None:
    assert warmup_steps(LrScheduler(type="ConstantWarmUpLR", warmup_ratio=ratio, warmup_steps=50), steps) == expected


@given(
    kind=st.sampled_from(
        ["ConstantWarmUpLR", "LinearWithWarmUpLR", "CosineWithWarmUpLR", "CosineWithRestartsAndWarmUpLR"]
    ),
    steps=st.integers(1, 200),
    ratio=st.floats(0, 1),
    base=st.floats(0, 1),
)
def test_rates_stay_between_zero_and_the_base(kind: str, steps: int, ratio: float, base: float) -> None:
    rate = learning_rate(LrScheduler(type=kind, learning_rate=base, warmup_ratio=ratio), steps)
    assert all(0 <= rate(t) <= base * (1 + 1e-12) for t in range(steps))


@pytest.mark.parametrize(
    ("section", "message"),
    [
        (LrScheduler(type="StepLR"), "is StepLR; it must be one of ConstantWarmUpLR,"),
        (LrScheduler(type="ConstantWarmUpLR"), "is not given; ConstantWarmUpLR needs it or warmup_steps."),
        (scheduler("ConstantWarmUpLR", warmup_ratio=1.5), "is 1.5; it must be from 0 to 1."),
        (scheduler("ConstantWarmUpLR", learning_rate=math.nan), "is nan; it must be finite and at least 0."),
        (scheduler("ConstantWarmUpLR", learning_rate=-1e-3), "is -0.001; it must be finite and at least 0."),
        (scheduler("ConstantWarmUpLR", learning_rate=math.inf), "is inf; it must be finite and at least 0."),
        (scheduler("ConstantWarmUpLR", warmup_lr_init=-1.0), "is -1.0; it must be finite and at least 0."),
        (scheduler("ConstantWithCoolDownLR"), "is not given; ConstantWithCoolDownLR needs it."),
        (scheduler("WarmUpStableDecayLR"), "is not given; WarmUpStableDecayLR needs it or decay_start_ratio."),
        (scheduler("WarmUpStableDecayLR", decay_start_steps=5), "starts the decay at step 5, before the warm-up of 10"),
        (scheduler("PolynomialWithWarmUpLR", lr_end=1e-2), "is 0.001, not above lr_end 0.01"),
        (scheduler("PolynomialWithWarmUpLR", decay_steps=50), "is 50, but step 99 is 89 steps after"),
        (LrScheduler(type="CosineAnnealingLR", t_max=3), "is not given; CosineAnnealingLR needs it."),
        (LrScheduler(type="CosineAnnealingLR", base_lr=1.0, t_max=0), "is 0; it must be finite and at least 1."),
    ],
)  # fmt: skip
def test_parameters_without_a_usable_rate_are_refused(section: LrScheduler, message: str) -> None:
    with pytest.raises(UserError) as caught:
        learning_rate(section, 100)
    assert message in str(caught.value)


def test_cosine_needs_no_warm_up() -> None:
    assert schedule_problems(LrScheduler(type="CosineWithWarmUpLR"), 100) == []


def test_every_type_of_the_config_has_a_function() -> None:
    from msmigrate.pynative import Config, specs_of

    assert set(KINDS) == set(specs_of(Config)["lr_scheduler.type"].key.choices)


def test_every_parameter_is_checked() -> None:
    """A parameter added to the section must be added to the bounds too."""
    from dataclasses import fields

    from msrt.config.schedule import NUMBERS

    assert set(NUMBERS) == {item.name for item in fields(LrScheduler)} - {"type", "total_steps"}
