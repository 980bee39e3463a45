"""The account of a conversion: every leaf once, as JSON for machines, as text and Markdown for people."""

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from msmigrate.entries import Conversion, Entry
from msmigrate.mapping.outcome import Effect, Fate, Outcome
from msmigrate.yaml.scalars import Value, spell

VERSION = 1
_QUIET = (Fate.SAME, Fate.RENAMED, Fate.FLATTENED)


def report_object(conversion: Conversion) -> dict[str, object]:
    """The report as the contract's JSON object (contract, section 3)."""
    return {
        "version": VERSION,
        "source": {
            "path": conversion.document.source.name,
            "mode": conversion.mode.value,
            "family": conversion.family.value,
        },
        "target": conversion.options.target.value,
        "facts": {name: {"value": fact.value, "from": fact.source} for name, fact in conversion.facts.items()},
        "entries": [_entry_object(entry, file_of(conversion, entry)) for entry in conversion.entries],
        "totals": totals(conversion),
    }


def totals(conversion: Conversion) -> dict[str, int]:
    """Leaves read, and how many met each fate; the fates add up to the leaves."""
    counted = Counter(entry.outcome.fate for entry in conversion.entries if entry.source is not None)
    return {"leaves_read": sum(counted.values()), **{fate.value: counted[fate] for fate in Fate}}


def _entry_object(entry: Entry, file: str) -> dict[str, object]:
    span = entry.span
    outcome = entry.outcome
    place = None
    if span is not None:
        place = {
            "line": span.start.line,
            "column": span.start.column,
            "end_line": span.end.line,
            "end_column": span.end.column,
        }
    return {
        "graph": entry.graph,
        "pynative": entry.pynative,
        "fate": outcome.fate.value,
        "effect": outcome.effect.value,
        "old": _json_value(entry.old),
        "new": _json_value(entry.new),
        "why": "; ".join(part for part in (_told(outcome), f"in {file}" if file else "") if part),
        "arithmetic": outcome.arithmetic,
        "span": place,
    }


def _json_value(value: Value) -> Value:
    """A value that JSON can hold: numbers that are not finite as their YAML text."""
    if isinstance(value, float) and not math.isfinite(value):
        return spell(value)
    if isinstance(value, list):
        return [_json_value(item) for item in value]
    if isinstance(value, dict):
        return {name: _json_value(item) for name, item in value.items()}
    return value


def summary(conversion: Conversion) -> str:
    """One line: what was read and what became of it."""
    counts = totals(conversion)
    parts = ", ".join(f"{counts[fate.value]} {fate.value}" for fate in Fate if counts[fate.value])
    added = sum(1 for entry in conversion.entries if entry.source is None and entry.outcome.writes)
    return f"{counts['leaves_read']} keys read: {parts}; {added} written because the modes differ"


def remarks(conversion: Conversion) -> Iterator[str]:
    """What a user must not miss: refusals, unknown keys, effects on training, notes; a sentence each with its place."""
    stopping = {entry.outcome.why for entry in conversion.refusals}
    for entry in conversion.refusals:
        yield f"{place(conversion, entry)}: refused: {_sentence(entry)}"
    told: set[str] = set()
    for entry in conversion.entries:
        outcome = entry.outcome
        if outcome.fate is Fate.UNKNOWN:
            if outcome.why not in told:
                yield f"{place(conversion, entry)}: unknown: {_told(outcome)}"
            told.add(outcome.why)
        elif outcome.effect is Effect.TRAINING and outcome.why not in stopping:
            yield f"{place(conversion, entry)}: changes training: {_sentence(entry)}"
    for note in conversion.notes:
        yield f"{conversion.document.source.name}: note: {note}"


def place(conversion: Conversion, entry: Entry) -> str:
    """`file:line:col` of an entry, or the file's name for a key that the file does not have."""
    name = file_of(conversion, entry) or conversion.document.source.name
    return f"{name}:{entry.span.start.line}:{entry.span.start.column}" if entry.span else name


def file_of(conversion: Conversion, entry: Entry) -> str:
    """The file that an entry comes from when the converted file includes it; empty for the file itself."""
    if entry.span is None:
        return ""
    name = conversion.document.name_of(entry.span.start)
    return name if name != conversion.document.source.name else ""


