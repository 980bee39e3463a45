"""docs/mapping.md against real Graph-mode files: no key fares worse than its line says."""

from collections.abc import Iterator
from pathlib import Path

from msmigrate.convert import convert
from msmigrate.mapping.graph_file import GraphFile, model_family
from msmigrate.mapping.outcome import Effect, Fate, Outcome
from msmigrate.mapping.rows import Row, match
from msmigrate.mapping.table import table_of
from msmigrate.options import Options
from msmigrate.problems import UserError
from msmigrate.yaml.document import parse
from msmigrate.yaml.nodes import dotted, leaves
from msmigrate.yaml.source import read_source

GRAVITY = list(Effect)


def decisions(file: Path) -> Iterator[tuple[Row, Outcome]]:
    """The row and the decision for each key of a file that a row decides, but for missing facts."""
    document = parse(read_source(str(file)))
    conversion = convert(document, Options(world=8, samples=100000))
    graph = GraphFile(document)
    table = table_of(model_family(graph))
    outcomes = {entry.graph: entry.outcome for entry in conversion.entries if entry.graph is not None}
    for leaf in leaves(document.root):
        row, outcome = match(table.by_graph_path, graph.row_key(leaf.path)), outcomes[dotted(leaf.path)]
        if row is not None and not outcome.final:
            yield row, outcome


def test_no_key_fares_worse_than_its_line_says(shared: Path) -> None:
    seen = 0
    for file in sorted((shared / "corpus" / "graph").rglob("*.yaml")):
        try:
            found = list(decisions(file))
        except UserError:
            continue
        seen += len(found)
        for row, outcome in found:
            lost = outcome.fate in (Fate.DROPPED, Fate.REFUSED)
            if lost and row.pynative is None:
                assert GRAVITY.index(outcome.effect) <= GRAVITY.index(row.effect), (file.name, row.graph, outcome)
            if row.rule is None or not row.about:  # not marked as "by rule"
                computed = row.fate is Fate.COMPUTED
                assert computed or outcome.fate in (row.fate, Fate.DROPPED), (file.name, row.graph, outcome)
    assert seen > 5000
