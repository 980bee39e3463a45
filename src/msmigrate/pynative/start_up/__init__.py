"""What the MindFormers readers check when they load a pynative.yaml and start a run, as rules on its values.

`pynative.check` sees one key at a time (names, types, bounds, layer lists); the rules here see all of them. Source: the
config classes, trainer, mesh, recompute, schedule and model-config code of MindFormers 2.0.0 and 2.1.0.
"""

from msmigrate.findings import Finding, Severity
from msmigrate.pynative.check import Checked
from msmigrate.pynative.load import config_of
from msmigrate.pynative.start_up import loading, model, ranks, recompute, schedule, training
from msmigrate.pynative.start_up.rule import Facts, Problem, Rule, Setting

__all__ = ["RULES", "Broken", "Facts", "Problem", "Rule", "Setting", "broken_rules", "start_up_findings"]

RULES = (*loading.RULES, *training.RULES, *recompute.RULES, *schedule.RULES, *ranks.RULES, *model.RULES)

Broken = tuple[Rule, Problem]


def broken_rules(checked: Checked, setting: Setting) -> list[Broken]:
    """Every rule that a checked file breaks, with each problem; none that may only follow from a key's own error."""
    facts = Facts(config_of(checked), checked.written, setting)
    wrong = {finding.key for finding in checked.findings if finding.severity is Severity.ERROR}
    return [
        (rule, problem)
        for rule in RULES
        for problem in rule.problems(facts)
        if not any(key == bad or key.startswith(bad + ".") for key in problem.keys for bad in wrong)
    ]


def start_up_findings(checked: Checked, setting: Setting) -> list[Finding]:
    """The broken rules as findings, each at the first of its keys that the file has, else at that key's section."""
    return [_finding(checked, rule, problem) for rule, problem in broken_rules(checked, setting)]


def _finding(checked: Checked, rule: Rule, problem: Problem) -> Finding:
    places = (*problem.keys, problem.keys[0].rpartition(".")[0])
    spans = (checked.written[key].span for key in places if key in checked.written)
    span = next((span for span in spans if span is not None), None)
    return Finding(
        rule.code, rule.name, problem.severity, checked.name, problem.keys[0], span, problem.message, problem.help
    )
