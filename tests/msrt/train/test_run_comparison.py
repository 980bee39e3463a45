"""`msrt compare`: two runs held against each other."""

import json
import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner, Result

from msmigrate.problems import UnreadableError
from msrt.commands import app
from msrt.train.compare import Comparison, compare_runs, ranges
from msrt.train.compare_report import comparison_json, comparison_text

ROOT = Path(__file__).parents[3]


def row(step: int, loss: float | None, **more: object) -> dict[str, object]:
    return {"step": step, "loss": loss, "lr": 1e-3, "grad_norm": 1.0, **more}


def write(path: Path, rows: list[dict[str, object]], tail: str = "") -> Path:
    path.mkdir(exist_ok=True)
    (path / "metrics.jsonl").write_text("".join(json.dumps(item) + "\n" for item in rows) + tail)
    return path


def compare(tmp_path: Path, left: list[Any], right: list[Any], tolerance: float = 0.0) -> Comparison:
    return compare_runs(write(tmp_path / "a", left), write(tmp_path / "b", right), tolerance, pytest.fail)


def invoke(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["compare", *arguments])


def test_the_largest_the_first_and_the_final_difference(tmp_path: Path) -> None:
    left = [row(1, 4.0), row(2, 4.0), row(3, 2.0), row(4, 1.0)]
    right = [row(1, 4.0), row(2, 4.0 * 1.001), row(3, 2.0 * 1.01), row(4, 1.0)]
    found = compare(tmp_path, left, right, tolerance=1e-4)
    loss = found.values[0]
    assert [value.name for value in found.values] == ["loss", "grad_norm", "lr"]
    assert loss.largest.step == 3
    assert loss.largest.relative == pytest.approx(0.01 / 1.01)
    assert (loss.final.step, loss.final.relative) == (4, 0.0)
    first = loss.first_over(1e-4)
    assert first is not None
    assert first.step == 2
    assert [one.step for one in loss.worst(5)] == [3, 2]
    assert not found.same
    assert compare(tmp_path, left, right, tolerance=0.0099010).same
    assert not compare(tmp_path, left, right, tolerance=0.0099009).same


@pytest.mark.parametrize("name", ["loss", "grad_norm", "lr"])
def test_each_of_the_three_is_judged(tmp_path: Path, name: str) -> None:
    found = compare(tmp_path, [row(1, 4.0)], [{**row(1, 4.0), name: 5.0}])
    assert not found.same
    assert f"{name} first differs at step 1;" in comparison_text(found)


@given(st.floats(allow_nan=False, allow_infinity=False), st.floats(allow_nan=False, allow_infinity=False))
def test_a_difference_is_the_same_from_both_sides_and_0_only_for_equal_numbers(
    tmp_path_factory: pytest.TempPathFactory, left: float, right: float
) -> None:
    folder = tmp_path_factory.mktemp("runs")
    one, two = compare(folder, [row(1, left)], [row(1, right)]), compare(folder, [row(1, right)], [row(1, left)])
    relative = one.values[0].final.relative
    assert relative == two.values[0].final.relative
    assert 0 <= relative <= 2
    assert (relative == 0) == (left == right)


def test_numbers_that_are_not_finite_are_equal_to_each_other_alone(tmp_path: Path) -> None:
    assert compare(tmp_path, [row(1, None), row(2, 1.0)], [row(1, math.nan), row(2, 1.0)]).same
    found = compare(tmp_path, [row(1, None), row(2, 1.0)], [row(1, 3.0), row(2, 1.0)], tolerance=1e300)
    assert found.values[0].largest.relative == math.inf
    assert not found.same
    assert comparison_text(found).endswith("is a number against one that is not finite, of loss at step 1.")
    loss = json.loads(comparison_json(found))["values"]["loss"]
    assert loss["largest"] == {"step": 1, "left": None, "right": 3.0, "relative": None}


def test_experts_are_compared_and_not_judged(tmp_path: Path) -> None:
    left, right = [[10, 20, 30]], [[12, 20, 28]]
    found = compare(tmp_path, [row(1, 1.0, tokens_per_expert=left)], [row(1, 1.0, tokens_per_expert=right)])
    assert found.values[-1].largest.relative == pytest.approx(2 / 60)
    assert found.same
    assert "step 1 (not judged)" in comparison_text(found)


@pytest.mark.parametrize("other", [[[1, 2, 3]], [[1], [2]], None, "x", [[math.inf, 1]], [3]])
def test_counts_that_cannot_be_compared_differ_infinitely(tmp_path: Path, other: object) -> None:
    found = compare(tmp_path, [row(1, 1.0, tokens_per_expert=[[1, 2]])], [row(1, 1.0, tokens_per_expert=other)])
    # [[1], [2]] has the same counts in two layers: only their number is compared
    assert found.values[-1].largest.relative == (0.0 if other == [[1], [2]] else math.inf)


