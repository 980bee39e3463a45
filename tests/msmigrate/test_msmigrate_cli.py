"""The commands as a user runs them: outputs, exit statuses, what is imported."""

import json
import os
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest
import yaml
from graph_text import GRAPH, edited

from msmigrate.pynative.schema import pynative_schema

ROOT = Path(__file__).parents[2]


def run(*arguments: str, cwd: Path, text: str | None = None, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "msmigrate", *arguments],
        cwd=cwd, input=text, capture_output=True, encoding="utf-8", check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src"), **environment},
    )  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "graph.yaml").write_text(GRAPH, encoding="utf-8")
    return tmp_path


def test_convert_prints_yaml_and_nothing_else(folder: Path) -> None:
    done = run("convert", "graph.yaml", cwd=folder)
    assert done.returncode == 0
    assert yaml.safe_load(done.stdout)["training"]["steps"] == 100
    assert "keys read" in done.stderr
    piped = run("convert", "-", cwd=folder, text=GRAPH)
    assert piped.stdout == done.stdout


def test_convert_writes_a_file_and_a_report(folder: Path) -> None:
    done = run("convert", "graph.yaml", "-o", "out.yaml", "--report", "r.json", "--report-format", "json", cwd=folder)
    assert (done.returncode, done.stdout) == (0, "")
    report = json.loads((folder / "r.json").read_text(encoding="utf-8"))
    assert report["version"] == 1
    assert report["source"] == {"path": "graph.yaml", "mode": "graph", "family": "mcore"}
    assert report["facts"]["world"] == {"value": 4, "from": "dp·mp·pp"}
    totals = report["totals"]
    assert totals["leaves_read"] == sum(count for name, count in totals.items() if name != "leaves_read")
    assert totals["leaves_read"] == sum(entry["graph"] is not None for entry in report["entries"])
    assert run("lint", "out.yaml", cwd=folder).returncode == 0
    assert run("convert", "graph.yaml", "-o", "out.yaml", "--check", cwd=folder).returncode == 0
    (folder / "out.yaml").write_text("old: 1\n", encoding="utf-8")
    changed = run("convert", "graph.yaml", "-o", "out.yaml", "--check", cwd=folder)
    assert (changed.returncode, (folder / "out.yaml").read_text(encoding="utf-8")) == (1, "old: 1\n")


def test_convert_in_place_keeps_the_old_file(folder: Path) -> None:
    assert run("convert", "graph.yaml", "-o", "graph.yaml", cwd=folder).returncode == 2
    assert run("convert", "graph.yaml", "--in-place", cwd=folder).returncode == 0
    assert (folder / "graph.yaml.bak").read_text(encoding="utf-8") == GRAPH
    again = run("convert", "graph.yaml", "--in-place", cwd=folder)
    assert (again.returncode, "already" in again.stderr) == (0, True)
    assert (folder / "graph.yaml.bak").read_text(encoding="utf-8") == GRAPH


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (["convert", "none.yaml"], 3, "No such file"),
        (["convert", "graph.yaml", "-o", "no/such/folder.yaml"], 3, "cannot be written"),
        (["convert", "graph.yaml", "--target", "3.0"], 2, "2.0, 2.1"),
        (["convert", "graph.yaml", "--set", "training.step=1"], 2, "did you mean training.steps"),
        (["convert", "graph.yaml", "--set", "training.steps=x"], 2, "an integer"),
        (["convert", "graph.yaml", "--world", "0"], 2, "--world"),
        (["convert", "graph.yaml", "--hf-config", "graph.yaml"], 3, "not JSON"),
        (["convert"], 2, "GRAPH.yaml"),
        (["lint", "none.yaml"], 3, "No such file"),
        (["lint", "graph.yaml"], 1, "convert it first"),
        (["convert", "refused.yaml", "-o", "out.yaml"], 1, "--samples"),
        (["convert", "twice.yaml", "-o", "out.yaml"], 3, "stands twice"),
        (["convert", "bytes.yaml"], 3, "UTF-8"),
    ],
)
def test_statuses(folder: Path, arguments: list[str], status: int, words: str) -> None:
    refused = edited(("sizes: [600, 0, 0]", "sizes: [0, 0, 0]"))
    (folder / "refused.yaml").write_text(refused, encoding="utf-8")
    (folder / "twice.yaml").write_text(GRAPH + "seed: 2\n", encoding="utf-8")
    (folder / "bytes.yaml").write_bytes(b"a: \xff\n")
    done = run(*arguments, cwd=folder)
    assert done.returncode == status, done.stderr
    assert words in done.stderr + done.stdout
    assert "Traceback" not in done.stderr
    assert not (folder / "out.yaml").exists()


