"""Files of legacy models: their own rows, and what their classes take for keys that a file leaves out."""

from msmigrate.mapping.document.cells import by_section, cells
from msmigrate.mapping.document.markdown import NOTHING, code, table, text, value
from msmigrate.mapping.document.there import defaults
from msmigrate.mapping.document.words import Words
from msmigrate.mapping.legacy_classes import ARCHITECTURES, SECTION, UNLIKE, UNLIKE_NETWORKS, Architecture
from msmigrate.mapping.rows import Table
from msmigrate.mapping.table import LEGACY
from msmigrate.mapping.table.legacy import ROWS


def legacy_keys(words: Words) -> str:
    """One line per graph key of a legacy model."""
    return table(words.row_head, [cells(row, LEGACY, words) for row in by_section([row for row in ROWS if row.graph])])


def legacy_defaults(words: Words) -> str:
    """Pynative keys that are worked out for a legacy model, but for the defaults of classes."""
    return defaults(_own_table(), words)


def _own_table() -> Table:
    return Table(ROWS)


def class_defaults(words: Words) -> str:
    """What each class takes for an absent key, by the key as legacy files spell it."""
    classes = list(ARCHITECTURES.values())
    head = [f"{code(name)} → {code(found.model_type)}" for name, found in ARCHITECTURES.items()]
    names = dict.fromkeys(name for found in classes for name in found.reads)
    lines = [(code(f"{SECTION}.{name}"), *(_taken(found, name, words) for found in classes)) for name in names]
    fixed = dict.fromkeys(name for found in classes for name in found.fixed)
    lines += [(code(f"model.{name}"), *(_fixed(found, name) for found in classes)) for name in fixed]
    return table((words.legacy_classes_head, *head), lines)


def _taken(found: Architecture, name: str, words: Words) -> str:
    if name not in found.reads:
        return words.not_read
    return words.by_file if found.reads[name] is None else value(found.reads[name])


def _fixed(found: Architecture, name: str) -> str:
    return value(found.fixed[name][0]) if name in found.fixed else NOTHING


def unlike(words: Words) -> str:
    """Classes and networks that no PyNative family computes."""
    return table(words.unlike_head, [(code(name), text(why)) for name, why in {**UNLIKE, **UNLIKE_NETWORKS}.items()])
