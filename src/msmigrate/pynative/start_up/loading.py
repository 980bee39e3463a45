"""Rules of the loader: what the config classes of a release take, and what they check between keys of one section."""

import re
from collections.abc import Iterator

from msmigrate.findings import Severity
from msmigrate.options import Target
from msmigrate.pynative.keys import Spec, holds_integer, in_floats, is_open, nested_section, specs_of
from msmigrate.pynative.sections import Config
from msmigrate.pynative.start_up.rule import Facts, Problem, Rule
from msmigrate.yaml.scalars import spell


def _unknown_to_target(facts: Facts) -> Iterator[Problem]:
    """A key of another release: a closed section stops the reader, an open one ignores the key."""
    specs, target = specs_of(Config), facts.setting.target
    for path in facts.written:
        spec, parent = specs[path], path.rpartition(".")[0]
        if spec.known_to(target) or (parent and not specs[parent].known_to(target)):
            continue
        if spec.key.own:
            message = f"`{path}` is a key of msrt's own; MindFormers {target} stops at it"
            yield Problem((path,), message, "remove it before MindFormers reads the file", Severity.NOTE)
            continue
        section = nested_section(specs[parent].annotation) if parent else Config
        ignored = section is not None and (is_open(section) or section is Config)
        verb = "ignores it in silence" if ignored else "stops at it"
        message = f"`{path}` is a key of MindFormers {_releases(spec)}; MindFormers {target} {verb}"
        advice = f"write `{spec.key.renamed}`, its name there" if spec.key.renamed else "remove it"
        yield Problem((path,), message, advice, Severity.WARNING if ignored else Severity.ERROR)


def _releases(spec: Spec) -> str:
    return f"{spec.key.since} and later" if spec.key.since else f"{spec.key.until} and earlier"


def _empty_section(facts: Facts) -> Iterator[Problem]:
    """A section without keys is null, which only the sections that are off by default may be."""
    for path, spec in specs_of(Config).items():
        needed = nested_section(spec.annotation) is not None and spec.default is not None
        written = facts.written.get(path)
        if written is not None and written.value is None and (needed or path == "callbacks"):
            yield Problem((path,), f"`{path}` is empty; the readers expect something there", "fill or remove it")


def _callback_type(facts: Facts) -> Iterator[Problem]:
    for number, callback in enumerate(facts.config.callbacks or ()):
        if not isinstance(callback.get("type"), str):
            yield Problem(("callbacks",), f"item {number} of `callbacks` has no `type`; it names the class to call")


def _dispatcher(facts: Facts) -> Iterator[Problem]:
    here = facts.config.parallelism
    if here.moe_token_dispatcher_type != "alltoall_deredundancy" or here.expert_parallel >= here.npu_nums_per_device:
        return
    yield Problem(
        (
            "parallelism.moe_token_dispatcher_type",
            "parallelism.expert_parallel",
            "parallelism.npu_nums_per_device",
        ),
        f"alltoall_deredundancy needs expert_parallel of at least npu_nums_per_device {here.npu_nums_per_device}; "
        f"it is {here.expert_parallel}",
        "write alltoall, or raise expert_parallel",
    )


def _sequence_parallel(facts: Facts) -> Iterator[Problem]:
    here = facts.config.parallelism
    if here.tensor_parallel > 1 and not here.sequence_parallel:
        yield Problem(
            ("parallelism.tensor_parallel", "parallelism.sequence_parallel"),
            f"tensor_parallel {here.tensor_parallel} without sequence_parallel: MindFormers 2.1 stops",
            "add `sequence_parallel: true` under parallelism; 2.0 takes it too",
        )


def _profiled_steps(facts: Facts) -> Iterator[Problem]:
    here = facts.config.profiler
    if here.start_step > here.end_step:
        yield Problem(
            ("profiler.start_step", "profiler.end_step"),
            f"profiler.start_step {here.start_step} is behind profiler.end_step {here.end_step}",
        )


def _adapter_checkpoint(facts: Facts) -> Iterator[Problem]:
    here = facts.config.checkpoint
    if here.save_trainable_only and not here.base_load_path.strip():
        yield Problem(
            ("checkpoint.save_trainable_only", "checkpoint.base_load_path"),
            "save_trainable_only is true and base_load_path is empty: the frozen weights would have no source",
            "give checkpoint.base_load_path",
        )


def _adapter_targets(facts: Facts) -> Iterator[Problem]:
    here = facts.config.lora_config
    if here is None:
        return
    key = "lora_config.target_modules"
    if not here.target_modules.strip():
        yield Problem((key,), f"`{key}` is empty; it is a regular expression that names the adapted modules")
        return
    fault = regex_fault(here.target_modules)
    if fault is not None:
        yield Problem((key,), f"`{key}` is no regular expression: {fault}")


def _integers(facts: Facts) -> Iterator[Problem]:
    """Whole numbers that the loader takes, and that the class behind the section refuses."""
    for path, spec in specs_of(Config).items():
        written = facts.written.get(path)
        if written is None or not spec.key.no_integer or not holds_integer(written.value):
            continue
        message = f"`{path}` is {spell(written.value)}; the readers refuse an integer here"
        yield Problem((path,), message, f"write {spell(in_floats(spec, written.value))}")


def regex_fault(pattern: str) -> str | None:
    """Why a text is no regular expression, or None."""
    try:
        re.compile(pattern)
    except re.error as error:
        return str(error)
    return None


RULES = (
    Rule("P020", "unknown-to-target", _unknown_to_target),
    Rule("P021", "empty-section", _empty_section),
    Rule("P022", "callback-without-type", _callback_type),
    Rule("P023", "dispatcher-needs-experts", _dispatcher),
    Rule("P024", "sequence-parallel-needed", _sequence_parallel, (Target.V2_1,)),
    Rule("P025", "profiled-steps", _profiled_steps),
    Rule("P026", "adapter-without-base", _adapter_checkpoint, (Target.V2_1,)),
    Rule("P027", "adapter-targets", _adapter_targets, (Target.V2_1,)),
    Rule("P028", "integer-for-float", _integers),
)