def test_debug_shows_the_traceback(folder: Path) -> None:
    assert "Traceback" in run("convert", "none.yaml", "--debug", cwd=folder).stderr


def test_chinese_under_a_plain_locale(folder: Path) -> None:
    (folder / "图.yaml").write_text(edited(('"./tokens"', "./语料"), ("seed: 7", "seed: 7  # 数据")), encoding="utf-8")
    done = run(
        "convert",
        "图.yaml",
        "-o",
        "出.yaml",
        cwd=folder,
        LC_ALL="C",
        LANG="C",
        PYTHONUTF8="0",
        PYTHONIOENCODING="ascii",
    )
    assert done.returncode == 0, done.stderr
    assert "图.yaml: 44 keys read" in done.stderr
    assert "./语料" in (folder / "出.yaml").read_text(encoding="utf-8")


def test_crlf_and_bom_are_kept(folder: Path) -> None:
    (folder / "w.yaml").write_bytes(("\ufeff" + GRAPH.replace("\n", "\r\n")).encode())
    assert run("convert", "w.yaml", "-o", "out.yaml", cwd=folder).returncode == 0
    data = (folder / "out.yaml").read_bytes()
    assert data.startswith("\ufeff".encode())
    assert data.count(b"\r\n") == data.count(b"\n") > 20


def modules_after(code: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", f"{code}\nimport sys\nprint(*sys.modules)"],
        capture_output=True, text=True, check=True, env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
    )  # fmt: skip
    return set(done.stdout.split("\n")[-2].split(" "))


def test_msmigrate_never_imports_the_training_stack() -> None:
    modules = modules_after(
        "import msmigrate, pkgutil, importlib\n"
        "for m in pkgutil.walk_packages(msmigrate.__path__, 'msmigrate.'):\n"
        "    if not m.name.endswith('__main__'): importlib.import_module(m.name)"
    )
    assert "msmigrate.convert" in modules
    assert not {name for name in modules if name.split(".")[0] in ("mindspore", "numpy", "msrt")}


def test_version_is_light() -> None:
    modules = modules_after("import sys\nsys.argv = ['msmigrate', '--version']\nfrom msmigrate.cli import main\nmain()")
    assert "msmigrate.cli" in modules
    heavy = ("ruamel", "jsonschema", "yaml", "typer", "rich")
    assert not {name for name in modules if name.split(".")[0] in heavy}


def test_the_committed_schema_is_the_declared_one(folder: Path) -> None:
    path = ROOT / "schemas" / "pynative.schema.json"
    assert run("schema", "pynative", "--check", "-o", str(path), cwd=folder).returncode == 0
    schema = pynative_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    converted = yaml.safe_load(run("convert", "graph.yaml", cwd=folder).stdout)
    assert [error.message for error in validator.iter_errors(converted)] == []
    converted["training"]["steps"] = "many"
    converted["traning"] = {}
    assert len(list(validator.iter_errors(converted))) == 2


def test_lint_json(folder: Path) -> None:
    (folder / "p.yaml").write_text("training:\n  stepz: 1\n", encoding="utf-8")
    done = run("lint", "p.yaml", "--format", "json", cwd=folder)
    findings = json.loads(done.stdout)["findings"]
    assert findings[0]["key"] == "training.stepz"
    assert (findings[0]["line"], findings[0]["column"]) == (2, 3)
    assert done.returncode == 1


@pytest.mark.parametrize(
    "arguments",
    [
        ["--report", "graph.yaml"],
        ["-o", "a.yaml", "--report", "./a.yaml"],
        ["--in-place", "--report", "graph.yaml.bak"],
        ["--in-place", "-o", "b.yaml"],
    ],
)
def test_outputs_never_overwrite_each_other(folder: Path, arguments: list[str]) -> None:
    done = run("convert", "graph.yaml", *arguments, cwd=folder)
    assert done.returncode == 2
    assert (folder / "graph.yaml").read_text(encoding="utf-8") == GRAPH
    assert [path.name for path in folder.iterdir()] == ["graph.yaml"]


def test_in_place_keeps_an_older_backup(folder: Path) -> None:
    (folder / "graph.yaml.bak").write_text("mine", encoding="utf-8")
    assert run("convert", "graph.yaml", "--in-place", cwd=folder).returncode == 3
    assert (folder / "graph.yaml.bak").read_text(encoding="utf-8") == "mine"


def test_a_report_that_cannot_be_written_stops_the_output(folder: Path) -> None:
    done = run("convert", "graph.yaml", "-o", "a.yaml", "--report", "no/r.txt", cwd=folder)
    assert done.returncode == 3
    assert not (folder / "a.yaml").exists()


