"""A parsed pynative.yaml against the declared keys: findings, and the typed value of every key that is right."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from msmigrate.findings import Finding, Severity, nearest
from msmigrate.pynative.keys import Spec, nested_section, specs_of
from msmigrate.pynative.sections import Config
from msmigrate.pynative.values import Mismatch, typed
from msmigrate.yaml.document import Document, effective_entries, value_of
from msmigrate.yaml.nodes import Entry, Mapping, Scalar, Span, resolved
from msmigrate.yaml.scalars import Value

MOVED = {"train_dataset.python_multiprocessing": "train_dataset.dataloader.python_multiprocessing"}
"""Where the manual names a second place for a key (table 8.2): msrt takes it there with a warning."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a key was given: a span in the file, or None for a command-line override."""

    span: Span | None

    @property
    def line(self) -> int | None:
        return self.span.start.line if self.span else None

    @property
    def column(self) -> int | None:
        return self.span.start.column if self.span else None


@dataclass(frozen=True, slots=True)
class Written:
    """A key or a section as a file has it; `span` is None for a command-line override."""

    path: str
    """Dotted path with the name that the file uses, which may be an alias."""
    value: Value
    """What the reader makes of it, before any conversion; {} for a section with keys."""
    span: Span | None
    """Where its name stands."""


@dataclass(slots=True)
class Checked:
    """The outcome of a check: findings in file order; typed values, places, and keys as written by canonical path."""

    name: str
    findings: list[Finding] = field(default_factory=list)
    values: dict[str, object] = field(default_factory=dict)
    given: dict[str, Place] = field(default_factory=dict)
    written: dict[str, Written] = field(default_factory=dict)

    def add(self, code: str, name: str, severity: Severity, key: str, span: Span | None, *text: str | None) -> None:
        message, advice = text[0], text[1] if len(text) > 1 else None
        assert message is not None
        self.findings.append(Finding(code, name, severity, self.name, key, span, message, advice))


def check_document(document: Document) -> Checked:
    """Every key of a parsed file checked for name, type, bounds and choices; required keys that are missing."""
    checked = Checked(document.source.name)
    _check_section(checked, document.root, Config, "")
    for spec in specs_of(Config).values():
        if spec.key.required and spec.path not in checked.values and not _reported(checked, spec.path):
            checked.add(
                "P003", "missing-key", Severity.ERROR, spec.path, None, f"`{spec.path}` is missing; it is needed"
            )
    return checked


def _reported(checked: Checked, path: str) -> bool:
    return any(finding.key == path for finding in checked.findings)


def _check_section(checked: Checked, mapping: Mapping, section: type, prefix: str) -> None:
    specs = {spec.name: spec for path, spec in specs_of(section, prefix).items() if "." not in path[len(prefix) :]}
    by_alias = {alias: spec for spec in specs.values() for alias in spec.key.aliases}
    for entry in effective_entries(mapping):
        name = entry.key.text
        moved = MOVED.get(prefix + name)
        spec = specs.get(name) or by_alias.get(name) or (specs_of(Config)[moved] if moved else None)
        if spec is None:
            _unknown(checked, entry, prefix, specs)
            continue
        if moved:
            checked.add(
                "P005",
                "wrong-place",
                Severity.WARNING,
                prefix + name,
                entry.key.span,
                f"`{prefix}{name}` is taken as `{moved}`",
                "the MindFormers readers take it only there: move it",
            )
        _check_entry(checked, entry, spec)


def _check_entry(checked: Checked, entry: Entry, spec: Spec) -> None:
    section = nested_section(spec.annotation)
    value = resolved(entry.value)
    name = spec.path.removesuffix(spec.name) + entry.key.text
    if section is not None:
        shown: Value = {} if isinstance(value, Mapping) else None
        checked.written.setdefault(spec.path, Written(name, shown, entry.key.span))
    if section is not None and isinstance(value, Mapping):
        checked.given[spec.path] = Place(entry.key.span)
        _check_section(checked, value, section, spec.path + ".")
        return
    if section is not None:
        if isinstance(value, Scalar) and value_of(value) is None:
            return
        checked.add(
            "P002",
            "wrong-type",
            Severity.ERROR,
            spec.path,
            value.span,
            f"`{spec.path}` is a section of keys; a single value or a list stands there",
        )
        return
    plain = value_of(value)
    checked.written.setdefault(spec.path, Written(name, plain, entry.key.span))
    _store(checked, spec, plain, Place(value.span))


def _store(checked: Checked, spec: Spec, value: Value, place: Place) -> None:
    if spec.path in checked.given and spec.path in checked.values and place.span is not None:
        checked.add(
            "P006",
            "given-twice",
            Severity.ERROR,
            spec.path,
            place.span,
            f"`{spec.path}` is given twice, the other time on line {checked.given[spec.path].line} under another name",
            "remove one of them",
        )
        return
    found = typed(spec, value)
    checked.given[spec.path] = place
    if isinstance(found, Mismatch):
        checked.add("P002", "wrong-type", Severity.ERROR, spec.path, place.span, found.message, found.help)
        return
    checked.values[spec.path] = found


def _unknown(checked: Checked, entry: Entry, prefix: str, specs: dict[str, Spec]) -> None:
    path = prefix + entry.key.text
    place = f" in section `{prefix[:-1]}`" if prefix else ""
    checked.add(
        "P001",
        "unknown-key",
        Severity.ERROR,
        path,
        entry.key.span,
        f"unknown key `{entry.key.text}`{place}",
        advice_on_name(entry.key.text, prefix, tuple(specs)),
    )


def advice_on_name(name: str, prefix: str, siblings: tuple[str, ...]) -> str | None:
    """What a misspelt or misplaced key probably means: a near name beside it, or its place in another section."""
    close = nearest(name, siblings)
    if close is not None:
        return f"did you mean `{close}`?"
    elsewhere = [path for path in specs_of(Config) if path.rpartition(".")[2] == name and path != prefix + name]
    if elsewhere:
        return f"its place is `{elsewhere[0]}`"
    return None


def apply_overrides(checked: Checked, overrides: Iterator[tuple[str, Value]]) -> None:
    """Set keys by dotted path, as `--set KEY=VALUE` does; unknown keys and wrong types become findings."""
    specs = specs_of(Config)
    for path, value in overrides:
        spec = specs.get(path)
        if spec is None or nested_section(spec.annotation) is not None:
            close = nearest(path, specs)
            checked.add(
                "P001",
                "unknown-key",
                Severity.ERROR,
                path,
                None,
                f"--set {path}: " + ("this is a section, not a key" if spec else "unknown key"),
                f"did you mean `{close}`?" if close and not spec else None,
            )
            continue
        checked.findings = [finding for finding in checked.findings if finding.key != path]
        checked.values.pop(path, None)
        checked.written[path] = Written(path, value, None)
        _store(checked, spec, value, Place(None))
