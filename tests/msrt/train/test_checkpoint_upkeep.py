"""Which checkpoints stay, what a killed or stopped run leaves, and what is refused."""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tiny_run import arguments, invoke, metrics, prepare, saved_steps, tensor_digests, train

from msmigrate.problems import UnreadableError
from msrt.checkpoint.read import open_checkpoint
from msrt.checkpoint.write import write_checkpoint
from msrt.train import saving
from msrt.train.folder import claimed
from msrt.train.stopping import Stop, StoppedError, stop_asked

ROOT = Path(__file__).parents[3]
OPTIMIZER_FILE = "checkpoint-opt-0000000-0000001.safetensors"

KILLED_WHILE_SAVING_STEP_4 = """\
import os, signal, sys
from msrt.checkpoint import write
real = write.write_whole
def write_whole(path, data):
    if path.endswith("metadata.json") and "iteration_00000004" in path:
        os.kill(os.getpid(), signal.SIGKILL)
    real(path, data)
write.write_whole = write_whole
from msrt.commands import app
app(sys.argv[1:])
"""


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    prepare(tmp_path)


def start(*command: str) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    return subprocess.Popen([sys.executable, *command], env=environment, stderr=subprocess.PIPE, text=True)


def test_the_newest_of_this_run_stay_by_number_and_nothing_else_is_touched() -> None:
    train("other", "training.steps=1")
    shutil.move("saved/iteration_00000001", "saved/iteration_00000099")
    Path("saved/notes.txt").write_text("mine")
    Path("saved/iteration_0").mkdir()
    settings = ("training.steps=12", "checkpoint.save_interleaved_steps=1", "checkpoint.save_max=3")
    result = train("run", *settings)
    assert saved_steps("saved") == [10, 11, 12, 99]
    assert Path("saved/notes.txt").read_text() == "mine"
    assert Path("saved/iteration_0").is_dir()
    assert Path("saved/latest_checkpointed_iteration.txt").read_text() == "12\n"
    assert "saved has checkpoints of another run, of steps 99." in result.stderr
    # Taken back to step 10: what it writes now stays, what it had done before goes first.
    train("run", *settings[1:], "training.steps=11", resume="saved/iteration_00000010")
    assert saved_steps("saved") == [10, 11, 12, 99]
    assert Path("saved/latest_checkpointed_iteration.txt").read_text() == "11\n"


def test_the_end_is_saved_once_and_saving_can_be_off() -> None:
    train("run", "training.steps=3")
    assert saved_steps("saved") == [2, 3]
    train("off", "checkpoint.enable_save=false", "checkpoint.save_path=none")
    assert not Path("none").exists()
    result = train("inside", "training.steps=1", "checkpoint.save_path=''")
    assert saved_steps("inside/checkpoints") == [1]
    assert "checkpoint.save_path is empty" in result.stderr


def test_a_kill_in_the_middle_of_a_save_leaves_the_checkpoint_before() -> None:
    train("straight", "checkpoint.save_path=whole")
    process = start("-c", KILLED_WHILE_SAVING_STEP_4, *arguments("run"))
    process.communicate(timeout=120)
    assert process.returncode == -signal.SIGKILL
    assert saved_steps("saved") == [2]
    assert len(list(Path("saved").glob(".iteration_00000004.*.tmp"))) == 1
    open_checkpoint(Path("saved"))
    train("run", resume="auto")
    assert metrics("run") == metrics("straight")
    assert tensor_digests("saved", 6) == tensor_digests("whole", 6)
    assert not list(Path("saved").glob(".iteration_*"))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_run_after_a_step_that_is_saved(number: signal.Signals) -> None:
    settings = ("training.steps=100000", "checkpoint.save_interleaved_steps=100000", "checkpoint.async_save=true")
    process = start("-m", "msrt", *arguments("run", *settings))
    lines = Path("run/metrics.jsonl")
    while process.poll() is None and not (lines.is_file() and lines.read_text().count("\n") >= 2):
        time.sleep(0.05)
    process.send_signal(number)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 128 + number, errors
    told = re.search(r"Interrupted after step (\d+) of 100000; .* A checkpoint of step (\d+) is in saved; ", errors)
    assert told is not None, errors
    assert told[1] == told[2]
    assert list(metrics("run")) == list(range(1, int(told[1]) + 1))
    assert saved_steps("saved") == [int(told[1])]
    result = train("run", f"training.steps={int(told[1]) + 1}", resume="auto")
    assert f"the next step is {int(told[1]) + 1}" in result.stderr


def test_the_second_signal_stops_at_once_and_handlers_come_back() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with stop_asked() as stop:
        signal.raise_signal(signal.SIGTERM)
        assert stop == Stop(signal.SIGTERM)
        with pytest.raises(StoppedError) as caught:
            signal.raise_signal(signal.SIGINT)
    assert caught.value.status == 130
    assert signal.getsignal(signal.SIGTERM) == before


