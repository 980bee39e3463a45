"""Rows of the manual's section 9: `model.model_config` moves flat into `model`, by the names that the readers take."""

from dataclasses import replace
from functools import lru_cache

from msmigrate.findings import nearest
from msmigrate.mapping.back.context import Back
from msmigrate.mapping.back.recompute import interleave, offset
from msmigrate.mapping.back.settings import per_token_loss, twin
from msmigrate.mapping.context import Context
from msmigrate.mapping.model_values import (
    SECTION,
    canonical,
    completion,
    family,
    mindformers_families,
    model_value,
    note_msrt_only,
    reader_name,
    specs,
    spellings,
)
from msmigrate.mapping.outcome import UNTOLD, Effect, Fate, Outcome, carried, dropped, refused, written
from msmigrate.mapping.rows import Row, Rule, derived, goes, judged, leaf_value
from msmigrate.mapping.switches import PER_TOKEN, spared, vital, vital_section
from msmigrate.pynative import Model, specs_of
from msmigrate.pynative.families import ARCHITECTURES, READER_DEFAULTS
from msmigrate.wording import shown
from msmigrate.yaml.nodes import Leaf
from msmigrate.yaml.scalars import Value, spell


@lru_cache(maxsize=1)
def _every_spelling() -> tuple[str, ...]:
    return tuple(spelling for key in specs() for spelling in spellings(key))


def _key(context: Context, row: Row, leaf: Leaf) -> Outcome:
    name = str(leaf.path[2])
    if len(leaf.path) > 3 and not _takes_mapping(name):
        return refused(
            f"`{SECTION}.{name}` is a mapping; expected a single value", pynative=f"model.{name}", final=True
        )
    if len(leaf.path) > 3:
        below = ".".join(str(part) for part in leaf.path[3:])
        return carried(Fate.FLATTENED, f"model.{name}.{below}", leaf.node)
    known = canonical(name)
    if known is None:
        close = nearest(name, _every_spelling())
        advice = f"did you mean `{SECTION}.{close}`?" if close else None
        why = f"no release is known to read a model key `{name}`; it is not carried, {UNTOLD}"
        return Outcome(Fate.UNKNOWN, Effect.TRAINING, why, help=advice)
    if leaf_value(leaf) is None and "None" not in str(specs()[known].annotation):
        return dropped("null, as if it were absent", pynative=f"model.{known}")
    told = _given_twin(context, leaf, known) or _other_reading(context, leaf, known) or _unread(context, known)
    if told is not None:
        return told
    target = reader_name(context, name)
    fate = Fate.FLATTENED if target == name else Fate.RENAMED
    return carried(fate, f"model.{target}", leaf.node, "" if target == name else f"the readers' name for {name}")


def _takes_mapping(name: str) -> bool:
    known = canonical(name)
    if known is None:
        return False
    annotation = specs()[known].annotation
    return annotation is object or "dict" in str(annotation)


def _given_twin(context: Context, leaf: Leaf, known: str) -> Outcome | None:
    """The outcome for a second spelling of a key that the file gives already."""
    given = [name for name in spellings(known) if context.graph.given(f"{SECTION}.{name}")]
    if len(given) < 2 or leaf.path[2] == given[0]:
        return None
    first, value = context.graph.value(f"{SECTION}.{given[0]}"), leaf_value(leaf)
    if first == value:
        return dropped(f"the same key and value as {given[0]}", pynative=f"model.{reader_name(context, given[0])}")
    return refused(
        f"{leaf.path[2]} is {value} and {given[0]}, the same setting, is {first}",
        pynative=f"model.{known}",
        advice="keep one of them in the graph file",
    )


def _other_reading(context: Context, leaf: Leaf, known: str) -> Outcome | None:
    """The refusal of a name that only the readers take, where the manual's name for it says something else."""
    manual = next((spec.name for spec in specs().values() if spec.key.reader_name == known), None)
    first = None if manual is None else context.graph.value(f"{SECTION}.{manual}")
    if first is None or leaf_value(leaf) in (None, first):
        return None
    return refused(
        f"{leaf.path[2]} is {shown(leaf_value(leaf))} and {manual}, the manual's name for it, is {shown(first)}",
        pynative=f"model.{known}", advice="keep one of them in the graph file", final=True,
    )  # fmt: skip


