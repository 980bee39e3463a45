"""docs/mapping.md: as the table has it, whole, and true to what a conversion does."""

import re
from pathlib import Path

import pytest
from graph_text import converted, edited

from msmigrate.mapping.document.cells import READERS, reason
from msmigrate.mapping.document.whole import mapping_document
from msmigrate.mapping.document.words import ENGLISH
from msmigrate.mapping.outcome import Fate
from msmigrate.mapping.rows import Table
from msmigrate.mapping.table import LEGACY, MCORE
from msmigrate.options import Options
from msmigrate.pynative import Config, nested_section, specs_of

COMMITTED = Path(__file__).parents[2] / "docs" / "mapping.md"


@pytest.fixture(scope="module")
def document() -> str:
    return mapping_document()


def lines_of(document: str, first: str) -> list[list[str]]:
    """The table lines that begin with a name, as cells."""
    found = [line for line in document.splitlines() if line.startswith(f"| `{first}`")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in found]


def test_the_committed_document_is_the_generated_one(document: str) -> None:
    command = "python -m msmigrate.mapping.document > docs/mapping.md"
    assert COMMITTED.read_text("utf-8") == document, f"docs/mapping.md is old: {command}"


def test_every_key_of_both_modes_has_a_line(document: str) -> None:
    for row in (*MCORE.rows, *LEGACY.rows):
        if row.graph is not None:
            assert lines_of(document, row.graph), row.graph
    for path, spec in specs_of(Config).items():
        if nested_section(spec.annotation) is None:
            assert f"`{path}`" in document, path


@pytest.mark.parametrize("table", [MCORE, LEGACY], ids=["mcore", "legacy"])
def test_every_rule_is_told(table: Table) -> None:
    for row in table.rows:
        if row.rule is not None or row.derive is not None:
            assert reason(row, table, ENGLISH), row


def test_every_link_leads_to_a_heading(document: str) -> None:
    anchors = re.findall(r'<a id="([^"]+)">', document)
    assert len(anchors) == len(set(anchors))
    targets = re.findall(r"\]\(#([^)]+)\)", document)
    assert targets
    assert set(targets) <= set(anchors)


def test_every_table_line_has_the_cells_of_its_head(document: str) -> None:
    width = 0
    for line in document.splitlines():
        if not line.startswith("|"):
            width = 0
            continue
        cells = len(re.findall(r"(?<!\\)\|", line))
        width = width or cells
        assert cells == width, line


CLIPS = "  use_clip_grad: True\n"
CASES: dict[str, tuple[tuple[str, str], ...]] = {
    "lr_schedule.lr_end": (("ConstantWarmUpLR", "CosineWithWarmUpLR\n  lr_end: 1.e-6"),),
    "train_dataset.data_loader.config.seed": (("seq_length: 64", "seq_length: 64\n      seed: 7"),),
    "runner_wrapper.max_grad_norm": ((CLIPS, f"{CLIPS}  max_grad_norm: 2.0\n"),),
    "parallel_config.use_seq_parallel": (("expert_parallel: 1", "expert_parallel: 1\n  use_seq_parallel: True"),),
    "model.model_config.vocab_size": (),
    "optimizer.betas": (),
}


@pytest.mark.parametrize("key", CASES)
@pytest.mark.parametrize("reader", range(len(READERS)), ids=["2.0", "2.1", "manual-only"])
def test_the_columns_say_what_a_conversion_does(document: str, key: str, reader: int) -> None:
    shown = lines_of(document, key)[0][3 + reader]
    conversion = converted(edited(*CASES[key]), READERS[reader])
    outcome = next(entry.outcome for entry in conversion.entries if entry.graph == key)
    expected = {Fate.DROPPED: f"dropped ({outcome.effect})", Fate.REFUSED: "refused"}
    assert shown.partition(" unless")[0] == expected.get(outcome.fate, "yes")


def test_a_value_that_holds_anyway_is_not_refused(document: str) -> None:
    key, text = "runner_wrapper.max_grad_norm", edited((CLIPS, f"{CLIPS}  max_grad_norm: 1.0\n"))
    assert lines_of(document, key)[0][5] == "refused unless `1.0`"
    outcome = next(entry.outcome for entry in converted(text, Options(manual_only=True)).entries if entry.graph == key)
    assert outcome.fate is Fate.DROPPED
