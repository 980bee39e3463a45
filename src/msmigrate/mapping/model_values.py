"""The values of a graph file's model section: given under any spelling, else Hugging Face's, else the class's."""

from collections.abc import Iterator, Mapping

from msmigrate.mapping.back.recompute import SHAPE
from msmigrate.mapping.context import Context
from msmigrate.mapping.graph_file import MODEL_SECTION
from msmigrate.mapping.outcome import Carry, Fate, Outcome, refused, written
from msmigrate.pynative import Model, Spec, Use, asks_for_nothing, specs_of
from msmigrate.pynative.families import ARCHITECTURES, FAMILY_DEFAULTS, MSRT_ONLY
from msmigrate.pynative.values import Mismatch, typed
from msmigrate.wording import shown
from msmigrate.yaml.scalars import Value

SECTION = MODEL_SECTION


def specs() -> Mapping[str, Spec]:
    """Canonical model keys."""
    return specs_of(Model)


def canonical(name: str) -> str | None:
    """The canonical name of a model key or of an alias of it; None for an unknown one."""
    known = specs()
    if name in known:
        return name
    return next((spec.name for spec in known.values() if name in spec.key.aliases), None)


def spellings(name: str) -> tuple[str, ...]:
    """A canonical key and its aliases."""
    spec = specs().get(name)
    return (name, *spec.key.aliases) if spec else (name,)


def model_value(context: Context, name: str) -> Value:
    """A model key by its canonical name: from the graph file, else the Hugging Face config, else what `--set` says."""
    override = context.options.overrides.get(f"model.{name}")
    if override is not None:
        return override
    if context.legacy and f"model.{name}" in context.derivations:
        value = _derived(context, name)
        if value is not None:
            return value
    for spelling in spellings(name):
        value = context.graph.value(f"{SECTION}.{spelling}")
        if value is not None:
            return value
    config = context.options.hf_config or {}
    return next((config[spelling] for spelling in spellings(name) if config.get(spelling) is not None), None)


def effective_value(context: Context, name: str) -> Value:
    """A model key as the run has it: given, or completed from the Hugging Face config or the family's defaults."""
    value = model_value(context, name)
    if value is not None:
        return value
    return _derived(context, name)


def _derived(context: Context, name: str) -> Value:
    found = context.derive(f"model.{name}")
    return None if found is None or isinstance(found.value, Carry) else found.value


def family(context: Context) -> str | None:
    """The model_type that the file, `--hf-config` or `--set` gives."""
    value = model_value(context, "model_type")
    return value if isinstance(value, str) else None


def reader_name(context: Context, name: str) -> str:
    """The spelling that the family's reader takes: its own Hugging Face name, else the canonical one."""
    own = FAMILY_DEFAULTS.get(family(context) or "", {})
    known = canonical(name)
    if known is None or name == known or name in own:
        return name
    return next((spelling for spelling in spellings(known) if spelling in own), known)


def note_msrt_only(context: Context, model_type: str) -> None:
    """Note a family that MindFormers cannot train in PyNative mode."""
    if model_type in MSRT_ONLY:
        context.note(
            f"msrt trains model_type {model_type}; MindFormers 2.x has no PyNative model of this type "
            f"(it has {mindformers_families()})"
        )


def mindformers_families() -> str:
    return ", ".join(name for name in ARCHITECTURES if name not in MSRT_ONLY)


def completion(context: Context, name: str) -> Outcome | None:
    """What is written for a model key that the graph file leaves out."""
    if any(context.graph.given(f"{SECTION}.{spelling}") for spelling in spellings(name)):
        return None
    config = context.options.hf_config
    if config is not None:
        return _from_hugging_face(context, name, config)
    kind = family(context)
    if name == "model_type":
        return None if kind else _no_shape(context)
    if name == "architectures" and kind is not None and kind in ARCHITECTURES:
        return written(Fate.DEFAULT, "model.architectures", ARCHITECTURES[kind], f"the class of {kind}")
    if any(model_value(context, key) is not None for key in SHAPE):
        return None
    return from_family(name, kind)


def _from_hugging_face(context: Context, name: str, config: Mapping[str, Value]) -> Outcome | None:
    found = next((spelling for spelling in spellings(name) if config.get(spelling) is not None), None)
    if found is None or not _worth_writing(specs()[name], config[found]):
        return None
    value = _one_word(name, config[found])
    if name == "model_type":
        note_msrt_only(context, str(value))
    where = context.options.hf_config_path or "config.json"
    fault = typed(specs()[name], value)
    if isinstance(fault, Mismatch):
        return refused(f"{where}: {fault.message}", pynative=f"model.{name}", advice=fault.help, final=True)
    return written(Fate.DEFAULT, f"model.{reader_name(context, found)}", value, f"from {where}")


def _one_word(name: str, value: Value) -> Value:
    """The value as a pynative file has it: Hugging Face lists the one class of a model."""
    return value[0] if name == "architectures" and isinstance(value, list) and len(value) == 1 else value


def contradictions(context: Context) -> Iterator[str]:
    """Keys that the file and the Hugging Face config give with different values, a phrase with both for each."""
    config = context.options.hf_config or {}
    for name, spec in specs().items():
        here = next(
            (value for one in spellings(name) if (value := context.graph.value(f"{SECTION}.{one}")) is not None), None
        )
        there = next((config[one] for one in spellings(name) if config.get(one) is not None), None)
        if here is None or there is None or not _worth_writing(spec, there):
            continue
        if _one_word(name, here) != _one_word(name, there):
            yield f"{name} is {shown(here)} in the file and {shown(there)} there"


def _worth_writing(spec: Spec, value: Value) -> bool:
    if spec.name in ("model_type", "architectures"):
        return True
    if spec.key.use is Use.NO_EFFECT or spec.name in ("quantization_config", "params_dtype", "compute_dtype"):
        return False
    return not (spec.key.use is Use.REFUSED and asks_for_nothing(spec, value))


def from_family(name: str, kind: str | None) -> Outcome | None:
    """A model key with the default of its family's class; None where the class has none worth writing."""
    defaults = FAMILY_DEFAULTS.get(kind or "", {})
    spelling = next((known for known in spellings(name) if known in defaults), None)
    if spelling is None or kind not in ARCHITECTURES:
        return None
    value = defaults[spelling]
    if value is None or not _worth_writing(specs()[name], value):
        return None
    return written(Fate.DEFAULT, f"model.{spelling}", value, f"the class default of {kind}")


def _no_shape(context: Context) -> Outcome | None:
    if context.graph.value("pretrained_model_dir") or context.graph.given("model.arch"):
        return None  # the rows of those keys refuse
    return refused(
        "the file gives no model_type, and names no folder with the model's config.json", pynative="model.model_type",
        advice="give the folder or its config.json with --hf-config", final=True,
    )  # fmt: skip