@pytest.mark.parametrize("arguments", [["--version"], ["convert", "graph.yaml"], ["lint", "graph.yaml"], ["schema"]])
def test_a_full_standard_output(folder: Path, arguments: list[str]) -> None:
    full = Path("/dev/full")
    if not full.is_char_device():
        pytest.skip("this system has no /dev/full")
    with full.open("wb") as stream:
        done = subprocess.run(
            [sys.executable, "-m", "msmigrate", *arguments],
            cwd=folder, stdout=stream, stderr=subprocess.PIPE, encoding="utf-8", check=False,
            env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        )  # fmt: skip
    assert done.returncode == 3
    assert "cannot be written" in done.stderr
    assert "Traceback" not in done.stderr


def test_an_empty_mapping_and_an_empty_path(folder: Path) -> None:
    assert "is empty" in run("convert", "-", cwd=folder, text="{}\n").stderr
    assert "''" in run("convert", "", cwd=folder).stderr


def test_several_files_and_folders(folder: Path) -> None:
    (folder / "in" / "deep").mkdir(parents=True)
    (folder / "in" / "a.yaml").write_text(GRAPH, encoding="utf-8")
    (folder / "in" / "deep" / "b.yml").write_text(GRAPH.replace("seed: 7", "seed: 8"), encoding="utf-8")
    (folder / "in" / "bad.yaml").write_text("a: [1\n", encoding="utf-8")
    (folder / "in" / "done.yaml").write_text("training:\n  steps: 1\n", encoding="utf-8")
    assert run("convert", "in", cwd=folder).returncode == 2
    done = run(
        "convert", "in", "graph.yaml", "--out-dir", "out", "--report", "r.json", "--report-format", "json", cwd=folder
    )
    assert done.returncode == 3
    written = sorted(str(path.relative_to(folder / "out")) for path in (folder / "out").rglob("*.y*ml"))
    assert written == ["a.yaml", "deep/b.yml", "graph.yaml"]
    assert "5 files: 3 converted, 1 failed, 1 PyNative already" in done.stderr
    assert len(json.loads((folder / "r.json").read_text(encoding="utf-8"))["reports"]) == 3
    again = run("convert", "in/a.yaml", "in/deep", "--out-dir", "out", "--check", cwd=folder)
    assert again.returncode == 1
    assert "would change" in again.stderr


def test_two_inputs_never_share_an_output(folder: Path) -> None:
    (folder / "x").mkdir()
    (folder / "x" / "graph.yaml").write_text(GRAPH, encoding="utf-8")
    done = run("convert", "graph.yaml", "x/graph.yaml", "--out-dir", "out", cwd=folder)
    assert (done.returncode, (folder / "out").exists()) == (2, False)
    assert run("convert", "graph.yaml", "--out-dir", ".", cwd=folder).returncode == 2
    assert (folder / "graph.yaml").read_text(encoding="utf-8") == GRAPH


def test_diff_prints_the_change(folder: Path) -> None:
    done = run("convert", "graph.yaml", "--diff", cwd=folder)
    assert done.returncode == 0
    assert "--- graph.yaml\n+++ pynative.yaml\n" in done.stdout
    assert "+  global_batch_size: 12\n" in done.stdout


def test_lint_takes_folders(folder: Path) -> None:
    (folder / "p").mkdir()
    assert run("lint", "p", cwd=folder).returncode == 2
    (folder / "p" / "a.yaml").write_text("training:\n  stepz: 1\n", encoding="utf-8")
    done = run("lint", "p", cwd=folder)
    assert done.returncode == 1
    assert "a.yaml:2:3" in done.stdout


def test_yaml_faults_are_findings_with_a_place(folder: Path) -> None:
    (folder / "p.yaml").write_text("training:\n  steps: 1\n  steps: 2\n", encoding="utf-8")
    (folder / "q.yaml").write_text("training: [\n", encoding="utf-8")
    done = run("lint", "p.yaml", "q.yaml", "--format", "json", cwd=folder)
    found = [(one["code"], one["path"], one["line"], one["column"]) for one in json.loads(done.stdout)["findings"]]
    assert found == [("Y001", "p.yaml", 3, 3), ("Y001", "q.yaml", 2, 1)]
    assert done.returncode == 1


def test_lint_for_a_reader_and_a_number_of_ranks(folder: Path) -> None:
    assert run("convert", "graph.yaml", "-o", "p.yaml", cwd=folder).returncode == 0
    done = run("lint", "p.yaml", cwd=folder)
    assert (done.returncode, "give the number of ranks with --world N" in done.stderr) == (0, True)
    done = run("lint", "p.yaml", "--world", "3", "--target", "2.1", "--expert-mesh", "nested", cwd=folder)
    assert (done.returncode, "--world N" in done.stderr) == (1, False)
    assert "error: 3 ranks are no multiple of tensor_parallel 2; nearest numbers of ranks: 2 and 4" in done.stdout
    assert run("lint", "p.yaml", "--target", "3.0", cwd=folder).returncode == 2
    assert run("lint", "p.yaml", "--world", "0", cwd=folder).returncode == 2


