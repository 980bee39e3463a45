"""The mapping table: every correspondence between graph.yaml and pynative.yaml, one row each, split by subject."""

from msmigrate.mapping.context import Derivation
from msmigrate.mapping.outcome import Effect
from msmigrate.mapping.rows import Row, by_graph_path
from msmigrate.mapping.table import (
    checkpoint,
    dataset,
    graph_only,
    learning_rate,
    model,
    optimizer,
    parallelism,
    recompute,
    training,
)

ROWS: tuple[Row, ...] = (
    *checkpoint.ROWS,
    *training.ROWS,
    *optimizer.ROWS,
    *learning_rate.ROWS,
    *parallelism.ROWS,
    *recompute.ROWS,
    *dataset.ROWS,
    *model.ROWS,
    *graph_only.ROWS,
)
BY_GRAPH_PATH: dict[str, Row] = by_graph_path(ROWS)
DERIVED: tuple[Row, ...] = tuple(row for row in ROWS if row.derive is not None)
DERIVATIONS: dict[str, Derivation] = {row.pynative: row.derive for row in DERIVED if row.pynative and row.derive}
LOST: dict[str, Effect] = {
    row.pynative: row.lost for row in sorted(ROWS, key=lambda row: row.derive is not None) if row.pynative
}
"""What would change for the run if a pynative key could not be written; a derived key's own row has the last word."""
