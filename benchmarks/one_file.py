"""Whole-process time of `msmigrate convert` on one file, beside two checkers that people run on such files anyway.

Usage: python benchmarks/one_file.py [GRAPH.yaml | FOLDER] [--rounds N] [--yamllint COMMAND]
                                     [--check-jsonschema COMMAND]

A folder stands for its largest .yaml file; without an argument the example's graph file is taken. yamllint reads the
graph file; check-jsonschema holds the converted file against schemas/pynative.schema.json. Both are looked up on PATH;
`pip install yamllint check-jsonschema` into an environment of their own brings them. The commands run in turn, so that
a busy machine slows all of them. Prints a table for benchmarks/README.md, then what a conversion imports.
"""

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
EXAMPLE = ROOT / "examples" / "deepseek_v3_small" / "graph.yaml"
SCHEMA = ROOT / "schemas" / "pynative.schema.json"
CONVERT = "msmigrate convert"
HEAVY = ("jsonschema", "mindspore", "numpy", "yaml", "rich")
GENEROUS = ["--samples", "64000", "--allow-lossy", "--hf-config"]
"""Options, with the path of MODEL as a file behind them, that let a template convert which leaves such facts out."""
MODEL = """{"model_type": "qwen3", "architectures": ["Qwen3ForCausalLM"], "num_hidden_layers": 64, "hidden_size": 5120,
 "vocab_size": 151936}"""


def largest(path: Path, model: Path) -> tuple[Path, bytes]:
    """The file, or the largest of a folder that converts, and what it becomes; exits when nothing converts."""
    files = [path] if path.is_file() else sorted(path.rglob("*.yaml"), key=lambda file: -file.stat().st_size)
    for file in files:
        done = subprocess.run(convert_command(file, model), capture_output=True, check=False)
        if done.returncode == 0 and done.stdout:
            return file, done.stdout
    sys.exit(f"nothing in {path} converts with {' '.join(GENEROUS)} {model.name}")


def convert_command(path: Path, model: Path, *options: str) -> list[str]:
    """The call of `msmigrate convert` that is measured."""
    return [sys.executable, "-m", "msmigrate", "convert", str(path), *GENEROUS, str(model), *options]


def command_of(given: str | None, name: str) -> list[str]:
    """A checker's command; exits with a sentence on how to install one that is missing."""
    found = given or shutil.which(name)
    if found is None or shutil.which(found) is None:
        sys.exit(f"{given or name} is not there; `pip install {name}` into a venv, then --{name} VENV/bin/{name}")
    return [found]


def seconds(command: list[str]) -> float:
    """Wall time of one process."""
    start = time.perf_counter()
    subprocess.run(command, capture_output=True, check=False)
    return time.perf_counter() - start


def imported(command: list[str]) -> set[str]:
    """The top-level modules that a Python command loads."""
    done = subprocess.run(
        [command[0], "-X", "importtime", *command[1:]],
        capture_output=True, encoding="utf-8", check=False, env={**os.environ, "PYTHONUTF8": "1"},
    )  # fmt: skip
    lines = [line for line in done.stderr.splitlines() if line.startswith("import time:")]
    return {line.rpartition("|")[2].strip().partition(".")[0] for line in lines}


def table(times: dict[str, list[float]]) -> str:
    """Median, spread and ratio of each command as a Markdown table."""
    rows = ["| command | median | fastest to slowest | msmigrate convert is |", "|---|---|---|---|"]
    own = statistics.median(times[CONVERT])
    for name, found in times.items():
        median = statistics.median(found)
        ratio = "" if name == CONVERT else f"{own / median:.2f} × this"
        spread = f"{min(found) * 1000:.0f} to {max(found) * 1000:.0f} ms"
        rows.append(f"| {name} | {median * 1000:.0f} ms | {spread} | {ratio} |")
    return "\n".join(rows)


def main() -> None:
    """Time the commands in turn and print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("graph", nargs="?", type=Path, default=EXAMPLE)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--yamllint")
    parser.add_argument("--check-jsonschema")
    options = parser.parse_args()
    yamllint = command_of(options.yamllint, "yamllint")
    checker = command_of(options.check_jsonschema, "check-jsonschema")
    with tempfile.TemporaryDirectory() as folder:
        model, written = Path(folder) / "config.json", Path(folder) / "pynative.yaml"
        model.write_text(MODEL, encoding="utf-8")
        path, result = largest(options.graph, model)
        written.write_bytes(result)
        commands = {
            CONVERT: convert_command(path, model, "-o", str(Path(folder) / "out.yaml")),
            "yamllint": [*yamllint, str(path)],
            "check-jsonschema": [*checker, "--schemafile", str(SCHEMA), str(written)],
            "an empty Python process": [sys.executable, "-c", ""],
        }
        times: dict[str, list[float]] = {name: [] for name in commands}
        for _ in range(options.rounds):
            for name, command in commands.items():
                times[name].append(seconds(command))
        modules = imported(commands[CONVERT])
    print(f"{path.name}, {path.stat().st_size} bytes, {options.rounds} rounds\n\n{table(times)}\n")
    loaded = ", ".join(name for name in HEAVY if name in modules) or "none"
    print(f"A conversion loads {len(modules)} top-level modules; of {', '.join(HEAVY)}: {loaded}.")


if __name__ == "__main__":
    main()
