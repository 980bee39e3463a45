"""The account of a conversion: every leaf once, as JSON for machines, as text and Markdown for people."""

import math
from collections import Counter
from collections.abc import Iterator

from msmigrate.entries import Conversion, Entry
from msmigrate.mapping.outcome import Effect, Fate
from msmigrate.report_rows import groups, told, verdict
from msmigrate.yaml.scalars import Value, spell

VERSION = 1


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
        "why": "; ".join(part for part in (told(outcome), f"in {file}" if file else "") if part),
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
    added = [entry.outcome for entry in conversion.entries if entry.source is None and entry.brought is None]
    added = [outcome for outcome in added if outcome.writes]
    defaults = sum(outcome.fate is Fate.DEFAULT for outcome in added)
    told_apart = f"; {len(added) - defaults} more computed" if len(added) > defaults else ""
    return f"{counts['leaves_read']} keys read: {parts}{told_apart}; {defaults} written because the modes differ"


def remarks(conversion: Conversion) -> Iterator[str]:
    """What a user must not miss: refusals, unknown keys, effects on training, notes; a sentence each with its place."""
    stopping = {entry.outcome.why for entry in conversion.refusals}
    for entry in conversion.refusals:
        yield f"{place(conversion, entry)}: refused: {_sentence(entry)}"
    seen: set[str] = set()
    for entry in conversion.entries:
        outcome = entry.outcome
        if outcome.fate is Fate.UNKNOWN:
            if outcome.why not in seen:
                yield f"{place(conversion, entry)}: unknown: {told(outcome)}"
            seen.add(outcome.why)
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
    return f"`{entry.name}`: {told(entry.outcome)}"


def text_report(conversion: Conversion) -> str:
    """The account for a terminal: a verdict; what was computed, dropped, written and refused, with the arithmetic."""
    lines = [
        f"{conversion.document.source.name} → {conversion.mode.other}.yaml for MindFormers {conversion.options.target}",
        f"  {verdict(conversion)}",
    ]
    lines += [f"  {name}: {fact.value} (from {fact.source})" for name, fact in conversion.facts.items()]
    for title, rows in groups(conversion):
        lines += ["", title]
        for row in rows:
            lines.append(f"  {row.left} → {row.right}")
            effect = "" if row.effect == Effect.NONE else f"effect on {row.effect}: "
            lines += [f"      {effect}{row.why}"] if row.why else []
    lines += ["", summary(conversion)]
    return "\n".join(lines) + "\n"


def markdown_report(conversion: Conversion) -> str:
    """The account as Markdown tables, fit for a merge request."""
    result = conversion.mode.other
    lines = [f"## {conversion.document.source.name} → {result}.yaml (MindFormers {conversion.options.target})", ""]
    lines += [f"**{verdict(conversion)}**", "", summary(conversion)]
    noted = [f"- {remark}" for remark in remarks(conversion)]
    lines += ["", *noted] if noted else []
    for title, rows in groups(conversion):
        lines += ["", f"### {title}", "", f"| {conversion.mode} | {result} | effect | why |", "|---|---|---|---|"]
        for row in rows:
            cells = (row.left, row.right, row.effect, row.why)
            lines.append("| " + " | ".join(_cell(text) for text in cells) + " |")
    return "\n".join(lines).rstrip() + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
