"""Rates against MindFormers' own classes (runtime-goldens.json) and against transformers' schedulers."""

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from msmigrate.problems import UserError
from msmigrate.pynative.sections import LrScheduler
from msrt.config.schedule import learning_rate

FLOAT32 = 1e-6
"""Relative difference that float32 arithmetic leaves."""

OURS_IS_FINITE = ("wsd_nowarm", 0)
"""MindFormers divides 0 by 0 at this step; ours is the base rate."""


def test_mindformers_rates(shared: Path) -> None:
    cases = json.loads((shared / "reference" / "runtime-goldens.json").read_text())["lr"]
    rates = {name: case for name, case in cases.items() if "error" not in case}
    assert len(rates) == 15
    for name, case in rates.items():
        arguments = dict(case["args"])
        rate = learning_rate(LrScheduler(type=case["type"], **arguments), arguments.get("total_steps", 100))
        for step, expected in zip(case["steps"], case["lr"], strict=True):
            if (name, step) == OURS_IS_FINITE:
                assert math.isnan(float(expected))
                assert rate(step) == arguments["learning_rate"]
            else:
                assert rate(step) == pytest.approx(expected, rel=FLOAT32, abs=1e-10), (name, step)


def test_what_mindformers_refuses_is_refused(shared: Path) -> None:
    cases = json.loads((shared / "reference" / "runtime-goldens.json").read_text())["lr"]
    refused = {name: case for name, case in cases.items() if "error" in case}
    assert set(refused) == {"constant_none", "ratio_bad"}
    for case in refused.values():
        with pytest.raises(UserError):
            learning_rate(LrScheduler(type=case["type"], **case["args"]), 100)


TRANSFORMERS = {
    "constant": LrScheduler(type="ConstantWarmUpLR"),
    "linear": LrScheduler(type="LinearWithWarmUpLR"),
    "cosine": LrScheduler(type="CosineWithWarmUpLR"),
    "cosine_cycles2": LrScheduler(type="CosineWithWarmUpLR", num_cycles=1.5),
    "cosine_restarts3": LrScheduler(type="CosineWithRestartsAndWarmUpLR", num_cycles=3),
    "polynomial_p2": LrScheduler(type="PolynomialWithWarmUpLR", lr_end=1e-5, power=2),
    "wsd_linear": LrScheduler(type="WarmUpStableDecayLR", lr_end=1e-4, decay_start_steps=80),
}


@pytest.mark.parametrize("name", TRANSFORMERS)
@pytest.mark.parametrize("warmup", [0, 10])
def test_transformers_rates(shared: Path, name: str, warmup: int) -> None:
    expected = np.load(shared / "golden" / "lr_schedules" / "golden.npz")[f"{name}_w{warmup}"]
    rate = learning_rate(replace(TRANSFORMERS[name], learning_rate=1e-3, warmup_steps=warmup), 100)
    # transformers' warm-up of this type starts above 0, and its curves go their own way after the last step.
    first = warmup if name == "wsd_linear" else 0
    ours = [rate(step) for step in range(first, 100)]
    np.testing.assert_allclose(ours, expected[first:100], rtol=FLOAT32, atol=1e-12)
