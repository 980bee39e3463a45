"""The reference folder's cases C27 and C28 through the command: the newest three stay, and resumed is straight."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from msrt.commands import app
from msrt.data import stream
from msrt.data.stream import SampleSource


@pytest.fixture
def cases(shared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of cases; the working folder has the data that their files name."""
    monkeypatch.chdir(tmp_path)
    lines = [json.dumps({"text": " ".join(["x" * (1 + number % 9)] * 40)}) for number in range(900)]
    (tmp_path / "text.jsonl").write_text("\n".join(lines))
    (tmp_path / "data").mkdir()
    run("make-data", "text.jsonl", "-o", "data/demo_text_document", "--append-eod")
    return shared / "cases"


def run(*arguments: str) -> None:
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0, done.output


def metrics(output: str) -> dict[int, dict[str, object]]:
    rows = [json.loads(line) for line in Path(output, "metrics.jsonl").read_text().splitlines()]
    return {row["step"]: {k: v for k, v in row.items() if k not in ("step_time_ms", "tokens_per_s")} for row in rows}


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The samples that runs read, in order where nothing is made ahead."""
    seen: list[int] = []
    real = stream.stack_samples

    def stack_samples(source: SampleSource, indices: object) -> object:
        seen.extend(int(index) for index in indices)  # type: ignore[attr-defined]  # an array
        return real(source, indices)  # type: ignore[arg-type]  # handed on as they come

    monkeypatch.setattr("msrt.data.loader.stack_samples", stack_samples)
    return seen


def test_case_c28_a_resumed_run_equals_the_straight_run(cases: Path, read: list[int]) -> None:
    at_once = ("--set", "train_dataset.prefetch_size=0")
    run("train", str(cases / "C28/straight.yaml"), "--output", "straight", *at_once)
    assert read == list(range(32))
    read.clear()
    run("train", str(cases / "C28/first_half.yaml"), "--output", "halves", *at_once)
    assert read == list(range(16))
    read.clear()
    run("train", str(cases / "C28/second_half.yaml"), "--output", "halves", *at_once)
    assert read == list(range(16, 32))
    straight, halves = metrics("straight"), metrics("halves")
    assert list(halves) == [1, 2, 3, 4, 5, 6, 7, 8]
    assert halves == straight
    assert halves[5]["lr"] == 1e-3
    assert [halves[step]["lr"] for step in (1, 2, 3, 4)] == pytest.approx([0, 2.5e-4, 5e-4, 7.5e-4])


def test_case_c27_the_newest_three_stay(cases: Path) -> None:
    run("train", str(cases / "C27.yaml"))
    kept = sorted(path.name for path in Path("output/checkpoints").iterdir() if path.name.startswith("iteration"))
    assert kept == ["iteration_00000010", "iteration_00000011", "iteration_00000012"]
    assert Path("output/checkpoints/latest_checkpointed_iteration.txt").read_text() == "12\n"
