"""A short run of benchmarks/fuzz_convert.py on this folder's own graph file and on the example's."""

import importlib.util
import random
from collections import Counter
from pathlib import Path
from types import ModuleType

from graph_text import GRAPH

ROOT = Path(__file__).parents[2]


def fuzzer() -> ModuleType:
    spec = importlib.util.spec_from_file_location("fuzz_convert", ROOT / "benchmarks" / "fuzz_convert.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_mutants_keep_every_promise() -> None:
    fuzz = fuzzer()
    texts = [GRAPH, (ROOT / "examples" / "deepseek_v3_small" / "graph.yaml").read_text(encoding="utf-8")]
    draw = random.Random(7)
    counts: Counter[str] = Counter()
    for _ in range(250):
        counts[fuzz.outcome(fuzz.mutant(draw.choice(texts), draw))] += 1
    assert counts["converted"] > 40