def test_an_error_in_the_background_fails_the_run_and_spares_the_checkpoint_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    real = write_checkpoint

    def full_at_step_4(root: Path, step: int, *rest: object, **options: object) -> Path:
        if step == 4:
            raise UnreadableError("saved/iteration_00000004 cannot be written: No space left on device.")
        return real(root, step, *rest, **options)  # type: ignore[arg-type]  # handed on as they come

    monkeypatch.setattr(saving, "write_checkpoint", full_at_step_4)
    for asynchronous in ("true", "false"):
        result = train("run", f"checkpoint.async_save={asynchronous}", status=3)
        assert "No space left on device" in result.stderr
        assert saved_steps("saved") == [2]
        open_checkpoint(Path("saved"))


@pytest.mark.parametrize(
    ("settings", "status", "message"),
    [
        (("checkpoint.load_path=missing",), 3, "missing is no checkpoint"),
        (("checkpoint.load_path=missing", "checkpoint.no_load_optim=true"), 3, "missing is neither a checkpoint"),
        (("checkpoint.save_path=text.txt",), 3, "checkpoint.save_path text.txt is a file; a folder is needed there."),
        (("checkpoint.save_path=/proc/self/inside",), 3, "checkpoint.save_path /proc/self/inside cannot be made"),
        (("checkpoint.prefix=a/b",), 1, "checkpoint.prefix: is 'a/b'"),
    ],
)
def test_what_is_refused_before_the_first_step(settings: tuple[str, ...], status: int, message: str) -> None:
    assert message in train("run", *settings, status=status).stderr
    assert not Path("run/metrics.jsonl").exists()


def test_two_runs_do_not_save_into_one_folder() -> None:
    with claimed(Path("saved"), print, saving.OPTION, saving.LOCK):
        refused = train("run", status=1).stderr
    assert (
        "Another run is writing into saved; wait for its end, or give this one another checkpoint.save_path" in refused
    )
    train("run", "checkpoint.save_path=run", "training.steps=1")  # beside the run's own files and lock
    assert saved_steps("run") == [1]


def test_a_full_disk_and_foreign_folders_are_found_before_the_first_step(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("saved/iteration_00000004").mkdir(parents=True)
    Path("saved/iteration_00000004/mine").write_text("mine")
    assert "saved has iteration_00000004, which this run would write" in train("run", status=3).stderr
    assert Path("saved/iteration_00000004/mine").read_text() == "mine"
    usage = shutil.disk_usage(".")._replace(free=1000)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage)
    result = train("run", "checkpoint.save_path=other", status=3)
    assert "other has 0.00 GiB free; one checkpoint takes" in result.stderr
    assert not Path("run/metrics.jsonl").exists()


def test_a_checkpoint_that_this_run_cannot_go_on_from_is_refused_with_both_values() -> None:
    train("run", "training.steps=2")
    asked: dict[str, str] = {
        "training.seed=9": "training.seed is 9, the checkpoint was written with 1.",
        "train_dataset.dataloader.config.seq_length=4": "seq_length is 4, the checkpoint was written with 8.",
        "optimizer.type=Muon": "optimizer.type is Muon, the checkpoint was written with AdamW.",
        "model.hidden_size=32": "of a wrong shape: ",
        "model.n_shared_experts=0": "tensors are unexpected: ",
    }
    for setting, message in asked.items():
        assert message in train("other", setting, "checkpoint.enable_save=false", resume="saved", status=1).stderr
    Path("saved/iteration_00000002/metadata.json").write_text("{}")
    assert "none of them is whole" in train("other", resume="auto", status=3).stderr


def test_without_optimizer_state_training_cannot_go_on() -> None:
    result = train("run", "training.steps=2", "checkpoint.no_save_optim=true")
    assert "training cannot go on from them" in result.stderr
    assert not Path("saved/iteration_00000002", OPTIMIZER_FILE).exists()
    refused = train("other", "checkpoint.load_path=saved", status=1).stderr
    assert "holds no optimizer state" in refused
    assert "checkpoint.no_load_optim true" in refused


def test_a_checkpoint_of_training_goes_to_hugging_face_and_back() -> None:
    settings = ("model.params_dtype=bfloat16", "model.compute_dtype=bfloat16")
    train("run", "training.steps=2", *settings)
    exported = invoke("export", "saved", "-o", "hf")
    assert exported.exit_code == 0, exported.stderr
    only_weights = ("checkpoint.no_load_optim=true", "checkpoint.enable_save=false")
    train("from_hf", *settings, "checkpoint.load_path=hf", *only_weights)
    train("from_checkpoint", *settings, "checkpoint.load_path=saved", *only_weights)
    assert metrics("from_hf") == metrics("from_checkpoint")
    refused = train("other", "checkpoint.load_path=hf", status=1).stderr
    assert (
        "hf is a Hugging Face folder, which holds no optimizer state. Set checkpoint.no_load_optim to true" in refused
    )
