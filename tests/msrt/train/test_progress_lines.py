import io
from dataclasses import replace

import pytest
from rich.console import Console

from msrt.train.metrics import StepMetrics
from msrt.train.progress import Pace, duration, progress

STEP = StepMetrics(
    step=1, loss=6.5, lr=1e-3, grad_norm=1.25, consumed_samples=8, tokens=64, step_time_ms=10.0, tokens_per_s=6400.0
)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The seconds that the module sees; append to move on."""
    now = [100.0]
    monkeypatch.setattr("msrt.train.progress.time.monotonic", lambda: now[-1])
    return now


def shown(steps: int, seconds_per_step: float, clock: list[float]) -> list[str]:
    text = io.StringIO()
    with progress(steps, Console(file=text, width=40)) as report:
        for step in range(1, steps + 1):
            report(replace(STEP, step=step))
            clock.append(clock[-1] + seconds_per_step)
    return text.getvalue().splitlines()


def test_slow_steps_have_a_line_each(clock: list[float]) -> None:
    assert shown(3, 5.0, clock) == [
        "step 1/3  loss 6.5000  lr 1.000e-03  grad norm 1.250  6,400 tokens/s",
        "step 2/3  loss 6.5000  lr 1.000e-03  grad norm 1.250  6,400 tokens/s  ETA 0:05",
        "step 3/3  loss 6.5000  lr 1.000e-03  grad norm 1.250  6,400 tokens/s  ETA 0:00",
    ]


def test_fast_steps_share_lines_but_the_last_one_shows(clock: list[float]) -> None:
    assert [line.split()[1] for line in shown(10, 0.5, clock)] == ["1/10", "5/10", "9/10", "10/10"]


def test_the_time_left_leaves_the_first_step_out(clock: list[float]) -> None:
    pace = Pace(11)
    assert "ETA" not in pace.describe(STEP)
    clock.append(clock[0] + 4.0)
    assert pace.describe(replace(STEP, step=3)).endswith("ETA 0:16")


def test_a_terminal_has_a_bar() -> None:
    text = io.StringIO()
    with progress(2, Console(file=text, width=120, force_terminal=True)) as report:
        report(STEP)
        report(replace(STEP, step=2))
    assert "step 2/2" in text.getvalue()
    assert "loss 6.5000" in text.getvalue()


@pytest.mark.parametrize(("seconds", "text"), [(0.4, "0:00"), (61, "1:01"), (3599.6, "1:00:00"), (7325, "2:02:05")])
def test_durations(seconds: float, text: str) -> None:
    assert duration(seconds) == text
