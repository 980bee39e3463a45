"""Damaged pynative files through `reverse`: no traceback, and every promise of the report kept."""

import random
from collections import Counter
from pathlib import Path

import yaml
from graph_text import document
from pynative_text import PYNATIVE
from test_mutations import fuzzer

from msmigrate.entries import ConvertedAlreadyError
from msmigrate.options import Options
from msmigrate.problems import UserError
from msmigrate.report import report_object, totals
from msmigrate.reverse import reverse
from msmigrate.yaml.nodes import leaves

ROOT = Path(__file__).parents[2]
OPTIONS = Options(world=8, samples=64000, overrides={"training.global_batch_size": 48}, allow_lossy=True)


def outcome(text: str) -> str:
    fuzz = fuzzer()
    try:
        read = document(text)
        conversion = reverse(read, OPTIONS)
    except UserError:
        return "an error with a place"
    except ConvertedAlreadyError:
        return "a graph file"
    counts = totals(conversion)
    assert counts["leaves_read"] == sum(1 for _ in leaves(read.root))
    assert counts["leaves_read"] == sum(count for fate, count in counts.items() if fate != "leaves_read")
    report_object(conversion)
    if conversion.text is None:
        return "refused"
    written = dict(fuzz.paths(yaml.safe_load(conversion.text)))
    for entry in conversion.entries:
        if entry.outcome.writes and "[" not in str(entry.graph):
            assert fuzz.same(fuzz.value_at(written, entry.graph), entry.new), entry
    return "reversed"


def test_mutants_keep_every_promise() -> None:
    fuzz = fuzzer()
    texts = [PYNATIVE, (ROOT / "guide" / "pynative.yaml").read_text(encoding="utf-8")]
    draw = random.Random(11)
    counts: Counter[str] = Counter()
    for _ in range(200):
        counts[outcome(fuzz.mutant(draw.choice(texts), draw))] += 1
    assert counts["reversed"] > 10
    assert counts["an error with a place"] > 10
