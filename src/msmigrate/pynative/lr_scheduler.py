"""The `lr_scheduler:` section of a pynative.yaml (manual section 4), and which schedule reads which of its keys.

`types` and `needed_by` are the arguments of MindFormers' schedule classes, the same in 2.0 and 2.1.
"""

from dataclasses import dataclass
from typing import ClassVar

from msmigrate.pynative.keys import Use, key

WARMING_UP = (
    "ConstantWarmUpLR",
    "LinearWithWarmUpLR",
    "CosineWithWarmUpLR",
    "CosineWithRestartsAndWarmUpLR",
    "PolynomialWithWarmUpLR",
    "ConstantWithCoolDownLR",
    "WarmUpStableDecayLR",
)
"""Schedules with a warm-up."""
ANNEALING = ("CosineAnnealingLR", "CosineAnnealingWarmRestarts")
"""Schedules that start at base_lr without one."""


@dataclass(frozen=True, slots=True)
class LrScheduler:
    """The learning rate (manual section 4). Open: further keys go to the scheduler class."""

    OPEN: ClassVar[bool] = True

    type: str | None = key(
        None,
        "Shape of the schedule.",
        manual="4.1",
        required=True,
        choices=(*WARMING_UP, *ANNEALING),
    )
    learning_rate: float = key(1e-5, "Rate after warm-up.", manual="4.1", minimum=0, types=WARMING_UP)
    warmup_ratio: float | None = key(
        None,
        "Part of training.steps that warms up; int(steps * ratio) steps.",
        manual="4.1",
        minimum=0,
        maximum=1,
        types=WARMING_UP,
    )
    warmup_steps: int | None = key(
        None, "Warm-up steps; warmup_ratio wins when both are given.", minimum=0, types=WARMING_UP
    )
    warmup_lr_init: float = key(0.0, "Rate of step 0 of the warm-up.", minimum=0, types=WARMING_UP)
    lr_end: float | None = key(
        None,
        "Rate at the end of a decaying schedule.",
        minimum=0,
        types=("CosineWithWarmUpLR", "CosineWithRestartsAndWarmUpLR", "PolynomialWithWarmUpLR", "WarmUpStableDecayLR"),
    )
    total_steps: int | None = key(None, "Overwritten with training.steps.", use=Use.NO_EFFECT)
    num_cycles: float | None = key(
        None,
        "Cycles of a cosine schedule.",
        minimum=0,
        types=("CosineWithWarmUpLR", "CosineWithRestartsAndWarmUpLR", "ConstantWithCoolDownLR"),
    )
    power: float | None = key(None, "Power of a polynomial schedule.", minimum=0, types=("PolynomialWithWarmUpLR",))
    decay_steps: int | None = key(
        None,
        "Steps of the decay.",
        minimum=0,
        types=(
            "CosineWithWarmUpLR",
            "CosineWithRestartsAndWarmUpLR",
            "PolynomialWithWarmUpLR",
            "ConstantWithCoolDownLR",
        ),
    )
    decay_ratio: float | None = key(
        None,
        "Part of the steps that decays.",
        minimum=0,
        maximum=1,
        types=("CosineWithWarmUpLR", "ConstantWithCoolDownLR"),
    )
    decay_start_steps: int | None = key(
        None, "Step at which the stable part ends.", minimum=0, types=("WarmUpStableDecayLR",)
    )
    decay_start_ratio: float | None = key(
        None, "Part of the steps before the decay.", minimum=0, maximum=1, types=("WarmUpStableDecayLR",)
    )
    keep_steps: int | None = key(
        None, "Constant steps before the cool-down.", minimum=0, types=("ConstantWithCoolDownLR",)
    )
    lr_end1: float | None = key(None, "Rate after the cool-down.", minimum=0, types=("ConstantWithCoolDownLR",))
    final_steps: int | None = key(None, "Steps at lr_end1.", minimum=0, types=("ConstantWithCoolDownLR",))
    lr_end2: float | None = key(None, "Rate after final_steps.", minimum=0, types=("ConstantWithCoolDownLR",))
    base_lr: float | None = key(
        None, "Rate of the CosineAnnealing types.", minimum=0, types=ANNEALING, needed_by=ANNEALING
    )
    t_max: int | None = key(
        None,
        "Half period of CosineAnnealingLR.",
        minimum=1,
        types=("CosineAnnealingLR",),
        needed_by=("CosineAnnealingLR",),
    )
    t_0: int | None = key(
        None,
        "First period of CosineAnnealingWarmRestarts.",
        minimum=1,
        types=("CosineAnnealingWarmRestarts",),
        needed_by=("CosineAnnealingWarmRestarts",),
    )
    t_mult: int | None = key(None, "Growth of the periods.", minimum=1, types=("CosineAnnealingWarmRestarts",))
    eta_min: float | None = key(None, "Lowest rate of the CosineAnnealing types.", minimum=0, types=ANNEALING)
