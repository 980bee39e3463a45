"""`msmigrate convert` and `reverse` on files: what is read, where each result goes, one status for all of them."""

import difflib
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from msmigrate.options import Options
from msmigrate.problems import Exit, UnreadableError, UsageError, UserError
from msmigrate.streams import print_result, say
from msmigrate.yaml.scalars import Value
from msmigrate.yaml.source import read_source, shown_path, write_whole

if TYPE_CHECKING:
    from msmigrate.entries import Conversion
    from msmigrate.yaml.document import Document

SUFFIXES = (".yaml", ".yml")
SCHEMA = "pynative.schema.json"
"""The schema file that a modeline names, beside the file it stands in."""


@dataclass(frozen=True, slots=True)
class ConvertRequest:
    """One call of `msmigrate convert`, or of `msmigrate reverse` (`back`)."""

    paths: tuple[str, ...]
    output: str | None
    out_dir: str | None
    in_place: bool
    options: Options
    hf_config: str | None
    sets: tuple[str, ...]
    report: str | None
    report_format: str
    diff: bool
    check: bool
    dry_run: bool
    back: bool = False
    modeline: bool = False


@dataclass(frozen=True, slots=True)
class Job:
    """One file: `output` is None for standard output."""

    source: str
    output: str | None


@dataclass(frozen=True, slots=True)
class Done:
    """What became of a file; `conversion` is None when it could not be read or was converted already."""

    job: Job
    status: Exit
    verdict: str
    conversion: "Conversion | None" = None


def run_convert(request: ConvertRequest) -> Exit:
    """Convert all files of a call; results to files or standard output, all else to standard error.

    With several files a failing one does not keep the others back; the highest status is the status of the call.
    """
    jobs = list(_jobs(request))
    _refuse_clashing_paths(request, jobs)
    options = _options(request)
    if request.modeline:
        say(f"the first line names {SCHEMA}, to be put beside the file: msmigrate schema pynative -o {SCHEMA}")
    done: list[Done] = []
    for job in jobs:
        try:
            done.append(_convert_one(job, request, options, alone=len(jobs) == 1))
        except UserError as error:
            if len(jobs) == 1:
                raise
            say(f"msmigrate: {error}")
            done.append(Done(job, error.status, "failed"))
    if len(jobs) > 1:
        _write_report([one.conversion for one in done if one.conversion is not None], request)
        say("\n".join(_table(done)))
    return max(one.status for one in done)


def _jobs(request: ConvertRequest) -> Iterator[Job]:
    folders = {
        path: yaml_files(path, without=request.out_dir) for path in request.paths if path != "-" and os.path.isdir(path)
    }
    if request.out_dir is None and not request.in_place and (folders or len(request.paths) > 1):
        raise UsageError("several files, or a folder, need --out-dir DIR for their results, or --in-place")
    for path in request.paths:
        if path not in folders:
            yield Job(path, _output(request, path, os.path.basename(path)))
            continue
        name = os.path.basename(os.path.abspath(path)) if len(folders) > 1 else ""
        for file in folders[path]:
            yield Job(file, _output(request, file, os.path.join(name, os.path.relpath(file, path))))


def yaml_files(folder: str, *, without: str | None = None) -> list[str]:
    """The YAML files in a folder and below it, sorted; `without` names a folder below it whose files are results.

    Links to nothing are among them: whoever reads the files says so. Raises UsageError when there is no file.
    """
    results = None if without is None else Path(without).resolve()
    if results == Path(folder).resolve():
        results = None
    found = sorted(str(file) for file in Path(folder).rglob("*") if _is_input(file, results))
    if not found:
        raise UsageError(f"there is no {' or '.join(SUFFIXES)} file in {shown_path(folder)}")
    return found


def _is_input(file: Path, results: Path | None) -> bool:
    if file.suffix.lower() not in SUFFIXES:
        return False
    if results is not None and file.parent.resolve().is_relative_to(results):
        return False
    return file.is_file() or (file.is_symlink() and not file.exists())


