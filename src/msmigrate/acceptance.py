"""Whether the MindFormers readers take a file that a conversion would write: refusals and notes beside the table's."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from msmigrate.entries import Conversion, Entry
from msmigrate.findings import Severity
from msmigrate.mapping.outcome import Outcome, refused
from msmigrate.options import ExpertMesh, Options
from msmigrate.pynative.check import Checked, check_document
from msmigrate.pynative.start_up import Broken, Problem, Setting, broken_rules
from msmigrate.yaml.document import parse
from msmigrate.yaml.nodes import Span
from msmigrate.yaml.source import source_from_bytes


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the readers say to a text: refusals by the key as written, and sentences about what they would change."""

    refusals: Mapping[str, Outcome]
    notes: tuple[str, ...]


def accepted(conversion: Conversion, text: str) -> Conversion:
    """The conversion with its text and what the target's readers change in it, or refused where they would stop."""
    world = conversion.facts["world"].value
    verdict = judge(text, conversion.options, world if isinstance(world, int) else None)
    stopped = tuple(
        Entry(None, outcome, None, None, _place(conversion, path), conversion.mode)
        for path, outcome in verdict.refusals.items()
    )
    whole = replace(conversion, entries=(*conversion.entries, *stopped), notes=(*conversion.notes, *verdict.notes))
    return whole if stopped else replace(whole, text=text)


def _place(conversion: Conversion, path: str) -> Span | None:
    """Where the source has the key that decided a key of the text."""
    below = (f"{path}.", f"{path}[")
    for entry in conversion.entries:
        if entry.span is not None and entry.pynative is not None and f"{entry.pynative}.".startswith(below):
            return entry.span
    return None


def judge(text: str, options: Options, world: int | None) -> Verdict:
    """The verdict of the target's readers on a pynative text; `world` is the number of ranks where it is known.

    An error is a refusal, and so is what a reader would train otherwise than the file says. An error is a note where
    another number of ranks would do, which the file does not hold, and where the manual's keys alone are asked for,
    which are for the manual's own reader.
    """
    checked = check_document(parse(source_from_bytes("pynative.yaml", text.encode())))
    setting = Setting(options.target, world, options.expert_mesh)
    broken = broken_rules(checked, setting)
    refusals: dict[str, Outcome] = {}
    for finding in checked.findings:
        if finding.severity is Severity.ERROR:
            outcome = refused(finding.message, pynative=finding.key, advice=finding.help, final=True)
            refusals.setdefault(_written(checked, finding.key), outcome)
    notes: list[str] = []
    for rule, problem in broken:
        if rule.untrained or (_stops(problem) and not rule.needs_world and not options.manual_only):
            outcome = refused(problem.message, pynative=problem.keys[0], advice=problem.help, final=True)
            refusals.setdefault(_written(checked, problem.keys[0]), outcome)
        elif problem.severity is not Severity.NOTE:
            notes.append(_sentence(problem))
    nested = broken_rules(checked, replace(setting, mesh=ExpertMesh.NESTED))
    return Verdict(refusals, (*notes, *_other_reading(broken, nested, setting)))


def _other_reading(broken: list[Broken], nested: list[Broken], setting: Setting) -> Iterator[str]:
    """What stops MindFormers 2.x alone, and the numbers of both readings where one of them is not legal."""
    known = {rule.code for rule, problem in broken if _stops(problem)}
    for rule, problem in nested:
        if rule.needs_world and rule.code not in known and _stops(problem):
            yield f"MindFormers {setting.target} stops on {setting.world} ranks: {_sentence(problem)}"
    if any(rule.needs_world and _stops(problem) for rule, problem in (*broken, *nested)):
        yield from (_sentence(problem) for _, problem in broken if problem.severity is Severity.NOTE)


def _stops(problem: Problem) -> bool:
    return problem.severity is Severity.ERROR


def _sentence(problem: Problem) -> str:
    return f"{problem.message}; {problem.help}" if problem.help else problem.message


def _written(checked: Checked, key: str) -> str:
    return checked.written[key].path if key in checked.written else key
