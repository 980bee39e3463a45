"""The commands `lint` and `schema` as functions: files in, findings and texts out, an exit status back."""

import json
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from msmigrate.convert_files import compare, yaml_files
from msmigrate.problems import Exit, UnreadableError, UsageError, UserError
from msmigrate.streams import print_result, say
from msmigrate.yaml.source import read_source, write_whole

if TYPE_CHECKING:
    from msmigrate.pynative.start_up import Setting


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def run_lint(paths: Sequence[str], output_format: str, setting: "Setting") -> Exit:
    """Lint files for a reader and a number of ranks; the highest status of all of them."""
    from msmigrate.findings import Finding, Severity
    from msmigrate.lint import findings_object, lint, rules_ran, syntax_finding

    findings: list[Finding] = []
    read = ruled = 0
    status = Exit.DONE
    for path in files_of(paths):
        try:
            source = read_source(path)
        except UnreadableError as error:
            say(str(error))
            status = Exit.UNREADABLE
            continue
        try:
            found = lint(source, setting)
        except UserError as error:
            found = [syntax_finding(source, error)]
        read += 1
        ruled += rules_ran(found)
        findings += found
    if any(finding.severity is not Severity.NOTE for finding in findings):
        status = max(status, Exit.NO)
    if output_format == "json":
        text = json.dumps(findings_object(findings), ensure_ascii=False, indent=1) + "\n"
    else:
        text = "".join(f"{finding}\n" for finding in findings)
    print_result(text.encode())
    if ruled and setting.world is None:
        say("rules about ranks and batch were left out: give the number of ranks with --world N")
    if output_format == "text" and read:
        say(f"{_counted(read, 'file')} checked: " + (_counted(len(findings), "finding") if findings else "no findings"))
    return status


def files_of(paths: Sequence[str]) -> list[str]:
    """The files among `paths`, and those in the folders among them."""
    found: list[str] = []
    for path in paths:
        found += yaml_files(path) if path != "-" and os.path.isdir(path) else [path]
    return found


def run_schema(output: str | None, *, check: bool) -> Exit:
    """Print or write the JSON schema of pynative.yaml, or compare it with a file."""
    from msmigrate.pynative.schema import pynative_schema

    data = (json.dumps(pynative_schema(), ensure_ascii=False, indent=2) + "\n").encode()
    if check:
        if output is None:
            raise UsageError("--check needs -o FILE to compare with")
        return compare(output, data)
    if output is None or output == "-":
        print_result(data)
        return Exit.DONE
    write_whole(output, data)
    return Exit.DONE