def _unread(context: Context, known: str) -> Outcome | None:
    """The outcome for a key that only the classes of other families read."""
    kind, readers = family(context), specs()[known].key.families
    if not readers or kind in readers or kind not in ARCHITECTURES:
        return None
    return dropped(f"{kind} does not read it, in either mode; {' and '.join(readers)} do")


def _architectures(context: Context, row: Row, leaf: Leaf) -> Outcome:
    value = leaf_value(leaf)
    if not isinstance(value, list):
        return row.carry(leaf)
    if len(value) == 1:
        found = written(Fate.COMPUTED, "model.architectures", value[0], "one word in PyNative mode, not a list")
        return replace(found, node=leaf.node)
    return refused(
        f"architectures lists {len(value)} names; PyNative mode takes one",
        pynative="model.architectures",
        final=True,
        advice="choose one with --set model.architectures=…",
    )


def _compute_dtype(context: Context, row: Row, leaf: Leaf) -> Outcome:
    if leaf_value(leaf) != "float16" or context.graph.section("runner_wrapper"):
        return _key(context, row, leaf)
    why = (
        "without runner_wrapper graph mode scales the loss (from 65536, dynamic), and compute_dtype float16 needs "
        "that; PyNative mode has no loss scaling"
    )
    if context.options.allow_lossy:
        return carried(Fate.FLATTENED, str(row.pynative), leaf.node, why, Effect.TRAINING)
    return refused(
        why,
        pynative=row.pynative,
        advice="use compute_dtype bfloat16, or --allow-lossy to train float16 without loss scaling",
    )


def _model_type(context: Context, row: Row, leaf: Leaf) -> Outcome:
    value = str(leaf_value(leaf))
    config = context.options.hf_config or {}
    if config.get("model_type", value) != value and "model.model_type" not in context.options.overrides:
        where = context.options.hf_config_path or "config.json"
        return refused(
            f"model_type is {value}, and {where} is of a model of type {config['model_type']}",
            pynative="model.model_type", advice="name the config.json of this model with --hf-config", final=True,
        )  # fmt: skip
    note_msrt_only(context, value)
    if value in ARCHITECTURES:
        return row.carry(leaf)
    context.note(
        f"model_type {value} has no PyNative model in MindFormers 2.0 and 2.1; the section is carried as it is "
        f"(there are {mindformers_families()})"
    )
    return row.carry(leaf).noting("no PyNative model of this type in MindFormers 2.0 and 2.1")


def _read_under_another_name(name: str) -> Row:
    """The manual's name stays; where the readers ignore it in silence and default differently, their name is added."""
    spec = specs()[name]
    reader = spec.key.reader_name
    assert reader is not None

    def derive(context: Context) -> Outcome | None:
        value = model_value(context, name)
        if value is None or model_value(context, reader) is not None or value == READER_DEFAULTS[reader]:
            return None
        return written(
            Fate.DEFAULT,
            f"model.{reader}",
            value,
            f"the MindFormers readers ignore {name} and would take {READER_DEFAULTS[reader]}",
        )

    about = (
        f"the value of {name}, which the MindFormers readers ignore; not written at {spell(READER_DEFAULTS[reader])}, "
        "what they take anyway"
    )
    return derived(f"model.{reader}", None, derive, back=twin(name, reader), about=about)


COMPLETED = "what the file leaves out: from --hf-config, else the class default where the section gives no shape"


def _completed(name: str) -> Row:
    """A key that the file leaves to the Hugging Face config or to the family's defaults."""

    def derive(context: Context) -> Outcome | None:
        return completion(context, name)

    return derived(f"model.{name}", "9.1", derive, about=COMPLETED)


def _graph_only(
    name: str, why: str, effect: Effect = Effect.NONE, idle: tuple[Value, ...] = (), back: Back | None = None
) -> Row:
    return replace(spared(f"{SECTION}.{name}", why, effect, "appendix", idle=idle), back=back)


