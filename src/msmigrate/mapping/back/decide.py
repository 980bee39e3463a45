"""What becomes of each leaf of a pynative file, by the mapping table read from its pynative side."""

from collections.abc import Iterator

from msmigrate.findings import nearest
from msmigrate.mapping.back.context import BackContext
from msmigrate.mapping.back.pynative_file import Declared, declared
from msmigrate.mapping.model_values import SECTION
from msmigrate.mapping.outcome import LEARNS, UNTOLD, Effect, Fate, Outcome, carried, dropped, refused, written
from msmigrate.mapping.rows import Row, Table
from msmigrate.pynative import Config, Spec, Use, asks_for_nothing, nested_section, specs_of
from msmigrate.yaml.nodes import Leaf, Path, dotted

_CARRIED = (Fate.SAME, Fate.RENAMED, Fate.FLATTENED)
_LAYOUT = ("parallelism", "recompute", "recompute_comm", "swap")
"""Sections that spread a run over devices and memory: the numbers are the same."""


def decide(context: BackContext, table: Table, leaf: Leaf) -> Outcome:
    """The outcome for one leaf."""
    found = declared(leaf.path)
    if _switches_on(leaf.path):
        return _without_section(str(leaf.path[0]))
    if found is None:
        return _unknown(context, leaf)
    if found.is_section:
        return dropped("an empty section: PyNative mode takes its defaults")
    rows = rows_of(table, found)
    outcome = next((told for row in rows if row.back and (told := context.outcome(row.back))), None)
    return outcome or _carry(context, table, found, leaf)


def _switches_on(path: Path) -> bool:
    """Whether a key, known or not, stands in a section that asks for something by being there, such as lora_config."""
    section = specs_of(Config).get(str(path[0]))
    optional = section is not None and section.default is None and nested_section(section.annotation) is not None
    return len(path) > 1 and optional and section is not None and section.key.use is Use.REFUSED


def _without_section(name: str) -> Outcome:
    about = specs_of(Config)[name].key.meaning.rstrip(".")
    return refused(
        f"graph mode has no section {name} ({about}), and without it the run would learn something else",
        advice="go on without it by --allow-lossy, or take it out of the pynative file",
    )


def rows_of(table: Table, found: Declared) -> tuple[Row, ...]:
    """The rows of a pynative key: those of the name inside a mapping, else of the key itself."""
    inside = dotted((found.spec.path, *found.inside))
    return table.by_pynative.get(inside) or table.by_pynative.get(found.spec.path, ())


def carrying_row(rows: tuple[Row, ...]) -> Row | None:
    """The row under whose graph key the value itself is written; the first one in the table."""
    return next((row for row in rows if row.graph is not None and row.fate in _CARRIED), None)


def _carry(context: BackContext, table: Table, found: Declared, leaf: Leaf) -> Outcome:
    spec = found.spec
    target = _home(table, found, leaf.path)
    if target is None:
        return unsaid(spec, context.value(spec.path))
    known = table.by_graph_path.get(target)
    if known is not None and known.back is not None:
        return context.outcome(known.back) or dropped("PyNative mode has no pipeline stages to fill")
    if spec.path in context.options.overrides:
        if found.inside:
            return dropped("--set replaces the whole mapping", pynative=target)
        return written(Fate.COMPUTED, target, context.options.overrides[spec.path], "--set")
    fate = Fate.SAME if target == dotted(leaf.path) else Fate.RENAMED
    return carried(fate, target, leaf.node)


def _home(table: Table, found: Declared, path: Path) -> str | None:
    """The graph path under which a value moves as it is; a model key keeps the name that the file uses."""
    row = carrying_row(rows_of(table, found))
    if row is not None and row.graph is not None:
        return dotted((row.graph, *found.inside))
    if path[0] == "model":
        return dotted((SECTION, *path[1:]))
    return None


def unsaid(spec: Spec, value: object) -> Outcome:
    """The outcome for a pynative key that graph mode has no key for, by what its value asks for."""
    if _switches_on(tuple(spec.path.split("."))):
        return _without_section(spec.path.partition(".")[0])
    if asks_for_nothing(spec, value):
        return dropped("what holds without it, and graph mode has no such key")
    if spec.key.dead:
        return dropped("the readers never read it")
    section = spec.path.partition(".")[0]
    vital = spec.key.use is Use.REFUSED or (section in LEARNS and spec.key.use is Use.USED)
    if vital and section not in _LAYOUT:
        about = spec.key.meaning.rstrip(".")
        return refused(
            f"graph mode has no {spec.path} ({about})",
            advice="go on without it by --allow-lossy, or take it out of the pynative file",
        )
    if section in _LAYOUT:
        return dropped("the graph file leaves it to graph mode; the numbers are the same", Effect.MEMORY)
    return dropped("graph mode has no such key")


def _unknown(context: BackContext, leaf: Leaf) -> Outcome:
    """A key that no release knows; the check of the file has a word on what it probably means."""
    path = dotted(leaf.path)
    about = next((one for one in context.file.checked.findings if f"{path}.".startswith(f"{one.key}.")), None)
    why = about.message if about is not None else f"unknown key `{path}`"
    why, advice = f"{why}; it is not carried", about.help if about else None
    if nearest(str(leaf.path[0]), LEARNS) is None:
        return Outcome(Fate.UNKNOWN, Effect.NONE, why, help=advice)
    return Outcome(Fate.UNKNOWN, Effect.TRAINING, f"{why}, {UNTOLD}", help=advice)


def remaining(context: BackContext, table: Table) -> Iterator[Outcome]:
    """What graph keys are written without a leaf: those that follow, defaults that differ, keys that `--set` adds."""
    for row in table.rows:
        if row.graph is not None and row.back is not None and (outcome := context.outcome(row.back)):
            yield outcome
    for pynative, rows in table.by_pynative.items():
        home = carrying_row(rows)
        if home is None or home.graph is None or any(one.back for one in rows) or "*" in pynative:
            continue
        if not context.given(pynative) or pynative in context.options.overrides:
            outcome = context.bring(home.graph, pynative)
            if outcome is not None:
                yield outcome
    yield from _added_by_set(context, table)


def _added_by_set(context: BackContext, table: Table) -> Iterator[Outcome]:
    for path, value in context.options.overrides.items():
        names: Path = tuple(path.split("."))
        found = declared(names)
        assert found is not None
        rows = rows_of(table, found)
        if any(row.back for row in rows) or carrying_row(rows):
            continue
        target = _home(table, found, names)
        known = table.by_graph_path.get(target or "")
        if target is None:
            yield unsaid(found.spec, context.value(path))
        elif known is None or known.back is None:
            yield written(Fate.COMPUTED, target, value, "--set")
