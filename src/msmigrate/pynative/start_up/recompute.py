"""Rules of recomputation: modes and the settings they need, layer ids that exist, patterns that can be read."""

from collections.abc import Iterator

from msmigrate.findings import Severity
from msmigrate.options import Target
from msmigrate.pynative.start_up.loading import regex_fault
from msmigrate.pynative.start_up.rule import Facts, Problem, Rule

FULL = "recompute.full_recompute_layer"
SELECT = "recompute.select_module"
COMM = "recompute_comm.select_module"
EXCLUDE = "recompute.exclude_op"
LAYERS = "model.num_hidden_layers"
MTP = "model.num_nextn_predict_layers"


def _nothing_named(facts: Facts) -> Iterator[Problem]:
    recompute, comm = facts.config.recompute, facts.config.recompute_comm
    asks = (
        (recompute.mode == "full" and not recompute.full_recompute_layer, "recompute.mode", "full", FULL),
        (recompute.mode == "select" and not recompute.select_module, "recompute.mode", "select", SELECT),
        (comm.enable and not comm.select_module, "recompute_comm.enable", "true", COMM),
    )
    for missing, key, value, needed in asks:
        if missing:
            message = f"`{key}` is {value} and `{needed}` is missing or empty: the readers stop at start-up"
            yield Problem((key, needed), message, f"give `{needed}`, which names the layers")


def _layer_ids(facts: Facts) -> Iterator[Problem]:
    """Ids below the number of layers; multi-token prediction layers that the file asks for count as the last ones."""
    layers = facts.count("num_hidden_layers")
    if layers is None:
        return
    mtp = facts.config.model.num_nextn_predict_layers or 0
    last = layers + mtp - 1
    for key, where, parts in _lists(facts):
        high = max((_high(part) for part in parts), default=-1)
        if high > last:
            counted = f"num_hidden_layers {layers}" + (f" and {mtp} of multi-token prediction" if mtp else "")
            message = f"`{where}` names layer {high}; the last one is {last} ({counted}, counted from 0)"
            yield Problem((key, LAYERS, MTP), message, f"end at {last}")


def _lists(facts: Facts) -> Iterator[tuple[str, str, tuple[int | str, ...]]]:
    """The layer lists in force: key, where in it, parts."""
    recompute, comm = facts.config.recompute, facts.config.recompute_comm
    if recompute.mode != "None" and recompute.full_recompute_layer:
        yield FULL, FULL, recompute.full_recompute_layer
    elif recompute.mode == "select":
        yield from ((SELECT, f"{SELECT}.{name}", parts) for name, parts in (recompute.select_module or {}).items())
    if comm.enable:
        yield from ((COMM, f"{COMM}.{name}", parts) for name, parts in (comm.select_module or {}).items())


def _high(part: int | str) -> int:
    return int(str(part).rpartition("-")[2])


def _patterns(facts: Facts) -> Iterator[Problem]:
    recompute, comm = facts.config.recompute, facts.config.recompute_comm
    in_force = (
        (SELECT, recompute.select_module if recompute.mode == "select" else None),
        (COMM, comm.select_module if comm.enable else None),
    )
    for key, modules in in_force:
        for pattern in modules or {}:
            fault = regex_fault(pattern)
            if not pattern.strip():
                yield Problem((key,), f"`{key}` has an empty name; a module path or a regular expression stands there")
            elif fault is not None:
                yield Problem((key,), f"`{key}` has `{pattern}`, which is no regular expression: {fault}")
            elif "\\\\" in pattern:
                meant = pattern.replace("\\\\", "\\")
                message = f"`{key}` has `{pattern}`: two backslashes ask for a literal one, which no path has"
                yield Problem((key,), message, f"in single quotes write '{meant}'", Severity.WARNING)


def _exclude_op(facts: Facts) -> Iterator[Problem]:
    recompute = facts.config.recompute
    value = recompute.exclude_op
    if value is None or (recompute.mode == "None" and not facts.config.recompute_comm.enable):
        return
    listed = facts.setting.target is Target.V2_0
    if isinstance(value, list if listed else dict):
        return
    wanted = "a list of operator names" if listed else "a mapping from module paths to layer lists"
    other = "2.1" if listed else "2.0"
    message = f"`{EXCLUDE}` has the form of MindFormers {other}; {facts.setting.target} expects {wanted}"
    yield Problem((EXCLUDE,), message)


RULES = (
    Rule("P030", "recompute-names-nothing", _nothing_named),
    Rule("P031", "no-such-layer", _layer_ids),
    Rule("P032", "recompute-pattern", _patterns),
    Rule("P033", "exclude-op-form", _exclude_op),
)
