"""`msmigrate reverse` and `--modeline` as a user runs them."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from graph_text import GRAPH
from pynative_text import PYNATIVE

ROOT = Path(__file__).parents[2]
MODELINE = "# yaml-language-server: $schema=pynative.schema.json\n"


def run(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "msmigrate", *arguments],
        cwd=cwd, capture_output=True, encoding="utf-8", check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
    )  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "graph.yaml").write_text(GRAPH, encoding="utf-8")
    (tmp_path / "pynative.yaml").write_text(PYNATIVE, encoding="utf-8")
    return tmp_path


def test_reverse_writes_a_file_and_a_report(folder: Path) -> None:
    report = ("--report", "r.json", "--report-format", "json")
    done = run("reverse", "pynative.yaml", "-o", "back.yaml", "--world", "4", *report, cwd=folder)
    assert (done.returncode, done.stdout) == (0, "")
    read = yaml.safe_load((folder / "back.yaml").read_text(encoding="utf-8"))
    assert read["runner_config"]["epochs"] == 2
    account = json.loads((folder / "r.json").read_text(encoding="utf-8"))
    assert account["source"] == {"path": "pynative.yaml", "mode": "pynative", "family": "mcore"}
    assert account["facts"]["world"] == {"value": 4, "from": "--world"}
    totals = account["totals"]
    assert totals["leaves_read"] == sum(entry["pynative"] is not None for entry in account["entries"])
    assert totals["leaves_read"] == sum(count for name, count in totals.items() if name != "leaves_read")
    epochs = next(entry for entry in account["entries"] if entry["graph"] == "runner_config.epochs")
    assert (epochs["pynative"], epochs["fate"], epochs["new"]) == ("training.steps", "computed", 2)
    assert "600 samples // 12 = 50" in epochs["arithmetic"]
    assert run("convert", "back.yaml", cwd=folder).returncode == 0
    assert run("reverse", "pynative.yaml", "-o", "back.yaml", "--world", "4", "--check", cwd=folder).returncode == 0


def test_statuses(folder: Path) -> None:
    already = run("reverse", "graph.yaml", cwd=folder)
    assert (already.returncode, already.stdout) == (0, "")
    assert "graph.yaml is a graph.yaml already; nothing was written" in already.stderr
    asked = run("reverse", "pynative.yaml", cwd=folder)
    assert asked.returncode == 1
    assert "--world N" in asked.stderr
    assert run("reverse", "missing.yaml", cwd=folder).returncode == 3
    assert run("reverse", "pynative.yaml", "--modeline", cwd=folder).returncode == 2
    (folder / "broken.yaml").write_text(PYNATIVE.replace("steps: 100", "steps: -1"), encoding="utf-8")
    broken = run("reverse", "broken.yaml", "--world", "4", cwd=folder)
    assert broken.returncode == 1
    assert "broken.yaml:7:" in broken.stderr
    assert "Traceback" not in broken.stderr


def test_options_that_do_nothing_for_a_converted_file_are_named(folder: Path) -> None:
    options = ("--set", "training.seed=4", "--report", "r.json", "-o", "out.yaml")
    done = run("convert", "pynative.yaml", *options, cwd=folder)
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr.strip().endswith("already; nothing was written; -o, --set, --report did nothing")
    assert not [name for name in ("r.json", "out.yaml") if (folder / name).exists()]


def test_several_files(folder: Path) -> None:
    done = run("reverse", "graph.yaml", "pynative.yaml", "--out-dir", "back", "--world", "4", cwd=folder)
    assert done.returncode == 0
    assert "2 files: 1 Graph mode already, 1 converted" in done.stderr
    assert [path.name for path in (folder / "back").iterdir()] == ["pynative.yaml"]


def test_a_modeline_is_the_first_line_once(folder: Path) -> None:
    done = run("convert", "graph.yaml", "--modeline", cwd=folder)
    assert done.returncode == 0
    assert done.stdout.startswith(MODELINE)
    assert "msmigrate schema pynative -o pynative.schema.json" in done.stderr
    (folder / "graph.yaml").write_text(MODELINE + "\n" + GRAPH, encoding="utf-8")
    again = run("convert", "graph.yaml", "--modeline", cwd=folder)
    assert again.stdout.count("yaml-language-server") == 1
    assert yaml.safe_load(again.stdout) == yaml.safe_load(done.stdout)
    (folder / "graph.yaml").write_text("seed: 1\n" + MODELINE + GRAPH.replace("seed: 7\n", ""), encoding="utf-8")
    assert "yaml-language-server" not in run("convert", "graph.yaml", cwd=folder).stdout
    (folder / "pynative.yaml").write_text(MODELINE + PYNATIVE, encoding="utf-8")
    assert "yaml-language-server" not in run("reverse", "pynative.yaml", "--world", "4", cwd=folder).stdout
