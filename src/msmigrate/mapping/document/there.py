"""The way from graph.yaml to pynative.yaml: a table per subject, what else is written, what has no counterpart."""

from collections.abc import Iterator

from msmigrate.mapping.document.cells import READERS, by_section, cells, manual, received
from msmigrate.mapping.document.markdown import NOTHING, code, default_of, heading, table, text, value
from msmigrate.mapping.document.words import Words
from msmigrate.mapping.model_values import SECTION, from_family, spellings
from msmigrate.mapping.outcome import Carry, Effect, Fate
from msmigrate.mapping.rows import Row, Table, Unknown
from msmigrate.mapping.settle import spec_of
from msmigrate.mapping.table import MCORE, SHARED, SUBJECTS
from msmigrate.mapping.table.legacy import CLASS_DEFAULT
from msmigrate.mapping.table.model import COMPLETED
from msmigrate.pynative import Config, Model, Spec, nested_section, specs_of
from msmigrate.pynative.families import ARCHITECTURES

MODEL = "model"


def graph_rows() -> dict[str, list[Row]]:
    """Rows with a graph key by subject, the model last."""
    subjects = {name: by_section([row for row in rows if row.graph]) for name, rows in SUBJECTS.items()}
    shared = set(map(id, SHARED))
    return {**subjects, MODEL: by_section([row for row in MCORE.rows if row.graph and id(row) not in shared])}


def subjects(words: Words) -> Iterator[str]:
    """A table per subject, one line per graph key."""
    for name, rows in graph_rows().items():
        yield heading(3, words.subjects[name], name.replace("_", "-"))
        lines = [cells(row, MCORE, words) for row in rows]
        if name == MODEL:
            yield words.model_introduction
            lines += _model_lines(words)
        yield table(words.row_head, lines)


def _model_lines(words: Words) -> Iterator[tuple[str, ...]]:
    """Model keys that the row for all of them carries."""
    for name, spec in _moved_by_the_section().items():
        target = f"{MODEL}.{name}"
        row = Row(f"{SECTION}.{name}", target, Fate.FLATTENED, Effect.NONE, spec.key.meaning, spec.key.manual)
        graph, *rest = cells(row, MCORE, words)
        others = ", ".join(code(spelling) for spelling in spellings(name)[1:])
        yield (f"{graph} ({words.also} {others})" if others else graph, *rest)


def _moved_by_the_section() -> dict[str, Spec]:
    """Model keys without a row of their own."""
    return {name: spec for name, spec in specs_of(Model).items() if f"{SECTION}.{name}" not in MCORE.by_graph_path}


def defaults(rows: Table, words: Words) -> str:
    """Keys that are written without a graph key that names them, but for those that complete the model."""
    order = list(specs_of(Config))
    found = [row for row in rows.derived if row.about not in (COMPLETED, CLASS_DEFAULT)]
    found.sort(key=lambda row: order.index(str(row.pynative)))
    return table(words.defaults_head, [_default_line(row, rows, words) for row in found])


def _default_line(row: Row, rows: Table, words: Words) -> tuple[str, ...]:
    assert row.pynative is not None
    spec = spec_of(row.pynative)
    assert spec is not None
    default = words.worked_out if isinstance(row.default, Unknown) else value(row.default)
    theirs = (default, default_of(spec))
    readers = received(row.pynative, rows, words)
    return (code(row.pynative), *theirs, *readers, text(row.about), manual(row.manual, words))


def completed(words: Words) -> str:
    """Defaults of the families' classes for model keys that a file leaves out."""
    lines: list[tuple[str, ...]] = []
    for name in specs_of(Model):
        values = [_family_default(name, kind, words) for kind in ARCHITECTURES]
        if any(shown != NOTHING for shown in values):
            lines.append((code(f"{MODEL}.{name}"), *values))
    return table((words.completed_head, *map(code, ARCHITECTURES)), lines)


def _family_default(name: str, kind: str, words: Words) -> str:
    if name == "architectures":
        return value(ARCHITECTURES[kind])
    found = from_family(name, kind)
    if found is None or found.pynative is None or isinstance(found.value, Carry):
        return NOTHING
    spelt = found.pynative.removeprefix(f"{MODEL}.")
    shown = value(found.value)
    return shown if spelt == name else words.as_spelt.format(value=shown, name=code(spelt))


def only_pynative(words: Words) -> str:
    """Pynative keys that no graph key becomes and that no rule writes."""
    written = {row.pynative for row in MCORE.rows if row.graph or (row.derive and row.about != COMPLETED)}
    written |= {f"{MODEL}.{name}" for name in _moved_by_the_section()}
    specs = [spec for path, spec in specs_of(Config).items() if path not in written and not _is_section(spec)]
    return table(words.only_pynative_head, [_own_line(spec, words) for spec in specs])


def _own_line(spec: Spec, words: Words) -> tuple[str, ...]:
    known = [words.yes if spec.known_to(options.target) else words.no for options in READERS[:2]]
    use = words.only_msrt if spec.key.own else str(spec.key.use)
    return (
        code(spec.path), default_of(spec), *known, text(spec.key.meaning), use, manual(spec.key.manual, words),
    )  # fmt: skip


def _is_section(spec: Spec) -> bool:
    return nested_section(spec.annotation) is not None
