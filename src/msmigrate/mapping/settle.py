"""The last word on a decision: `--set`, what the target takes, and values that the readers would misread."""

from dataclasses import replace

from msmigrate.mapping.back.context import plain
from msmigrate.mapping.context import Context
from msmigrate.mapping.model_values import canonical
from msmigrate.mapping.outcome import LEARNS, Carry, Effect, Fate, Outcome, dropped, refused
from msmigrate.mapping.rows import Row
from msmigrate.options import Options
from msmigrate.pynative import Config, Spec, holds_integer, in_floats, specs_of
from msmigrate.pynative.values import Mismatch, typed
from msmigrate.wording import shown
from msmigrate.yaml.document import value_of
from msmigrate.yaml.nodes import Leaf, Node, Scalar, Sequence, resolved
from msmigrate.yaml.scalars import Value, is_date, is_unsafe_float, spell


def settle(context: Context, outcome: Outcome, lost: Effect, *, told: bool = False) -> Outcome:
    """The decision as it will be reported and written; `lost` is what changes when its key cannot be written.

    `told` is True when another entry has told of what `--set` says for the key.
    """
    overridden = _override(context, outcome, lost, told=told)
    if overridden is not None:
        return overridden
    if not outcome.writes or outcome.pynative is None:
        return outcome
    spec = spec_of(outcome.pynative)
    if spec is None:
        return outcome
    found = taken(context.options, outcome, spec, lost)
    return found if "[" in outcome.pynative else _typed(found, spec)


def spec_of(pynative: str) -> Spec | None:
    """The declared key behind a path, which may point into its list; a model key also by an alias.

    None for what lies inside a free mapping.
    """
    specs = specs_of(Config)
    found = specs.get(pynative.partition("[")[0])
    if found is None and pynative.startswith("model."):
        name = canonical(pynative.removeprefix("model."))
        return specs.get(f"model.{name}")
    return found


def _override(context: Context, outcome: Outcome, lost: Effect, *, told: bool) -> Outcome | None:
    path = outcome.pynative
    if path is None or path not in context.options.overrides:
        return None
    if not outcome.writes and outcome.fate is not Fate.REFUSED:
        return None
    value = overriding(context.options, path)
    if told:
        return Outcome(Fate.COMPUTED, Effect.NONE, f"--set {path} decides", path, value)
    effect = _set_effect(path, lost)
    if not outcome.writes:
        why, effect = f"--set; without it: {outcome.why}", Effect.NONE if outcome.final else effect
    elif (before := _new_value(outcome)) == value:
        why, effect = "--set", Effect.NONE
    else:
        reason = f" ({outcome.why})" if outcome.fate is Fate.DROPPED else ""
        why = f"--set {path}={shown(value)}, instead of {shown(before)}{reason}"
    return Outcome(Fate.COMPUTED, effect, why, path, value, outcome.node, writes=True)


def _set_effect(path: str, lost: Effect) -> Effect:
    """What a new value of a key changes: what its loss would, in the sections that decide what a run learns."""
    return lost if path.partition(".")[0] in LEARNS else Effect.NONE


def carried_by_set(context: Context, row: Row, leaf: Leaf, outcome: Outcome) -> Outcome:
    """The decision on a leaf whose value the table drops, as if it were carried where `--set` gives its key.

    The entry then tells the file's value and the new one; else it would say that nothing changes.
    """
    carries = row.fate in (Fate.SAME, Fate.RENAMED, Fate.FLATTENED) and outcome.fate is Fate.DROPPED
    path = outcome.pynative or row.pynative
    if not carries or path not in context.options.overrides:
        return outcome
    return replace(outcome, pynative=path, value=Carry.TEXT, node=leaf.node, writes=True)


def added_by_set(context: Context, path: str, lost: Effect) -> Outcome:
    """The decision on a key that `--set` gives and no key of the file has written."""
    value, default = overriding(context.options, path), plain(specs_of(Config)[path].default)
    if value == default:
        why, effect = "--set; what holds without it", Effect.NONE
    else:
        before = "; the file leaves it out" if default is None else f", instead of {shown(default)}, the default"
        why, effect = f"--set {path}={shown(value)}{before}", _set_effect(path, lost)
    return Outcome(Fate.COMPUTED, effect, why, path, value, writes=True)


def overriding(options: Options, pynative: str) -> Value:
    """What `--set` says of a key, as the readers take it."""
    spec, value = spec_of(pynative), options.overrides[pynative]
    return value if spec is None else in_floats(spec, value)


def taken(options: Options, outcome: Outcome, spec: Spec, lost: Effect) -> Outcome:
    """The decision after asking whether the target has the key: a loss that changes training is refused."""
    if not spec.known_to(options.target):
        reason = f"MindFormers {options.target} has no {spec.path}"
    elif options.manual_only and not _in_manual(spec):
        reason = f"the manual has no {spec.path}"
    else:
        return outcome
    value = _new_value(outcome)
    if value == spec.default or (spec.path.startswith("model.") and spec.key.manual is None):
        return dropped(f"{reason}; {spell(value)} is what holds without it", pynative=None)
    if lost is Effect.TRAINING:
        return refused(
            f"{reason}, and {spell(value)} would be lost", pynative=spec.path, advice="leave out --manual-only"
        )
    return dropped(reason, lost)


def _in_manual(spec: Spec) -> bool:
    """The manual lets model keys through as they are, but for the names that only MindFormers reads."""
    if not spec.path.startswith("model."):
        return spec.key.manual is not None
    readers = {other.key.reader_name for other in specs_of(Config).values() if other.key.reader_name}
    return spec.name not in readers


def _typed(outcome: Outcome, spec: Spec) -> Outcome:
    """The decision with a value that the readers take: unsafe numbers respelled, wrong types refused."""
    if not outcome.writes:
        return outcome
    value = _new_value(outcome)
    if outcome.node is not None and outcome.value is Carry.TEXT and _is_misread(outcome.node, spec):
        value = _respelled(outcome.node, spec)
        outcome = replace(outcome, value=value).noting("respelled: the readers would take its text for something else")
    found = typed(spec, value)
    if isinstance(found, Mismatch):
        return refused(found.message, pynative=outcome.pynative, advice=found.help, final=True)
    if spec.key.no_integer and holds_integer(value):
        outcome = replace(outcome, value=in_floats(spec, value)).noting("the readers refuse an integer here")
    return outcome


def _new_value(outcome: Outcome) -> Value:
    if isinstance(outcome.value, Carry):
        assert outcome.node is not None
        return value_of(outcome.node)
    return outcome.value


def _is_misread(node: Node, spec: Spec) -> bool:
    """Whether the readers take a plain scalar in a node for another kind of value than its author means."""
    shown = resolved(node)
    if isinstance(shown, Sequence):
        return any(_is_misread(item, spec) for item in shown.items)
    if not isinstance(shown, Scalar) or shown.style is not None:
        return False
    return is_date(shown.text) or (_takes_floats(spec) and is_unsafe_float(shown.text))


def _respelled(node: Node, spec: Spec) -> Value:
    """The value of a node with plain scalars such as 1e-5 taken as the numbers that their author meant."""
    shown = resolved(node)
    if isinstance(shown, Sequence):
        return [_respelled(item, spec) for item in shown.items]
    if isinstance(shown, Scalar) and shown.style is None and _takes_floats(spec) and is_unsafe_float(shown.text):
        return float(shown.text)
    return value_of(shown)


def _takes_floats(spec: Spec) -> bool:
    return "float" in str(spec.annotation)