def _output(request: ConvertRequest, path: str, name: str) -> str | None:
    if request.in_place:
        return path
    if request.out_dir is not None:
        return os.path.join(request.out_dir, name)
    return None if request.output == "-" else request.output


def _refuse_clashing_paths(request: ConvertRequest, jobs: list[Job]) -> None:
    """No output may stand where an input, another output or a kept file is."""
    taken: dict[str, str] = {}
    for job in jobs:
        if job.output is None:
            continue
        if not request.in_place and any(_same(job.output, other.source) for other in jobs):
            raise UsageError(f"{shown_path(job.output)} is an input file; --in-place replaces it and keeps a .bak file")
        real = os.path.realpath(job.output)
        if real in taken:
            raise UsageError(f"{taken[real]} and {job.source} would both be written to {job.output}")
        taken[real] = job.source
    files = [path for job in jobs for path in (job.source, job.output, f"{job.source}.bak") if path is not None]
    if request.report is not None and any(_same(request.report, path) for path in files):
        raise UsageError(f"--report {request.report} would overwrite a file of this call; give it a path of its own")


def _same(left: str, right: str) -> bool:
    return "-" not in (left, right) and os.path.realpath(left) == os.path.realpath(right)


def _options(request: ConvertRequest) -> Options:
    from msmigrate.hf_config import read_hf_config

    options = replace(request.options, overrides=read_overrides(request.sets))
    if request.hf_config is None:
        return options
    config, path = read_hf_config(request.hf_config)
    return replace(options, hf_config=config, hf_config_path=path)


def read_overrides(sets: tuple[str, ...]) -> dict[str, Value]:
    """`--set KEY=VALUE` options as values by dotted path; raises UsageError for an unknown key or a wrong type."""
    from msmigrate.pynative.overrides import parse_override

    found = dict(parse_override(text) for text in sets)
    ratio, steps = (found.get(f"lr_scheduler.warmup_{form}") for form in ("ratio", "steps"))
    if ratio is not None and steps is not None:
        raise UsageError(
            f"--set lr_scheduler.warmup_ratio={ratio} and --set lr_scheduler.warmup_steps={steps} name one warm-up in "
            "two ways, and the ratio would win; give one of them"
        )
    return found


def _convert_one(job: Job, request: ConvertRequest, options: Options, *, alone: bool) -> Done:
    from msmigrate.entries import ConvertedAlreadyError
    from msmigrate.report import remarks, summary
    from msmigrate.yaml.document import parse
    from msmigrate.yaml.parts import with_parts

    source = read_source(job.source)
    document = with_parts(parse(source), job.source)
    try:
        conversion = _conversion(document, request, options)
    except ConvertedAlreadyError as known:
        idle = ", ".join(_idle_options(request, alone=alone))
        say(f"{known}; {idle} did nothing" if idle else str(known))
        return Done(job, Exit.DONE, f"{known.mode.label} already")
    for remark in remarks(conversion):
        say(remark)
    if alone:
        _write_report([conversion], request)
    if conversion.text is None:
        count = len(conversion.refusals)
        say(f"{source.name}: nothing was written: {count} reason{'' if count == 1 else 's'} above")
        return Done(job, Exit.NO, "refused", conversion)
    data = source.encode(conversion.text)
    if request.diff:
        print_result(_diff(source.text, conversion.text, source.name, job.output or f"{conversion.mode.other}.yaml"))
    status = _deliver(job, data, request)
    say(f"{source.name}: {summary(conversion)}")
    return Done(job, status, _verdict(request, status), conversion)


def _idle_options(request: ConvertRequest, *, alone: bool) -> Iterator[str]:
    """Options of a call that do nothing for a file that is converted already; a report tells of other files too."""
    given = {
        "-o": request.output, "--out-dir": request.out_dir, "--in-place": request.in_place, "--set": request.sets,
        "--hf-config": request.hf_config, "--modeline": request.modeline, "--report": alone and request.report,
        "--diff": request.diff, "--check": request.check,
    }  # fmt: skip
    return (name for name, value in given.items() if value)


