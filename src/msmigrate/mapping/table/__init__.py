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

SHARED: tuple[Row, ...] = (
    *checkpoint.ROWS,
    *training.ROWS,
    *optimizer.ROWS,
    *learning_rate.ROWS,
    *parallelism.ROWS,
    *recompute.ROWS,
    *dataset.ROWS,
    *foreign_data.ROWS,
    *callbacks.ROWS,
    *graph_only.ROWS,
)
"""Rows of everything outside the model section."""
MCORE = Table((*SHARED, *model.ROWS))
LEGACY = Table((*SHARED, *legacy.ROWS))

ROWS: tuple[Row, ...] = MCORE.rows
BY_GRAPH_PATH: Mapping[str, Row] = MCORE.by_graph_path
DERIVED: tuple[Row, ...] = MCORE.derived
DERIVATIONS: Mapping[str, Derivation] = MCORE.derivations
LOST: Mapping[str, Effect] = MCORE.lost


def table_of(family: Family) -> Table:
    """The rows for files of a family."""
    return LEGACY if family is Family.LEGACY else MCORE
