"""When the files of a run appear, and what a full disk leaves. RLIMIT_FSIZE plays the full disk."""

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from msmigrate.problems import Exit, UnreadableError
from msrt.train.metrics import StepMetrics, read_metrics
from msrt.train.run_files import RunFiles

STEP = StepMetrics(
    step=1, loss=6.5, lr=0.0, grad_norm=1.25, consumed_samples=8, tokens=1024, step_time_ms=12.5, tokens_per_s=81920.0
)
OLD = {"metrics.jsonl": b"{}\n", "run.json": b"{}", "loss.png": b"png"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the files of an earlier run."""
    for name, data in OLD.items():
        (tmp_path / name).write_bytes(data)
    return tmp_path


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@contextmanager
def files_of_at_most(size: int) -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_the_first_step_replaces_the_files_of_an_earlier_run(folder: Path) -> None:
    with RunFiles(folder, b"new") as files:
        assert contents(folder) == OLD
        files.write(STEP)
        assert contents(folder) == {"metrics.jsonl": (STEP.line() + "\n").encode(), "run.json": b"new"}


def test_each_line_can_be_read_as_soon_as_it_is_written(folder: Path) -> None:
    with RunFiles(folder, b"{}") as files:
        for step in (1, 2, 3):
            files.write(replace(STEP, step=step))
            assert [row["step"] for row in read_metrics(folder)] == list(range(1, step + 1))


def test_a_full_disk_cuts_the_torn_line_off(folder: Path) -> None:
    line = len(STEP.line()) + 1
    with RunFiles(folder, b"{}") as files, files_of_at_most(2 * line + line // 2):
        for step in (1, 2):
            files.write(replace(STEP, step=step))
        with pytest.raises(UnreadableError, match=r"metrics\.jsonl cannot take step 3: .*ends with step 2\.") as caught:
            files.write(replace(STEP, step=3))
    assert caught.value.status == Exit.UNREADABLE
    assert [row["step"] for row in read_metrics(folder)] == [1, 2]
    assert (folder / "metrics.jsonl").read_bytes().endswith(b"}\n")


@pytest.mark.parametrize(("size", "named"), [(10, "metrics.jsonl cannot take step 1"), (1000, "run.json")])
def test_a_full_disk_at_the_first_step_leaves_the_earlier_run(folder: Path, size: int, named: str) -> None:
    with RunFiles(folder, b"x" * 2000) as files, files_of_at_most(size), pytest.raises(UnreadableError, match=named):
        files.write(STEP)
    assert contents(folder) == OLD