def _legacy_class(context: Context, row: Row, leaf: Leaf) -> Outcome:
    """A legacy model class: PyNative mode computes mcore models only."""
    return refused(
        f"{leaf_value(leaf)} is a legacy model; PyNative mode has mcore models only ({', '.join(ARCHITECTURES)})",
        advice="use the mcore file of the same model, one with `use_legacy: False`", final=True,
    )  # fmt: skip


GENERATION = (
    "repetition_penalty", "max_decode_length", "top_k", "top_p", "do_sample", "temperature", "max_length",
    "length_penalty_weight",
)  # fmt: skip
"""Model keys of text generation."""
_PER_TOKEN = "calculate_per_token_loss"
_FUSION = "a fusion of graph mode; the same numbers"
_LEGACY = "refused: it names a legacy class, and the file is not one of a legacy model"
_UNSCALED = "carried; float16 without runner_wrapper is refused: it needs loss scaling"
_UNREAD = "a key that no release reads is not carried: fate unknown"


def _judged(
    name: str, rule: Rule, about: str, manual: str = "9.1", back: Back | None = None, effect: Effect = Effect.NONE
) -> Row:
    path = f"{SECTION}.{name}"
    return judged(path, f"model.{name}", manual, rule, Fate.FLATTENED, back=back, about=about, effect=effect)


ROWS: tuple[Row, ...] = (
    judged("model.arch", None, None, _legacy_class, Fate.REFUSED, about=_LEGACY, effect=Effect.TRAINING),
    judged("model.arch.type", None, None, _legacy_class, Fate.REFUSED, about=_LEGACY, effect=Effect.TRAINING),
    goes("model.arch.*", "part of a legacy model's registration"),
    judged(f"{SECTION}.type", None, None, _legacy_class, Fate.REFUSED, about=_LEGACY, effect=Effect.TRAINING),
    goes(f"{SECTION}.auto_register", "part of a legacy model's registration"),
    *(_graph_only(name, "text generation only; training is the same") for name in GENERATION),
    _judged("model_type", _model_type, "carried; a note tells where MindFormers has no PyNative model of the type"),
    _judged("architectures", _architectures, "one word instead of a list of one; a longer list is refused"),
    _judged("compute_dtype", _compute_dtype, _UNSCALED, "10", effect=Effect.TRAINING),
    vital(f"{SECTION}.{_PER_TOKEN}", PER_TOKEN, pynative=f"model.{_PER_TOKEN}", back=per_token_loss),
    *vital_section(f"{SECTION}.pet_config", "low-rank adapters: without them the whole model is trained"),
    _graph_only("use_seq_parallel", "parallel_config.use_seq_parallel decides; the readers refuse it here"),
    _graph_only("parallel_config", "the top-level parallel_config decides; the readers refuse it here"),
    _graph_only("parallel_config.*", "the top-level parallel_config decides; the readers refuse it here"),
    _graph_only("offset", "layers per pipeline stage; the stages are folded", Effect.MEMORY, back=offset),
    _graph_only("pp_interleave_num", "virtual pipeline stages; the stages are folded", Effect.SPEED, (1,), interleave),
    _graph_only("use_attn_mask_compression", "a mask form of graph mode; the same numbers", Effect.MEMORY),
    _graph_only("apply_rope_fusion", _FUSION, Effect.SPEED),
    _graph_only("bias_swiglu_fusion", _FUSION, Effect.SPEED),
    _graph_only("use_fused_ops_topkrouter", _FUSION, Effect.SPEED),
    judged(f"{SECTION}.*", "model.*", "9.1", _key, Fate.FLATTENED, about=_UNREAD),
    goes("moe_config.*", "mcore models do not read it; model.model_config decides"),
    _read_under_another_name("scaling_factor"),
    _read_under_another_name("scoring_func"),
    _read_under_another_name("router_dense_type"),
    *(
        _completed(name)
        for name in specs_of(Model)
        if name not in ("offset", "pp_interleave_num", "moe_router_load_balancing_type") and name not in READER_DEFAULTS
    ),
)