@pytest.mark.parametrize("command", ["convert", "reverse", "lint"])
def test_a_control_character_has_a_place(folder: Path, command: str) -> None:
    (folder / "nul.yaml").write_bytes(b"seed: 1\nmodel: a\0b\n")
    done = run(command, "nul.yaml", cwd=folder)
    assert done.returncode == (1 if command == "lint" else 3)
    assert "nul.yaml:2:9: " in done.stdout + done.stderr
    assert "U+0000 (NUL)" in done.stdout + done.stderr
    assert "unicode string" not in done.stdout + done.stderr


@pytest.mark.parametrize("text", ["", "a: [1\n"])
def test_lint_of_a_file_without_keys(folder: Path, text: str) -> None:
    (folder / "p.yaml").write_text(text, encoding="utf-8")
    done = run("lint", "p.yaml", cwd=folder)
    assert (done.returncode, done.stdout.count("p.yaml")) == (1, 1)
    assert "--world" not in done.stderr


@pytest.mark.parametrize(
    ("text", "words"), [("=3", "expected KEY=VALUE"), ("training.steps=[1", "not valid YAML: expected ',' or ']'")]
)
def test_set_options_that_do_not_read(folder: Path, text: str, words: str) -> None:
    done = run("convert", "graph.yaml", "--set", text, cwd=folder)
    assert done.returncode == 2
    assert f"--set {text}: {words}" in done.stderr
    assert ":2:" not in done.stderr


def test_check_and_dry_run_write_the_report_alone(folder: Path) -> None:
    for option in ("--check", "--dry-run"):
        run("convert", "graph.yaml", "-o", "out.yaml", option, "--report", "r.txt", cwd=folder)
        assert sorted(path.name for path in folder.iterdir()) == ["graph.yaml", "r.txt"]
        (folder / "r.txt").unlink()


def test_results_inside_the_folder_are_no_inputs(folder: Path) -> None:
    (folder / "c").mkdir()
    (folder / "c" / "X.YAML").write_text(GRAPH, encoding="utf-8")
    for _ in range(2):
        done = run("convert", "c", "--out-dir", "c/out", cwd=folder)
        assert done.returncode == 0
        assert sorted(path.name for path in (folder / "c").rglob("*.*")) == ["X.YAML", "X.YAML"]


def test_a_link_to_nothing_is_named(folder: Path) -> None:
    (folder / "c").mkdir()
    (folder / "c" / "a.yaml").write_text(GRAPH, encoding="utf-8")
    (folder / "c" / "b.yaml").symlink_to("gone.yaml")
    done = run("convert", "c", "--out-dir", "out", cwd=folder)
    assert done.returncode == 3
    assert "c/b.yaml cannot be read: it is a link to gone.yaml, which does not exist" in done.stderr
    assert (folder / "out" / "a.yaml").exists()


def test_several_folders_keep_their_names(folder: Path) -> None:
    for name in ("a", "b", "empty"):
        (folder / name).mkdir()
    for name in ("a", "b"):
        (folder / name / "x.yaml").write_text(GRAPH, encoding="utf-8")
    assert run("convert", "a/", "b", "--out-dir", "out", cwd=folder).returncode == 0
    assert sorted(str(path.relative_to(folder / "out")) for path in (folder / "out").rglob("*.yaml")) == [
        "a/x.yaml",
        "b/x.yaml",
    ]
    done = run("convert", "empty", cwd=folder)
    assert (done.returncode, "no .yaml or .yml file in empty" in done.stderr) == (2, True)


INTERRUPTED = """
import os, signal, sys
class Interrupt:
    def find_spec(self, name, path, target=None):
        if name == sys.argv[0]:
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Interrupt())
from {package}.cli import main
main()
"""


@pytest.mark.parametrize(
    ("package", "module"),
    [
        ("msmigrate", "msmigrate.problems"),
        ("msmigrate", "typer"),
        ("msmigrate", "msmigrate.convert_files"),
        ("msmigrate", "ruamel.yaml"),
        ("msrt", "msmigrate.problems"),
        ("msrt", "typer"),
    ],
)
def test_an_interrupt_while_modules_are_imported(folder: Path, package: str, module: str) -> None:
    code = f"import sys; sys.argv = ['{module}', 'convert', 'graph.yaml']\n" + INTERRUPTED.format(package=package)
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, capture_output=True, encoding="utf-8", check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
    )  # fmt: skip
    assert done.returncode == 130
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