def _sentence(entry: Entry) -> str:
    return f"`{entry.source or entry.outcome.target}`: {_told(entry.outcome)}"


def _told(outcome: Outcome) -> str:
    """The reason, and what to do about it."""
    return f"{outcome.why}; {outcome.help}" if outcome.help else outcome.why


def text_report(conversion: Conversion) -> str:
    """The account for a terminal: what was computed, dropped, written and refused, with the arithmetic."""
    lines = [
        f"{conversion.document.source.name} → {conversion.mode.other}.yaml for MindFormers {conversion.options.target}"
    ]
    lines += [f"  {name}: {fact.value} (from {fact.source})" for name, fact in conversion.facts.items()]
    for title, rows in _groups(conversion):
        lines += ["", title]
        lines += [f"  {row.left} → {row.right}" + (f"\n      {row.remark}" if row.remark else "") for row in rows]
    lines += ["", summary(conversion)]
    return "\n".join(lines) + "\n"


def markdown_report(conversion: Conversion) -> str:
    """The account as Markdown tables, fit for a merge request."""
    result = conversion.mode.other
    lines = [f"## {conversion.document.source.name} → {result}.yaml (MindFormers {conversion.options.target})", ""]
    lines += [summary(conversion), ""]
    lines += [f"- {remark}" for remark in remarks(conversion)]
    for title, rows in _groups(conversion):
        lines += ["", f"### {title}", "", f"| {conversion.mode} | {result} | why |", "|---|---|---|"]
        lines += ["| " + " | ".join(_cell(text) for text in (row.left, row.right, row.remark)) + " |" for row in rows]
    return "\n".join(lines).rstrip() + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


@dataclass(frozen=True, slots=True)
class _Row:
    """Entries that share their outcome and its reason."""

    left: str
    right: str
    remark: str


def _groups(conversion: Conversion) -> Iterator[tuple[str, list[_Row]]]:
    titles = {
        Fate.REFUSED: "Refused",
        Fate.UNKNOWN: "Unknown",
        Fate.COMPUTED: "Computed",
        Fate.DROPPED: "Dropped",
        Fate.RENAMED: "Renamed",
        Fate.FLATTENED: "Flattened",
        Fate.SAME: "Same",
    }
    for fate, title in titles.items():
        entries = [entry for entry in conversion.entries if entry.outcome.fate is fate and _has_source(entry)]
        if entries:
            yield f"{title} ({len(entries)})", [_row(group) for group in _shared(entries)]
    added = [entry for entry in conversion.entries if not _has_source(entry)]
    if added:
        yield f"Written because the modes differ ({len(added)})", [_row(group) for group in _shared(added)]


def _has_source(entry: Entry) -> bool:
    return entry.source is not None or not entry.outcome.writes


def _shared(entries: list[Entry]) -> list[list[Entry]]:
    """Entries with the same target and reason together, in the order in which the first of them comes."""
    found: dict[object, list[Entry]] = {}
    for entry in entries:
        outcome = entry.outcome
        quiet = outcome.fate in _QUIET and not outcome.why
        key = (quiet, None if quiet and outcome.fate is not Fate.RENAMED else outcome.target, outcome.why)
        found.setdefault(key, []).append(entry)
    return list(found.values())


def _row(group: list[Entry]) -> _Row:
    first = group[0]
    left = ", ".join(_left(entry) for entry in group)
    if first.outcome.fate in _QUIET and len(group) > 1:
        return _Row(", ".join(str(entry.source) for entry in group), "as they are", "")
    return _Row(left, _right(first), _remark(first))


def _left(entry: Entry) -> str:
    return "(absent)" if entry.source is None else f"{entry.source}: {_shown(entry.old)}"


def _right(entry: Entry) -> str:
    outcome = entry.outcome
    if outcome.target is None:
        return "—"
    if outcome.fate in (Fate.DROPPED, Fate.REFUSED):
        return f"({outcome.target})"
    return f"{outcome.target}: {_shown(entry.new)}"


def _remark(entry: Entry) -> str:
    outcome = entry.outcome
    effect = "" if outcome.effect is Effect.NONE else f"effect on {outcome.effect}: "
    return effect + "; ".join(part for part in (_told(outcome), outcome.arithmetic) if part)


def _shown(value: Value) -> str:
    text = spell(value)
    return text if len(text) <= 60 else text[:57] + "…"
