"""Mutated graph files through the converter: no traceback, no hang, and every promise of the report kept.

Usage: python benchmarks/fuzz_convert.py FOLDER_OR_FILE… [--mutants N] [--seed S]

Prints one line: outcomes, the slowest conversion, broken promises. Exits with 1 when a promise is broken; the mutants
that break one are printed before that line, each kind of fault once.
"""

import argparse
import random
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import yaml

from msmigrate.convert import AlreadyPynativeError, Conversion, convert
from msmigrate.options import Options
from msmigrate.problems import UserError
from msmigrate.report import report_object, totals
from msmigrate.yaml.document import parse
from msmigrate.yaml.nodes import leaves
from msmigrate.yaml.scalars import Value
from msmigrate.yaml.source import source_from_bytes

VALUES = (
    "0", "-1", "1", "2.5", "1e-5", "1.e-8", ".inf", ".nan", "True", "'4'", '"x"', "null", "", "[]", "{}", "[1, 2]",
    "[[1], [2]]", "{a: 1}", "&a 3", "*a", "2026-12-01", "0x10", "1_000", "|\n    a\n    # b", ">-\n    c", "'# d'",
    "text", "99999999999999999999", "*train_dataset", "!!str 5", "[0-3]",
)  # fmt: skip


def mutant(text: str, draw: random.Random) -> str:
    """A text with one to three lines dropped, doubled, moved, cut, indented, aliased or given another value."""
    lines = text.split("\n")
    for _ in range(draw.randint(1, 3)):
        place = draw.randrange(len(lines))
        kind = draw.randrange(20)
        if kind == 0:
            del lines[place]
            lines = lines or [""]
        elif kind == 1:
            lines.insert(place, lines[place])
        elif kind == 2:
            lines.insert(draw.randrange(len(lines)), lines.pop(place))
        elif kind == 3:
            lines[place] = draw.choice(("  ", "", " ", "\t")) + lines[place]
        elif kind == 4:
            lines[place] = lines[place][: draw.randrange(len(lines[place]) + 1)]
        elif kind == 5:
            lines.insert(place, draw.choice(("# 注释", "", "  # deep", "<<: {seed: 3}", "- 1", "seed: 1", "---")))
        elif kind == 6:
            lines.append(
                f"{draw.choice(('metric', 'swap_config', 'processor', 'eval_dataset', 'optimizer'))}: *train_dataset"
            )
        else:
            key, colon, _ = lines[place].partition(":")
            lines[place] = f"{key}{colon} {draw.choice(VALUES)}"
    return "\n".join(lines)


CONFIG: dict[str, Value] = {
    "model_type": "deepseek_v3", "architectures": ["DeepseekV3ForCausalLM"], "num_hidden_layers": 64,
    "hidden_size": 5120,
}  # fmt: skip
OPTIONS = Options(samples=64000, allow_lossy=True, hf_config=CONFIG, hf_config_path="config.json")


def outcome(text: str) -> str:
    """What became of a mutant; raises AssertionError when a promise is broken."""
    try:
        document = parse(source_from_bytes("mutant.yaml", text.encode()))
        conversion = convert(document, OPTIONS)
    except UserError:
        return "an error with a place"
    except AlreadyPynativeError:
        return "already PyNative"
    counts = totals(conversion)
    assert counts["leaves_read"] == sum(1 for _ in leaves(document.root)), "leaves are missing"
    assert counts["leaves_read"] == sum(count for fate, count in counts.items() if fate != "leaves_read"), "totals"
    report_object(conversion)
    if conversion.text is None:
        return "refused"
    check_text(conversion, conversion.text)
    again = convert(document, OPTIONS)
    assert again.text == conversion.text, "two conversions differ"
    return "converted"


def check_text(conversion: Conversion, text: str) -> None:
    """The output, as PyYAML reads it, holds exactly what the report says was written."""
    read = dict(paths(yaml.safe_load(text)))
    written = {
        e.outcome.pynative: e.new for e in conversion.entries if e.outcome.writes and "[" not in str(e.outcome.pynative)
    }
    for path, value in written.items():
        assert path is not None
        assert same(value_at(read, path), value), f"{path} is not {value!r}"


def paths(value: object, prefix: str = "") -> Iterator[tuple[str, object]]:
    """Every mapping and value of a tree by dotted path."""
    yield prefix, value
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from paths(inner, f"{prefix}.{name}" if prefix else str(name))


def value_at(read: dict[str, object], path: str) -> object:
    """The value of a path; raises AssertionError when the output does not have it."""
    assert path in read, f"{path} is not in the output"
    return read[path]


def same(left: object, right: Value) -> bool:
    """Equality of values and of their types."""
    return repr(left) == repr(right)


LIMIT_SECONDS = 5
"""Longer than any conversion takes, on a loaded machine too."""


def _too_long(signum: int, frame: object) -> None:
    raise TimeoutError(f"no end after {LIMIT_SECONDS} s")


def judged(text: str) -> tuple[str, Exception | None]:
    """The outcome of a mutant, or "broken" with what was raised; a hang is ended after five seconds."""
    signal.alarm(LIMIT_SECONDS)
    try:
        return outcome(text), None
    except Exception as error:
        return "broken", error
    finally:
        signal.alarm(0)


def main() -> None:
    """Run the mutants."""
    parser = argparse.ArgumentParser()
    parser.add_argument("paths", nargs="+", type=Path)
    parser.add_argument("--mutants", type=int, default=20000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    files = [file for path in options.paths for file in (sorted(path.rglob("*.yaml")) if path.is_dir() else [path])]
    texts = [file.read_text(encoding="utf-8", errors="replace") for file in files]
    signal.signal(signal.SIGALRM, _too_long)
    counts: Counter[str] = Counter()
    faults: Counter[str] = Counter()
    slowest = 0.0
    draw = random.Random(options.seed)
    for number in range(options.mutants):
        text = mutant(draw.choice(texts), draw)
        start = time.perf_counter()
        name, error = judged(text)
        slowest = max(slowest, time.perf_counter() - start)
        counts[name] += 1
        if error is not None:
            fault = f"{type(error).__name__}: {error}"
            faults[fault] += 1
            if faults[fault] == 1:
                print(f"{text}\n--- mutant {number}: {fault}", flush=True)
    shown = ", ".join(f"{count} {name}" for name, count in counts.most_common())
    print(f"{options.mutants} mutants of {len(files)} files: {shown}; slowest {slowest:.2f} s")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