def test_what_only_one_run_has_is_left_out_or_named(tmp_path: Path) -> None:
    left = [row(step, 1.0, tokens_per_expert=[[1]]) for step in range(1, 8)]
    right = [{"step": step, "loss": 1.0} for step in (2, 3, 5)]
    found = compare(tmp_path, left, right)
    assert [value.name for value in found.values] == ["loss"]
    assert not found.same
    assert (found.only_left, found.only_right) == ((1, 4, 6, 7), ())
    text = comparison_text(found)
    assert "only left has 4 steps: 1, 4, 6-7\n" in text
    assert text.endswith("bit: 4 steps in one run only (--common-steps compares the 3 that both have).")
    common = compare_runs(tmp_path / "a", tmp_path / "b", 0.0, pytest.fail, common_only=True)
    assert common.same
    assert comparison_text(common).endswith("Same to the last bit over 3 steps: loss.")


def test_two_dead_runs_are_never_the_same(tmp_path: Path) -> None:
    found = compare(tmp_path, [row(1, None), row(2, math.inf)], [row(1, math.nan), row(2, None)])
    assert not found.same
    assert comparison_text(found).endswith("no loss of either run is finite, and two dead runs are not proof.")
    assert json.loads(comparison_json(found))["any_finite"] is False


def test_ranges_of_steps() -> None:
    assert ranges([]) == ""
    assert ranges([3]) == "3"
    assert ranges([1, 2, 3, 7, 9, 10]) == "1-3, 7, 9-10"


def test_a_long_run_is_a_short_text(tmp_path: Path) -> None:
    left = [row(step, 1.0) for step in range(1, 2001)]
    text = comparison_text(compare(tmp_path, left, [{**item, "loss": 1.5} for item in left]))
    assert len(text.splitlines()) < 20
    assert "loss first differs at step 1; the largest difference is 0.333, of loss at step 1." in text


def test_a_crashed_run_and_a_repeated_step_are_worth_a_note(tmp_path: Path) -> None:
    left = write(tmp_path / "a", [row(1, 1.0), row(2, 1.0)], tail='{"step": 3, "lo')
    right = write(tmp_path / "b", [row(1, 1.0), row(2, 9.0), row(2, 1.0)])
    notes: list[str] = []
    assert compare_runs(left, right, 0.0, notes.append).same
    assert len(notes) == 2
    assert "a/metrics.jsonl:3: the last line is damaged" in notes[0]
    assert "has step 2 twice; the later one counts" in notes[1]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([], "has no step."),
        ([{"loss": 1.0}], "a row's step is missing; expected a whole number"),
        ([{"step": True, "loss": 1.0}], "a row's step is true"),
        ([row(1, 1.0, lr="x")], "lr of step 1 is 'x'; expected a number or null"),
        ([row(1, 1.0, grad_norm=10**400)], "grad_norm of step 1 is 1000"),
        ([row(7, 1.0)], "(steps 7) have no step with a loss in common"),
        ([{"step": 1}], "have no step with a loss in common"),
    ],
)
def test_what_cannot_be_compared_is_named(tmp_path: Path, rows: list[dict[str, object]], message: str) -> None:
    with pytest.raises(UnreadableError) as caught:
        compare(tmp_path, [row(1, 1.0)], rows)
    assert message in str(caught.value)


def test_the_json_has_every_step(tmp_path: Path) -> None:
    left = [row(step, 1.0) for step in range(1, 51)]
    found = json.loads(comparison_json(compare(tmp_path, left, left[:49])))
    assert found["version"] == 1
    assert found["same"] is False
    assert (found["common_steps"], found["only_left"], found["only_right"]) == (49, [50], [])
    assert [one["step"] for one in found["values"]["loss"]["differences"]] == list(range(1, 50))
    assert found["values"]["lr"]["first_over"] is None


def test_statuses_and_streams(tmp_path: Path) -> None:
    left, right = str(write(tmp_path / "a", [row(1, 1.0)])), str(write(tmp_path / "b", [row(1, 1.001)]))
    assert invoke(left, f"{left}/metrics.jsonl").exit_code == 0
    differing = invoke(left, right)
    assert differing.exit_code == 1
    assert "Not the same to the last bit" in differing.stdout
    assert invoke(left, right, "--tolerance", "1e-2").exit_code == 0
    assert json.loads(invoke(left, right, "--json").stdout)["same"] is False
    longer = str(write(tmp_path / "c", [row(1, 1.0), row(2, 1.0)]))
    assert invoke(left, longer).exit_code == invoke(longer, left).exit_code == 1
    assert invoke(left, longer, "--common-steps").exit_code == 0
    missing = invoke(left, str(tmp_path / "missing"))
    assert missing.exit_code == 3
    assert missing.stdout == ""
    for wrong in ("-1", "inf", "nan", "x"):
        assert invoke(left, right, "--tolerance", wrong).exit_code == 2


def test_no_numpy_is_needed(tmp_path: Path) -> None:
    run = str(write(tmp_path / "a", [row(1, 1.0)]))
    script = (
        "import sys; sys.modules['numpy'] = sys.modules['mindspore'] = None\n"
        "from msrt.commands import app; app(['compare', *sys.argv[1:]])"
    )
    subprocess.run(
        [sys.executable, "-c", script, run, run], env={**os.environ, "PYTHONPATH": str(ROOT / "src")}, check=True
    )