def _conversion(document: "Document", request: ConvertRequest, options: Options) -> "Conversion":
    if request.back:
        from msmigrate.reverse import reverse

        return reverse(document, options)
    from msmigrate.convert import convert
    from msmigrate.hf_config import with_local_config
    from msmigrate.yaml.modeline import modeline

    first_line = modeline(SCHEMA) if request.modeline else None
    return convert(document, with_local_config(options, document), first_line)


def _verdict(request: ConvertRequest, status: Exit) -> str:
    if request.check:
        return "would change" if status is Exit.NO else "up to date"
    return "converts" if request.dry_run else "converted"


def _diff(old: str, new: str, old_name: str, new_name: str) -> bytes:
    lines = difflib.unified_diff(old.splitlines(), new.splitlines(), old_name, new_name, lineterm="")
    return "".join(f"{line}\n" for line in lines).encode()


def _deliver(job: Job, data: bytes, request: ConvertRequest) -> Exit:
    """Write, print or compare one result."""
    if request.check:
        if job.output is None:
            raise UsageError("--check needs -o FILE, --out-dir or --in-place to compare with")
        return compare(job.output, data)
    if request.dry_run:
        return Exit.DONE
    if job.output is None:
        if not request.diff:
            print_result(data)
        return Exit.DONE
    if request.in_place and os.path.lexists(f"{job.output}.bak"):
        raise UnreadableError(f"--in-place keeps the old file as {job.output}.bak, which exists already; move it away")
    if request.out_dir is not None:
        _make_folder(os.path.dirname(job.output))
    write_whole(job.output, data, backup=f"{job.output}.bak" if request.in_place else None)
    return Exit.DONE


def _make_folder(path: str) -> None:
    try:
        os.makedirs(path, exist_ok=True)
    except OSError as error:
        raise UnreadableError(f"the folder {shown_path(path)} cannot be made: {error.strerror}") from error


def compare(path: str, data: bytes) -> Exit:
    """Whether a file holds exactly `data`: Exit.DONE, or Exit.NO and a message."""
    try:
        present = Path(path).read_bytes()
    except FileNotFoundError:
        present = b""
    except OSError as error:
        raise UnreadableError(f"{shown_path(path)} cannot be read: {error.strerror}") from error
    if present == data:
        return Exit.DONE
    say(f"{shown_path(path)} would change")
    return Exit.NO


def _write_report(conversions: "list[Conversion]", request: ConvertRequest) -> None:
    """The account of all conversions: one JSON object, or several under `reports`; texts one after the other."""
    from msmigrate.report import VERSION, markdown_report, report_object, text_report

    if request.report is None:
        return
    if request.report_format == "json":
        objects = [report_object(one) for one in conversions]
        whole = (
            objects[0] if len(request.paths) == 1 and len(objects) == 1 else {"version": VERSION, "reports": objects}
        )
        text = json.dumps(whole, ensure_ascii=False, indent=1, allow_nan=False) + "\n"
    else:
        make = markdown_report if request.report_format == "markdown" else text_report
        text = "\n".join(make(one) for one in conversions)
    if request.report == "-":
        say(text.rstrip("\n"))
        return
    write_whole(request.report, text.encode())


def _table(done: list[Done]) -> Iterator[str]:
    """One line per file: what became of it, its status, and where it went."""
    width = max(len(shown_path(one.job.source)) for one in done)
    for one in done:
        written = one.verdict == "converted" and one.job.output is not None
        place = f"  → {shown_path(one.job.output)}" if written and one.job.output else ""
        yield f"{shown_path(one.job.source):{width}}  {one.verdict:16}{place}"
    counts = {
        verdict: sum(one.verdict == verdict for one in done) for verdict in dict.fromkeys(o.verdict for o in done)
    }
    yield f"{len(done)} files: " + ", ".join(f"{count} {verdict}" for verdict, count in counts.items())
