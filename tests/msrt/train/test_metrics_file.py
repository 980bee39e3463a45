import json
import math
import struct
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msmigrate.problems import Exit, UnreadableError
from msrt.train.metrics import StepMetrics, read_metrics

STEP = StepMetrics(
    step=1, loss=6.5, lr=0.0, grad_norm=1.25, consumed_samples=8, tokens=1024, step_time_ms=12.5, tokens_per_s=81920.0
)


def test_the_names_of_the_contract_and_nothing_else() -> None:
    dense = ["step", "loss", "lr", "grad_norm", "consumed_samples", "tokens", "step_time_ms", "tokens_per_s"]
    assert list(json.loads(STEP.line())) == dense
    moe = replace(STEP, load_balancing_loss=1.0, tokens_per_expert=[[3, 1], [2, 2]])
    assert list(json.loads(moe.line())) == [*dense, "load_balancing_loss", "tokens_per_expert"]
    assert json.loads(moe.line())["tokens_per_expert"] == [[3, 1], [2, 2]]


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_numbers_read_back_to_the_same_bits(value: float) -> None:
    back = json.loads(replace(STEP, loss=value).line())["loss"]
    assert struct.pack("<d", back) == struct.pack("<d", value)


def test_numbers_that_are_not_finite_are_null() -> None:
    line = replace(STEP, loss=math.nan, grad_norm=math.inf).line()
    assert json.loads(line)["loss"] is None
    assert json.loads(line)["grad_norm"] is None


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(UnreadableError, match="missing") as caught:
        read_metrics(tmp_path / "missing")
    assert caught.value.status == Exit.UNREADABLE


@pytest.mark.parametrize("text", ["{", "3", "[1]", "[" * 100_000, "\x00", "{}{}"])
def test_a_broken_line_is_named_unless_it_is_what_a_crash_leaves_at_the_end(tmp_path: Path, text: str) -> None:
    file = tmp_path / "metrics.jsonl"
    for after in ("\n" + STEP.line() + "\n", "\n"):
        file.write_text(STEP.line() + "\n" + text + after)
        with pytest.raises(UnreadableError, match=r"metrics\.jsonl:2:"):
            read_metrics(tmp_path)
    file.write_text(STEP.line() + "\n" + text)
    notes: list[str] = []
    if text in ("3", "[1]"):
        with pytest.raises(UnreadableError, match=r"metrics\.jsonl:2: expected a JSON object, found "):
            read_metrics(tmp_path, notes.append)
        return
    assert [row["step"] for row in read_metrics(tmp_path, notes.append)] == [1]
    assert len(notes) == 1
    assert "metrics.jsonl:2: the last line is damaged" in notes[0]
