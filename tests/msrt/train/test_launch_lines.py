"""The manual's launch lines (section 11), parsed literally. A stand-in for `python` prints what it was started with."""

import os
import re
import shlex
import subprocess
import sys
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from msmigrate.options import ExpertMesh
from msrt.commands import app
from msrt.config.checked import check_config

ROOT = Path(__file__).parents[3]
COMMAND = "run_mindformer.py --mode 1 --config guide/pynative.yaml"


@pytest.fixture
def stand_in(tmp_path: Path) -> Path:
    """A folder to run in; `python` there is the script given to `write_python`."""
    write_python(tmp_path, 'echo "started: $*"')
    return tmp_path


def write_python(folder: Path, body: str) -> None:
    (folder / "bin").mkdir(exist_ok=True)
    (folder / "bin" / "python").write_text(f"#!/bin/sh\n{body}\n")
    (folder / "bin" / "python").chmod(0o755)


def launch(folder: Path, arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", str(ROOT / "scripts" / "msrun_launcher.sh"), *shlex.split(arguments)],
        cwd=folder,
        env={**os.environ, "PATH": f"{folder / 'bin'}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )


def entry(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(ROOT / "run_mindformer.py"), *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_one_rank_runs_in_the_foreground_with_its_status(stand_in: Path) -> None:
    result = launch(stand_in, f'"{COMMAND}" 1')
    assert result.stdout == f"started: {COMMAND}\n"
    write_python(stand_in, "exit 3")
    assert launch(stand_in, f'"{COMMAND}" 1').returncode == 3


@pytest.mark.parametrize(
    "arguments",
    [
        f'"{COMMAND}" 8',
        f'"{COMMAND}" 4',
        f'"{COMMAND}" 8 8118 "output/msrun_log" "False" 7200',
        f'"{COMMAND}" 16 8 "192.168.1.1" 8118 0 "output/msrun_log" "False" 7200',
    ],
)
def test_the_manuals_lines_for_several_ranks_are_understood_and_refused_for_now(stand_in: Path, arguments: str) -> None:
    result = launch(stand_in, arguments)
    workers = shlex.split(arguments)[1]
    assert result.returncode == 1
    assert result.stderr == f"WORKER_NUM is {workers}; training on several ranks is not there yet. Start it with 1.\n"
    assert result.stdout == ""


def test_join_false_returns_when_the_run_trains_and_leaves_it_running(stand_in: Path) -> None:
    write_python(stand_in, 'echo "note: Training 3 steps" >&2; sleep 2; echo "done: $*"')
    started = time.monotonic()
    result = launch(stand_in, f'"{COMMAND}" 1 8118 "logs" "False" 7200')
    assert result.returncode == 0
    assert time.monotonic() - started < 2
    log = stand_in / "logs" / "worker_0.log"
    assert "done" not in log.read_text()
    time.sleep(2.5)
    assert log.read_text().endswith(f"done: {COMMAND}\n")


def test_join_false_reports_a_run_that_fails_before_it_trains(stand_in: Path) -> None:
    write_python(stand_in, 'echo "no such file" >&2; exit 3')
    result = launch(stand_in, f'"{COMMAND}" 1 8118 "logs" "False" 7200')
    assert result.returncode == 3
    assert "no such file" in result.stderr


def test_join_false_stops_waiting_after_the_time_out(stand_in: Path) -> None:
    write_python(stand_in, "sleep 4")
    result = launch(stand_in, f'"{COMMAND}" 1 8118 "logs" "False" 1')
    assert result.returncode == 1
    assert "not training after 1 seconds" in result.stderr


def test_join_true_with_the_long_form_waits(stand_in: Path) -> None:
    result = launch(stand_in, f'"{COMMAND}" 1 8118 "logs" "True" 7200')
    assert result.stdout == f"started: {COMMAND}\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("", "takes 2, 6 or 9 arguments; it got 0."),
        (f'"{COMMAND}" 1 8118', "takes 2, 6 or 9 arguments; it got 3."),
        (f'"{COMMAND}" eight', "WORKER_NUM is 'eight'; it must be a number."),
        (f'"{COMMAND}" 1 port logs False 7200', "MASTER_PORT is 'port'; it must be a number."),
        (f'"{COMMAND}" 1 8118 logs false 7200', "JOIN is 'false'; it must be True or False."),
        ('"" 1', "COMMAND is empty; it must be what follows `python`"),
        ('"  " 1', "COMMAND is empty; it must be what follows `python`"),
        (f'"{COMMAND}" 0', "WORKER_NUM is 0; it must be from 1 to 999999999."),
        (f'"{COMMAND}" 99999999999999999999', "WORKER_NUM is 99999999999999999999; it must be from 1 to"),
        (f'"{COMMAND}" 1 65536 logs False 7200', "MASTER_PORT is 65536; it must be from 1 to 65535."),
        (f'"{COMMAND}" 1 8118 logs False 0', "CLUSTER_TIME_OUT is 0; it must be from 1 to"),
        (f'"{COMMAND}" 1 2 host 8118 0 logs False 9', "LOCAL_WORKER is 2; it must be from 1 to 1."),
        (f'"{COMMAND}" 16 8 host 8118 2 logs False 9', "NODE_RANK is 2; it must be from 0 to 1."),
    ],
)
def test_wrong_use_has_status_2_and_shows_the_forms(stand_in: Path, arguments: str, message: str) -> None:
    result = launch(stand_in, arguments)
    assert result.returncode == 2
    assert message in result.stderr
    assert "WORKER_NUM MASTER_PORT LOG_DIR JOIN CLUSTER_TIME_OUT" in result.stderr


def test_brackets_in_the_command_are_no_file_pattern(stand_in: Path) -> None:
    (stand_in / "sizes=4").touch()
    assert launch(stand_in, '"train.py --set sizes=[4,0,0]" 1').stdout == "started: train.py --set sizes=[4,0,0]\n"


def test_a_log_folder_that_cannot_be_made_is_a_sentence(stand_in: Path) -> None:
    (stand_in / "taken").touch()
    for folder in ("taken", "taken/logs"):
        result = launch(stand_in, f'"{COMMAND}" 1 8118 "{folder}" "False" 7200')
        assert result.returncode == 3
        assert re.fullmatch(rf"LOG_DIR '{folder}' cannot be written: .*\.\n", result.stderr)


def test_the_help_names_every_option_that_is_handed_on() -> None:
    text = entry("--help").stdout
    options = CliRunner().invoke(app, ["train", "--help"]).stdout
    for option in set(re.findall(r"--[a-z-]+", options)) - {"--help"}:
        assert option in text


def test_mode_0_says_to_convert() -> None:
    result = entry("--mode", "0", "--config", "graph.yaml")
    assert result.returncode == 1
    assert "msmigrate convert graph.yaml" in result.stderr


def test_mode_1_is_msrt_train() -> None:
    result = entry("--mode", "1", "--config", "missing.yaml", "--set", "training.steps=2")
    assert result.returncode == 3
    assert result.stderr.startswith("missing.yaml cannot be read")


@pytest.mark.parametrize("world", [1, 4, 8, 16])
def test_the_guides_batch_fits_the_ranks_of_the_manuals_lines(world: int) -> None:
    from msmigrate.pynative.load import load_config
    from msrt.config.resolve import resolve

    path = ROOT / "guide" / "pynative.yaml"
    resolved = resolve(load_config(path.read_text(), path.name).config, world)
    assert resolved.gradient_accumulation_steps * world == 16
    assert resolved.warmup_steps == 6


def test_the_guide_runs_on_one_rank_without_a_remark() -> None:
    checked = check_config(str(ROOT / "guide" / "pynative.yaml"), [], 1, ExpertMesh.PRODUCT)
    assert checked.notes == ()
