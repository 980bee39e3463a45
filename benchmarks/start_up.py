"""Whole-process times of msmigrate and msrt: start, help, convert, lint, and the refusal of a config that cannot run.

Usage: python benchmarks/start_up.py [ROUNDS]

Prints the median wall time of each command and its ratio to an empty Python process, measured in turn in one run.
"""

import statistics
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
GRAPH = str(ROOT / "examples" / "deepseek_v3_small" / "graph.yaml")
GUIDE = str(ROOT / "guide" / "pynative.yaml")
EMPTY = "an empty Python process"
COMMANDS = {
    EMPTY: [sys.executable, "-c", ""],
    "msmigrate --version": [sys.executable, "-m", "msmigrate", "--version"],
    "msmigrate convert": [sys.executable, "-m", "msmigrate", "convert", GRAPH, "--dry-run"],
    "msmigrate lint": [sys.executable, "-m", "msmigrate", "lint", GUIDE],
    "msrt --version": [sys.executable, "-m", "msrt", "--version"],
    "msrt train, tensor_parallel 2 on 1 rank": [
        sys.executable, "-m", "msrt", "train", GUIDE, "--set", "parallelism.tensor_parallel=2",
    ],
}  # fmt: skip


def seconds(command: list[str]) -> float:
    """Wall time of one process."""
    start = time.perf_counter()
    subprocess.run(command, capture_output=True, check=False)
    return time.perf_counter() - start


def main(rounds: int) -> None:
    """Time all commands in turn, `rounds` times."""
    times: dict[str, list[float]] = {name: [] for name in COMMANDS}
    for _ in range(rounds):
        for name, command in COMMANDS.items():
            times[name].append(seconds(command))
    base = statistics.median(times[EMPTY])
    print("| command | median | times an empty process |\n|---|---|---|")
    for name, found in times.items():
        median = statistics.median(found)
        print(f"| {name} | {median * 1000:.0f} ms | {median / base:.1f} |")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 7)
