"""TensorBoard events, read back by TensorBoard itself."""

import math
from dataclasses import replace
from pathlib import Path

import pytest

from msmigrate.pynative.sections import Tensorboard
from msrt.train.events import FILES, TAGS, Events, events
from msrt.train.metrics import StepMetrics

accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")

STEP = StepMetrics(
    step=1, loss=6.5, lr=0.25, grad_norm=1.25, consumed_samples=8, tokens=1024, step_time_ms=12.5, tokens_per_s=81920.0
)


def scalars(folder: Path) -> dict[str, list[tuple[int, float]]]:
    """What TensorBoard shows of a folder: per tag the steps and values."""
    read = accumulator.EventAccumulator(str(folder))
    read.Reload()
    return {tag: [(item.step, item.value) for item in read.Scalars(tag)] for tag in read.Tags()["scalars"]}


def write(folder: Path, steps: range, section: Tensorboard | None = None, loss: float = 6.5) -> None:
    with events(section or Tensorboard(), folder, pytest.fail) as board:
        for step in steps:
            board.write(replace(STEP, step=step, loss=loss))


def test_each_step_is_there_as_soon_as_it_is_written(tmp_path: Path) -> None:
    with events(Tensorboard(), tmp_path, pytest.fail) as board:
        assert list(tmp_path.iterdir()) == []
        for step in (1, 2, 3):
            board.write(replace(STEP, step=step, loss=2.0**-step))
            found = scalars(tmp_path)
            assert found["loss"] == [(n, 2.0**-n) for n in range(1, step + 1)]
    assert {"loss", "learning-rate", "grad-norm", "throughput", "iteration-time"} == set(found)
    assert found["learning-rate"][0] == (1, 0.25)
    assert found["throughput"][-1] == (3, 81920.0)


def test_the_scalars_of_experts_and_of_multi_token_prediction(tmp_path: Path) -> None:
    with events(Tensorboard(), tmp_path, pytest.fail) as board:
        board.write(replace(STEP, load_balancing_loss=1.5, mtp_1_loss=5.5, grad_norm=math.inf))
    found = scalars(tmp_path)
    assert set(found) == set(TAGS)
    assert (found["load-balancing-loss"], found["mtp-loss"]) == ([(1, 1.5)], [(1, 5.5)])
    assert found["grad-norm"] == [(1, math.inf)]


def test_a_new_run_replaces_the_events_of_an_earlier_one_and_a_resumed_one_its_last_steps(tmp_path: Path) -> None:
    write(tmp_path, range(1, 10))
    for path in tmp_path.glob(FILES):
        path.rename(path.with_name(path.name.replace(".out.tfevents.", ".out.tfevents.0")))
    write(tmp_path, range(1, 6), loss=3.0)
    assert scalars(tmp_path)["loss"] == [(step, 3.0) for step in range(1, 6)]
    for path in tmp_path.glob(FILES):  # as if it had been written before: readers take the files by name
        path.rename(path.with_name(path.name.replace(".out.tfevents.", ".out.tfevents.0")))
    write(tmp_path, range(4, 7), loss=2.0)
    assert len(list(tmp_path.glob(FILES))) == 2
    assert scalars(tmp_path)["loss"] == [*((step, 3.0) for step in range(1, 4)), *((n, 2.0) for n in range(4, 7))]


@pytest.mark.parametrize(
    ("names", "steps"),
    [
        (("output_dir", "log_interval"), [2, 4]),
        (("tensorboard_dir", "tensorboard_log_interval"), [2, 4]),
    ],
)
def test_the_keys_of_both_releases(tmp_path: Path, names: tuple[str, str], steps: list[int]) -> None:
    board = tmp_path / "board" / "deep"
    board.mkdir(parents=True)
    (board / "events.out.tfevents.1.other").write_bytes(b"")
    section = replace(Tensorboard(), **{names[0]: str(board), names[1]: 2})  # type: ignore[arg-type]  # two types
    write(tmp_path / "run", range(1, 6), section)
    assert [step for step, _ in scalars(board)["loss"]] == steps
    assert not (tmp_path / "run").exists()
    assert len(list(board.iterdir())) == 2  # what others have written there stays


def test_an_interval_that_2_0_never_read_may_be_anything(tmp_path: Path) -> None:
    write(tmp_path, range(1, 3), Tensorboard(tensorboard_log_interval=0))
    assert [step for step, _ in scalars(tmp_path)["loss"]] == [1, 2]


def test_a_folder_that_cannot_be_written_is_one_note(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    notes: list[str] = []
    board = Events(tmp_path / "file", 1, notes.append, owned=False)
    for step in (1, 2):
        board.write(replace(STEP, step=step))
    board.close()
    assert len(notes) == 1
    assert "at step 1 (File exists); the run goes on without them." in notes[0]
