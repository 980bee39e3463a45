"""The cells of one row of the mapping table, by asking the code that converts."""

from msmigrate.mapping.back.context import plain
from msmigrate.mapping.document.markdown import NOTHING, code, default_of, text
from msmigrate.mapping.document.words import Words
from msmigrate.mapping.outcome import Effect, Fate, Outcome, written
from msmigrate.mapping.rows import Row, Table
from msmigrate.mapping.settle import spec_of, taken
from msmigrate.mapping.table.model import COMPLETED
from msmigrate.options import Options, Target
from msmigrate.pynative import Spec
from msmigrate.yaml.scalars import Value

READERS = (Options(target=Target.V2_0), Options(target=Target.V2_1), Options(manual_only=True))
"""The readers that the document has a column for."""
_NEVER_WRITTEN = (Fate.DROPPED, Fate.REFUSED, Fate.UNKNOWN)
_SOME_VALUE = "any value but the default"


def cells(row: Row, table: Table, words: Words) -> tuple[str, ...]:
    """The line of a graph key."""
    goes = row.pynative is None or row.fate in _NEVER_WRITTEN
    readers = (NOTHING,) * len(READERS) if goes else received(str(row.pynative), table, words)
    found = (code(row.graph), code(row.pynative), fate(row, words), *readers)
    return (*found, str(row.effect), text(reason(row, table, words)), manual(row.manual, words))


def received(pynative: str, table: Table, words: Words) -> tuple[str, ...]:
    """What each reader gets of a pynative key."""
    spec, lost = spec_of(pynative), table.lost.get(pynative, Effect.TRAINING)
    if spec is None:
        return (words.yes,) * len(READERS)
    return tuple(_received_by(options, spec, lost, words) for options in READERS)


def _received_by(options: Options, spec: Spec, lost: Effect, words: Words) -> str:
    found = _settled(options, spec, _SOME_VALUE, lost)
    if found.writes:
        return words.yes
    if found.fate is not Fate.REFUSED:
        return str(found.fate) if found.effect is Effect.NONE else f"{found.fate} ({found.effect})"
    spared = spec.default is not None and _settled(options, spec, plain(spec.default), lost).fate is Fate.DROPPED
    return words.refused_unless.format(value=default_of(spec)) if spared else str(found.fate)


def _settled(options: Options, spec: Spec, of: Value, lost: Effect) -> Outcome:
    return taken(options, written(Fate.COMPUTED, spec.path, of, ""), spec, lost)


def fate(row: Row, words: Words) -> str:
    """The fate, and whether it is always this one."""
    if row.rule is None or (not row.about and row.fate in (Fate.DROPPED, Fate.COMPUTED)):
        return str(row.fate)
    return f"{row.fate}, {words.by_rule if row.about else words.while_on}"


def reason(row: Row, table: Table, words: Words) -> str:
    """Why a key has its fate: by its own rule, for every value, or by the rule of the pynative key behind it."""
    if row.about or (row.why and row.fate is not Fate.COMPUTED):
        return row.about or row.why
    rule = next((other.about for other in table.derived if other.pynative == row.pynative), row.why)
    computes = row.rule is not None or row.fate is Fate.COMPUTED
    return rule if computes or not rule or rule == COMPLETED else words.left_out.format(rule=rule)


def manual(section: str | None, words: Words) -> str:
    """A section of the manual."""
    return words.appendix if section == "appendix" else text(section)


def by_section(rows: list[Row]) -> list[Row]:
    """Rows as a graph file has its keys: single ones first, then section by section, each in the table's order."""
    sections = list(dict.fromkeys(section_of(row) for row in rows))
    opened = {section_of(row) for row in rows if row.graph != section_of(row)}
    return sorted(rows, key=lambda row: (section_of(row) in opened, sections.index(section_of(row))))


def section_of(row: Row) -> str:
    """The section of a graph file that a row's key stands in; the key itself at the top."""
    return str(row.graph).partition(".")[0].partition("[")[0]
