"""The commands as functions: files in, files and messages out, an exit status back."""

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from msmigrate.options import Options
from msmigrate.problems import Exit, UnreadableError, UsageError, UserError
from msmigrate.streams import print_result, say
from msmigrate.yaml.scalars import Value
from msmigrate.yaml.source import read_source, write_whole

if TYPE_CHECKING:
    from msmigrate.convert import Conversion


@dataclass(frozen=True, slots=True)
class ConvertRequest:
    """One call of `msmigrate convert`."""

    graph: str
    output: str | None
    in_place: bool
    options: Options
    hf_config: str | None
    sets: tuple[str, ...]
    report: str | None
    report_format: str
    check: bool
    dry_run: bool


def run_convert(request: ConvertRequest) -> Exit:
    """Convert one file; the YAML goes to standard output or to a file, all else to standard error."""
    from msmigrate.convert import AlreadyPynativeError, convert
    from msmigrate.hf_config import read_hf_config, with_local_config
    from msmigrate.report import remarks, summary
    from msmigrate.yaml.document import parse

    _refuse_clashing_paths(request)
    source = read_source(request.graph)
    document = parse(source)
    options = replace(request.options, overrides=read_overrides(request.sets))
    if request.hf_config is not None:
        config, path = read_hf_config(request.hf_config)
        options = replace(options, hf_config=config, hf_config_path=path)
    try:
        conversion = convert(document, with_local_config(options, document))
    except AlreadyPynativeError as known:
        say(str(known))
        return Exit.DONE
    for remark in remarks(conversion):
        say(remark)
    _write_report(conversion, request)
    if conversion.text is None:
        say(f"{source.name}: nothing was written: {_counted(len(conversion.refusals), 'reason')} above")
        return Exit.NO
    status = _deliver(source.encode(conversion.text), request)
    say(f"{source.name}: {summary(conversion)}")
    return status


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def read_overrides(sets: Sequence[str]) -> dict[str, Value]:
    """`--set KEY=VALUE` options as values by dotted path; raises UsageError for an unknown key or a wrong type."""
    from msmigrate.pynative.overrides import parse_override

    return dict(parse_override(text) for text in sets)


def _deliver(data: bytes, request: ConvertRequest) -> Exit:
    """Write, print or compare the output."""
    target = request.graph if request.in_place else request.output
    to_file = target is not None and target != "-"
    if request.check:
        if not to_file:
            raise UsageError("--check needs -o FILE to compare with")
        assert target is not None
        return _compare(target, data)
    if request.dry_run:
        return Exit.DONE
    if not to_file:
        print_result(data)
        return Exit.DONE
    assert target is not None
    if request.in_place and os.path.lexists(f"{target}.bak"):
        raise UsageError(f"--in-place keeps the old file as {target}.bak, which exists already; move it away")
    write_whole(target, data, backup=f"{target}.bak" if request.in_place else None)
    return Exit.DONE


def _refuse_clashing_paths(request: ConvertRequest) -> None:
    """No output may stand where the input, another output or a kept file is."""
    backup = f"{request.graph}.bak" if request.in_place else None
    if request.output is not None and _same(request.output, request.graph):
        raise UsageError(f"-o {request.output} is the input file; --in-place replaces it and keeps {request.graph}.bak")
    for taken in (request.graph, request.output, backup):
        if request.report is not None and taken is not None and _same(request.report, taken):
            raise UsageError(f"--report {request.report} would overwrite {taken}; give it a path of its own")


def _same(left: str, right: str) -> bool:
    return "-" not in (left, right) and os.path.realpath(left) == os.path.realpath(right)


def _compare(path: str, data: bytes) -> Exit:
    try:
        present = Path(path).read_bytes()
    except FileNotFoundError:
        present = b""
    except OSError as error:
        raise UnreadableError(f"{path} cannot be read: {error.strerror}") from error
    if present == data:
        return Exit.DONE
    say(f"{path} would change")
    return Exit.NO


def _write_report(conversion: "Conversion", request: ConvertRequest) -> None:
    from msmigrate.report import markdown_report, report_object, text_report

    if request.report is None:
        return
    if request.report_format == "json":
        text = json.dumps(report_object(conversion), ensure_ascii=False, indent=1, allow_nan=False) + "\n"
    else:
        text = (markdown_report if request.report_format == "markdown" else text_report)(conversion)
    if request.report == "-":
        say(text.rstrip("\n"))
        return
    write_whole(request.report, text.encode())


def run_lint(paths: Sequence[str], output_format: str) -> Exit:
    """Lint files; the highest status of all of them."""
    from msmigrate.findings import Finding, Severity
    from msmigrate.lint import findings_object, lint, syntax_finding

    findings: list[Finding] = []
    read = 0
    status = Exit.DONE
    for path in paths:
        try:
            source = read_source(path)
        except UnreadableError as error:
            say(str(error))
            status = Exit.UNREADABLE
            continue
        try:
            found = lint(source)
        except UserError as error:
            found = [syntax_finding(source, error)]
        read += 1
        findings += found
    if any(finding.severity is not Severity.NOTE for finding in findings):
        status = max(status, Exit.NO)
    if output_format == "json":
        text = json.dumps(findings_object(findings), ensure_ascii=False, indent=1) + "\n"
    else:
        text = "".join(f"{finding}\n" for finding in findings)
    print_result(text.encode())
    if output_format == "text":
        say(f"{_counted(read, 'file')} checked: " + (_counted(len(findings), "finding") if findings else "no findings"))
    return status


def run_schema(output: str | None, *, check: bool) -> Exit:
    """Print or write the JSON schema of pynative.yaml, or compare it with a file."""
    from msmigrate.pynative.schema import pynative_schema

    data = (json.dumps(pynative_schema(), ensure_ascii=False, indent=2) + "\n").encode()
    if check:
        if output is None:
            raise UsageError("--check needs -o FILE to compare with")
        return _compare(output, data)
    if output is None or output == "-":
        print_result(data)
        return Exit.DONE
    write_whole(output, data)
    return Exit.DONE
