"""What is wrong with a pynative.yaml, key by key."""

from collections.abc import Sequence

from msmigrate.findings import Finding, Severity
from msmigrate.problems import UnreadableError, UserError
from msmigrate.pynative.check import check_document
from msmigrate.pynative.load import graph_sections
from msmigrate.pynative.start_up import Setting, start_up_findings
from msmigrate.yaml.document import parse
from msmigrate.yaml.nodes import Mark, Span
from msmigrate.yaml.source import Source

VERSION = 1


def lint(source: Source, setting: Setting | None = None) -> list[Finding]:
    """Findings in file order: unknown keys, wrong types, values out of range, missing keys, broken start-up rules.

    Raises UnreadableError for YAML that cannot be read.
    """
    document = parse(source)
    graph = graph_sections(document.root.get)
    if graph:
        span = next(entry.key.span for entry in document.root.entries if entry.key.text == graph[0])
        message = f"a Graph-mode file (it has `{graph[0]}`)"
        advice = f"convert it first: msmigrate convert {source.name} -o OUT.yaml"
        return [Finding("P007", "graph-mode", Severity.ERROR, source.name, graph[0], span, message, advice)]
    checked = check_document(document)
    findings = [*checked.findings, *start_up_findings(checked, setting or Setting())]
    return sorted(findings, key=lambda finding: finding.span.start.index if finding.span else len(source.text))


def syntax_finding(source: Source, error: UserError) -> Finding:
    """A YAML fault as a finding."""
    span = None
    message = str(error)
    if isinstance(error, UnreadableError):
        message = error.problem
        if error.line is not None and error.column is not None:
            mark = Mark(0, error.line, error.column)
            span = Span(mark, mark)
    return Finding("Y001", "yaml", Severity.ERROR, source.name, "", span, message)


def rules_ran(findings: Sequence[Finding]) -> bool:
    """Whether what `lint` found comes from a pynative file whose keys were checked."""
    return not any(finding.code in ("Y001", "P007") for finding in findings)


def findings_object(findings: Sequence[Finding]) -> dict[str, object]:
    """Findings as the contract's JSON object (contract, section 3)."""
    return {"version": VERSION, "findings": [_object(finding) for finding in findings]}


def _object(finding: Finding) -> dict[str, object]:
    start = finding.span.start if finding.span else None
    end = finding.span.end if finding.span else None
    return {
        "code": finding.code,
        "name": finding.name,
        "severity": finding.severity.value,
        "path": finding.path,
        "key": finding.key,
        "line": start.line if start else None,
        "column": start.column if start else None,
        "end_line": end.line if end else None,
        "end_column": end.column if end else None,
        "message": finding.message,
        "help": finding.help,
        "fix": None,
    }
