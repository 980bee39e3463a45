"""The table itself: every row names a declared key, a reason, and nothing twice."""

from msmigrate.mapping.outcome import Fate
from msmigrate.mapping.rows import match
from msmigrate.mapping.table import BY_GRAPH_PATH, DERIVATIONS, ROWS
from msmigrate.pynative import Config, Model, nested_section, specs_of
from msmigrate.pynative.families import ARCHITECTURES, FAMILY_DEFAULTS, READER_DEFAULTS

FREE = ("model.*", "train_dataset.dataloader.handler")
MAPPINGS = ("recompute.select_module", "recompute_comm.select_module")
"""Keys whose rows may name a key of the user's inside them."""


def test_every_target_is_a_declared_key() -> None:
    specs = specs_of(Config)
    for row in ROWS:
        if row.pynative is None or row.pynative in FREE:
            continue
        mapping = next((path for path in MAPPINGS if row.pynative.startswith(f"{path}.")), row.pynative)
        assert mapping in specs, row
        assert nested_section(specs[mapping].annotation) is None, row


def test_every_dropped_or_refused_row_has_a_reason() -> None:
    for row in ROWS:
        if row.rule is None and row.fate in (Fate.DROPPED, Fate.REFUSED):
            assert row.why, row


def test_computed_rows_have_a_derivation() -> None:
    for row in ROWS:
        if row.fate is Fate.COMPUTED and row.rule is None:
            assert row.pynative in DERIVATIONS, row


def test_the_manuals_tables_are_all_there() -> None:
    sections = {row.manual for row in ROWS}
    assert {"2.2", "3.2", "4.2", "5.2", "6.2", "7.2", "8.2", "9.1", "appendix"} <= sections


def test_every_key_of_the_manual_is_reachable() -> None:
    """Each pynative key of the manual is written by some row, or is one that only PyNative mode has."""
    only_pynative = {
        "checkpoint.load_worker_number", "training.deterministic", "parallelism.data_parallel_shard_strategy",
    }  # fmt: skip
    written = {row.pynative for row in ROWS}
    for path, spec in specs_of(Config).items():
        if spec.key.manual is None or nested_section(spec.annotation) or path.startswith("model."):
            continue
        assert path in written or path in only_pynative, path


def test_matching_prefers_the_longest() -> None:
    found = match(BY_GRAPH_PATH, "parallel.parallel_optimizer_config.x")
    assert found is not None
    assert found.graph == "parallel.parallel_optimizer_config.*"
    assert match(BY_GRAPH_PATH, "nowhere.at.all") is None


def test_family_defaults_name_declared_keys() -> None:
    known = {name for spec in specs_of(Model).values() for name in (spec.name, *spec.key.aliases)}
    for family, defaults in FAMILY_DEFAULTS.items():
        assert set(defaults) <= known, family
    assert set(ARCHITECTURES) <= set(FAMILY_DEFAULTS)
    readers = {spec.key.reader_name for spec in specs_of(Model).values()} - {None}
    assert readers == set(READER_DEFAULTS)
