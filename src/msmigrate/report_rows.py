"""The account of a conversion as people read it: a verdict, and tables whose rows put together what shares a reason."""

from collections.abc import Iterator
from dataclasses import dataclass

from msmigrate.entries import Conversion, Entry
from msmigrate.mapping.outcome import Effect, Fate, Outcome
from msmigrate.wording import counted, shown

_QUIET = (Fate.SAME, Fate.RENAMED, Fate.FLATTENED)
_TITLES = {
    Fate.REFUSED: "Refused",
    Fate.UNKNOWN: "Unknown",
    Fate.COMPUTED: "Computed",
    Fate.DROPPED: "Dropped",
    Fate.RENAMED: "Renamed",
    Fate.FLATTENED: "Flattened",
    Fate.SAME: "Same",
    Fate.DEFAULT: "Written because the modes differ",
}
_LOUD = (Fate.REFUSED, Fate.UNKNOWN)
_NAMED = 5
"""Keys that a verdict names."""


@dataclass(frozen=True, slots=True)
class Row:
    """Entries that share their outcome and its reason: keys read, keys written, the gravest effect, the reason."""

    left: str
    right: str
    effect: str
    why: str


def verdict(conversion: Conversion) -> str:
    """The first sentence of a report: whether the run would learn something else."""
    if conversion.text is None:
        return f"Refused, nothing is written: {counted(len(conversion.refusals), 'reason')} below."
    grave = [entry for entry in conversion.entries if entry.outcome.effect is Effect.TRAINING]
    changes = [entry.name for entry in grave if entry.outcome.fate is not Fate.UNKNOWN]
    unknown = [entry.name for entry in grave if entry.outcome.fate is Fate.UNKNOWN]
    parts = ["Nothing that is known changes training" if unknown else "Nothing changes training"]
    if changes:
        count = "1 loss changes" if len(changes) == 1 else f"{len(changes)} losses change"
        parts = [f"{count} training: {_named(changes)}"]
    if unknown:
        parts.append(f"{counted(len(unknown), 'unknown key')} may change it: {_named(unknown)}")
    return "; ".join(parts) + "."


def groups(conversion: Conversion) -> Iterator[tuple[str, list[Row]]]:
    """Titles with their rows: by fate, the gravest first; what aliases bring in by alias; defaults last."""
    plain = [entry for entry in conversion.entries if entry.brought is None or entry.outcome.fate in _LOUD]
    for fate, title in _TITLES.items():
        entries = [entry for entry in plain if entry.outcome.fate is fate]
        if entries and fate is not Fate.DEFAULT:
            yield f"{title} ({len(entries)})", [_row(group) for group in _shared(entries)]
    brought: dict[str, list[Entry]] = {}
    for entry in conversion.entries:
        if entry.brought is not None and entry.outcome.fate not in _LOUD:
            brought.setdefault(entry.brought.by, []).append(entry)
    for alias, entries in brought.items():
        yield f"Brought in by `{alias}` ({len(entries)})", [_row(group) for group in _shared(entries)]
    added = [entry for entry in plain if entry.outcome.fate is Fate.DEFAULT]
    if added:
        yield f"{_TITLES[Fate.DEFAULT]} ({len(added)})", [_row(group) for group in _shared(added)]


def told(outcome: Outcome) -> str:
    """The reason, and what to do about it."""
    return f"{outcome.why}; {outcome.help}" if outcome.help else outcome.why


def _shared(entries: list[Entry]) -> list[list[Entry]]:
    """Entries with the same target and reason together, in the order in which the first of them comes."""
    found: dict[object, list[Entry]] = {}
    for entry in entries:
        outcome = entry.outcome
        quiet = outcome.fate in _QUIET and not outcome.why
        target = None if quiet and outcome.fate is not Fate.RENAMED else outcome.target
        if outcome.fate in (Fate.DROPPED, Fate.UNKNOWN) and target is None:
            target = _section(entry.name)
        found.setdefault((outcome.fate, target, outcome.why), []).append(entry)
    return list(found.values())


def _row(group: list[Entry]) -> Row:
    first = group[0]
    effect = first.outcome.effect
    if first.outcome.fate in _QUIET and first.outcome.target is not None and len(group) > 1:
        return Row(_together([(entry.name, None) for entry in group]), "as they are", effect, _why(first))
    if first.source is None and first.brought is None:
        left = "(absent)" if first.outcome.fate is Fate.DEFAULT else "(worked out)"
        return Row(left, _right(first), effect, _why(first))
    return Row(_together([(entry.name, _old(entry)) for entry in group]), _right(first), effect, _why(first))


def _together(keys: list[tuple[str, str | None]]) -> str:
    """Keys with their values; of several in one section, the section is said once."""
    section = _section(keys[0][0]) + "." if len(keys) > 1 else ""
    while section and not all(name.startswith(section) for name, _ in keys):
        section = section[: section[:-1].rfind(".") + 1]
    texts = [name[len(section) :] + ("" if value is None else f": {value}") for name, value in keys]
    return (f"in {section[:-1]}: " if section else "") + ", ".join(texts)


def _old(entry: Entry) -> str:
    is_alias = entry.outcome.fate is Fate.FLATTENED and entry.outcome.target is None
    return str(entry.old) if is_alias else shown(entry.old)


def _section(name: str) -> str:
    return name.rpartition(".")[0]


def _right(entry: Entry) -> str:
    outcome = entry.outcome
    if outcome.target is None:
        return "written out" if outcome.fate is Fate.FLATTENED else "—"
    if outcome.fate in (Fate.DROPPED, Fate.REFUSED):
        return f"({outcome.target})"
    return f"{outcome.target}: {shown(entry.new)}"


def _why(entry: Entry) -> str:
    outcome = entry.outcome
    text = "; ".join(part for part in (told(outcome), outcome.arithmetic) if part)
    if text or outcome.fate not in _QUIET or outcome.target is None:
        return text
    if outcome.target == entry.name:
        return "the same in both modes"
    return "moved" if outcome.target.rpartition(".")[2] == entry.name.rpartition(".")[2] else "renamed"


def _named(names: list[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(f"`{name}`" for name in names[:_NAMED]) + more
