"""The mapping table: every correspondence between graph.yaml and pynative.yaml, one row each, split by subject."""

from collections.abc import Mapping

from msmigrate.mapping.context import Derivation
from msmigrate.mapping.graph_file import Family
from msmigrate.mapping.outcome import Effect
from msmigrate.mapping.rows import Row, Table
from msmigrate.mapping.table import (
    callbacks,
    checkpoint,
    dataset,
    experts,
    foreign_data,
    graph_only,
    learning_rate,
    legacy,
    model,
    optimizer,
    parallelism,
    recompute,
    training,
)

SUBJECTS: Mapping[str, tuple[Row, ...]] = {
    "checkpoint": checkpoint.ROWS,
    "training": training.ROWS,
    "optimizer": optimizer.ROWS,
    "learning_rate": learning_rate.ROWS,
    "parallelism": parallelism.ROWS,
    "recompute": recompute.ROWS,
    "dataset": dataset.ROWS,
    "foreign_data": foreign_data.ROWS,
    "callbacks": callbacks.ROWS,
    "graph_only": graph_only.ROWS,
}
"""Rows of everything outside the model section, by subject."""
SHARED: tuple[Row, ...] = tuple(row for rows in SUBJECTS.values() for row in rows)
MCORE = Table((*SHARED, *model.ROWS, *experts.ROWS))
LEGACY = Table((*SHARED, *legacy.ROWS))

ROWS: tuple[Row, ...] = MCORE.rows
BY_GRAPH_PATH: Mapping[str, Row] = MCORE.by_graph_path
DERIVED: tuple[Row, ...] = MCORE.derived
DERIVATIONS: Mapping[str, Derivation] = MCORE.derivations
LOST: Mapping[str, Effect] = MCORE.lost


def table_of(family: Family) -> Table:
    """The rows for files of a family."""
    return LEGACY if family is Family.LEGACY else MCORE
