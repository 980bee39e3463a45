"""Rows of legacy model classes, such as `type: LlamaConfig`: their keys as those of a PyNative family.

The arithmetic is that of the class; where PyNative mode computes something else, the effect is `training`.
"""

from msmigrate.findings import nearest
from msmigrate.mapping.context import Context
from msmigrate.mapping.legacy_classes import ARCHITECTURES as CLASSES
from msmigrate.mapping.legacy_classes import SECTION, Architecture, counterpart, named
from msmigrate.mapping.model_values import canonical, note_msrt_only
from msmigrate.mapping.outcome import UNTOLD, Carry, Effect, Fate, Outcome, carried, dropped, refused, written
from msmigrate.mapping.rows import Row, derived, leaf_value
from msmigrate.mapping.table.legacy_experts import EXPERT_ROWS
from msmigrate.mapping.table.model import GENERATION
from msmigrate.mapping.translated import architecture, gone, translated
from msmigrate.pynative.families import ARCHITECTURES, READER_DEFAULTS
from msmigrate.yaml.nodes import Leaf
from msmigrate.yaml.scalars import Value, spell

_WIDTH = ("multiple_of", "ffn_dim_multiplier")
_SWITCHES = ("attn_proj_has_bias", "return_extra_loss")
_OTHER_NAMES = {"theta": "rope_theta", "embedding_init_type": "embedding_params_dtype"}
"""Keys that only legacy classes spell so; the others are aliases of pynative keys."""
_CARRIED = "carried where the class reads it, else dropped"
_REGISTRATION = "dropped: part of a legacy model's registration"


def _key(context: Context, row: Row, leaf: Leaf, found: Architecture) -> Outcome:
    name = str(leaf.path[2])
    if name not in found.reads:
        return dropped(f"{named(context.graph)} does not read it")
    if leaf_value(leaf) is None:
        return dropped("null, as if it were absent", pynative=row.pynative)
    assert row.pynative is not None
    fate = Fate.FLATTENED if row.pynative == f"model.{name}" else Fate.RENAMED
    return carried(fate, row.pynative, leaf.node)


def target(name: str) -> str:
    """The pynative model key for a legacy one."""
    found = _OTHER_NAMES.get(name) or canonical(name)
    assert found is not None, name
    return found


def _straight() -> dict[str, list[str]]:
    """Pynative model keys, each with the legacy keys that carry its value."""
    special = (*_WIDTH, *_SWITCHES, "extend_method", "intermediate_size")
    names = dict.fromkeys(name for one in CLASSES.values() for name in one.reads if name not in special)
    found: dict[str, list[str]] = {}
    for name in names:
        found.setdefault(target(name), []).append(name)
    return found


def legacy_value(context: Context, found: Architecture, name: str) -> Value:
    """A legacy key as the class has it: given, else its default, else what the class works out."""
    value = context.graph.value(f"{SECTION}.{name}", found.reads[name])
    if value is None and name == "n_kv_heads":
        return legacy_value(context, found, "num_heads")
    if value is None and name == "max_position_embedding":
        return legacy_value(context, found, "seq_length")
    return value


CLASS_DEFAULT = "what the legacy class takes for an absent key, or has no key for because it is always so"


def _default(pynative: str, names: list[str]) -> Row:
    """The value of a key that the file leaves to the class."""

    def derive(context: Context) -> Outcome | None:
        found = architecture(context)
        name = None if found is None else next((one for one in names if one in found.reads), None)
        if found is None or name is None:
            return None
        value = legacy_value(context, found, name)
        if value is None:
            return None
        return written(Fate.DEFAULT, f"model.{pynative}", value, f"{named(context.graph)}'s default {name}")

    return derived(f"model.{pynative}", None, derive, about=CLASS_DEFAULT)


def _fixed(pynative: str) -> Row:
    """What the class has no key for, because it is always so."""

    def derive(context: Context) -> Outcome | None:
        found = architecture(context)
        if found is None or pynative not in found.fixed:
            return None
        value, why = found.fixed[pynative]
        return written(Fate.DEFAULT, f"model.{pynative}", value, why)

    return derived(f"model.{pynative}", None, derive, about=CLASS_DEFAULT)


def _under_the_readers_name(manual: str, reader: str) -> Row:
    """The name that the readers take instead of a manual name, where their default is another value."""

    def derive(context: Context) -> Outcome | None:
        own = context.derive(f"model.{manual}")
        if own is None or isinstance(own.value, Carry) or own.value in (None, READER_DEFAULTS[reader]):
            return None
        why = f"the MindFormers readers ignore {manual} and would take {READER_DEFAULTS[reader]}"
        return written(Fate.DEFAULT, f"model.{reader}", own.value, why)

    about = f"the value of {manual}, which the MindFormers readers ignore"
    return derived(f"model.{reader}", None, derive, about=about)


def _intermediate(context: Context) -> Outcome | None:
    """The width of the MLP: given, the class's default, or worked out as LlamaFeedForward does."""
    pynative = "model.intermediate_size"
    found = architecture(context)
    if found is None:
        return None
    value = context.graph.value(f"{SECTION}.intermediate_size", found.reads["intermediate_size"])
    if value is not None:
        return written(Fate.DEFAULT, pynative, value, f"{named(context.graph)}'s default intermediate_size")
    if "intermediate_size" in found.required:
        why = f"{named(context.graph)} needs `{SECTION}.intermediate_size`, and the file does not give it"
        return refused(why, pynative=pynative, advice=f"give it with --set {pynative}=N", final=True)
    width, arithmetic = _worked_out_width(context, found)
    fate = Fate.COMPUTED if context.graph.given(f"{SECTION}.multiple_of") else Fate.DEFAULT
    return written(fate, pynative, width, "the width that LlamaFeedForward works out", arithmetic=arithmetic)


def _worked_out_width(context: Context, found: Architecture) -> tuple[int, str]:
    """LlamaFeedForward's width, and its arithmetic: two thirds of 4 × hidden_size, stretched and rounded up."""
    defaults = found.reads["hidden_size"], found.reads["multiple_of"]
    assert isinstance(defaults[0], int)
    assert isinstance(defaults[1], int)
    hidden = context.graph.positive(f"{SECTION}.hidden_size", defaults[0])
    multiple = context.graph.positive(f"{SECTION}.multiple_of", defaults[1])
    width = 4 * hidden
    steps = [f"4 × hidden_size {hidden} = {width}"]
    if context.graph.value(f"{SECTION}.ffn_dim_multiplier") is not None:
        factor = context.graph.number(f"{SECTION}.ffn_dim_multiplier", 1.0)
        before, width = width, int((factor + 0.01) * width)
        steps.append(f"int((ffn_dim_multiplier {factor} + 0.01) × {before}) = {width}")
    before, width = width, int(2 * width / 3)
    steps.append(f"int(2 × {before} / 3) = {width}")
    width = multiple * ((width + multiple - 1) // multiple)
    return width, "; ".join((*steps, f"up to a multiple of {multiple}: {width}"))


def _width(context: Context, row: Row, leaf: Leaf, found: Architecture) -> Outcome:
    """A key that takes part in the width of the MLP, unless intermediate_size gives it."""
    if context.graph.value(f"{SECTION}.intermediate_size", found.reads["intermediate_size"]) is not None:
        return dropped("intermediate_size decides", pynative=row.pynative)
    return context.derive("model.intermediate_size") or dropped("intermediate_size decides")


def _positions(context: Context) -> Outcome | None:
    """Plain rotary positions; the ways in which legacy classes stretch them have no counterpart."""
    pynative = "model.position_embedding_type"
    found = architecture(context)
    if found is None:
        return None
    given = context.graph.given(f"{SECTION}.extend_method")
    method = context.graph.value(f"{SECTION}.extend_method", None if given else found.reads["extend_method"])
    if method in (None, "None"):
        return written(
            Fate.COMPUTED if given else Fate.DEFAULT, pynative, "rope", "extend_method None is plain rotary positions"
        )
    factor = context.graph.value(f"{SECTION}.scaling_factor")
    why = (
        f"extend_method {method} (scaling_factor {spell(factor)}) stretches positions in a way that PyNative mode "
        "does not compute"
    )
    if context.options.allow_lossy:
        return written(Fate.COMPUTED, pynative, "rope", why, effect=Effect.TRAINING)
    return refused(why, pynative=pynative, advice="--allow-lossy writes plain rotary positions")


def _extend_method(context: Context, row: Row, leaf: Leaf, found: Architecture) -> Outcome:
    outcome = _positions(context)
    assert outcome is not None
    return outcome


def _switch(name: str, wanted: bool, why: str) -> Row:
    """A switch that PyNative mode has in one position only."""

    def rule(context: Context, row: Row, leaf: Leaf, found: Architecture) -> Outcome:
        if leaf.path[2] not in found.reads:
            return dropped(f"{named(context.graph)} does not read it")
        if leaf_value(leaf) in (wanted, None):
            return dropped(f"{wanted}, as in PyNative mode")
        return refused(why)

    about = f"dropped when {wanted}, else refused: {why}"
    return translated(f"{SECTION}.{name}", None, rule, about=about, effect=Effect.TRAINING, fate=Fate.DROPPED)


def _model_type(context: Context) -> Outcome | None:
    found = counterpart(context.graph)
    if isinstance(found, str):
        return refused(found, final=True)
    note_msrt_only(context, found.model_type)
    _note_what_lies_outside(context)
    why = f"the PyNative family that computes what {named(context.graph)} computes"
    return written(Fate.COMPUTED, "model.model_type", found.model_type, why)


def _note_what_lies_outside(context: Context) -> None:
    """Data and weights of a legacy model that the converted file cannot turn into PyNative's."""
    columns = context.graph.value("train_dataset.input_columns")
    cuts = context.graph.value(f"{SECTION}.input_sliced_sig", False) is False
    if cuts and isinstance(columns, list) and "labels" not in columns:
        context.note(
            f"train_dataset.input_columns is {spell(columns)}: legacy models cut seq_length + 1 tokens into inputs and "
            "labels themselves; PyNative models take input_ids and labels of seq_length tokens, so prepare the data so"
        )
    weights = context.graph.value("load_checkpoint")
    if weights:
        context.note(
            f"load_checkpoint names {spell(weights)}: if a legacy model saved these weights, their names are not "
            "PyNative's; turn them into Hugging Face form first"
        )


def _class(context: Context, row: Row, leaf: Leaf, found: Architecture) -> Outcome:
    outcome = context.derive("model.model_type")
    assert outcome is not None
    return outcome


def _architectures(context: Context) -> Outcome | None:
    found = architecture(context)
    if found is None:
        return None
    return written(
        Fate.DEFAULT, "model.architectures", ARCHITECTURES[found.model_type], f"the class of {found.model_type}"
    )


def _registration(context: Context, row: Row, leaf: Leaf, found: Architecture) -> Outcome:
    return dropped("part of a legacy model's registration")


def _start(context: Context, row: Row, leaf: Leaf, found: Architecture) -> Outcome:
    """Weights that the class loads when it is made; load_checkpoint comes later and wins."""
    value = leaf_value(leaf)
    if not value:
        return dropped("empty: it names no weights")
    if context.graph.value("load_checkpoint"):
        return dropped("load_checkpoint is loaded over it", pynative=row.pynative)
    return refused(
        f"the model starts from the weights {spell(value)}, which are not in PyNative's form",
        pynative=row.pynative,
        advice="give them in Hugging Face form with --set checkpoint.load_path=FOLDER; --allow-lossy starts from "
        "random weights",
    )


def _as_it_is(context: Context, row: Row, leaf: Leaf, found: Architecture) -> Outcome:
    if leaf_value(leaf) is None:
        return dropped("null, as if it were absent", pynative=row.pynative)
    return row.carry(leaf)


def _adapters(context: Context, row: Row, leaf: Leaf, found: Architecture) -> Outcome:
    kind = context.graph.value(f"{SECTION}.pet_config.pet_type", "adapters")
    if leaf_value(leaf) in (None, {}):
        return dropped("empty: all weights are trained")
    return refused(
        f"pet_config trains {kind} beside frozen weights; the converted file would train all weights",
        advice="remove pet_config from the graph file if that is meant", final=True,
    )  # fmt: skip


def _quantised(context: Context, row: Row, leaf: Leaf, found: Architecture) -> Outcome:
    if not leaf_value(leaf):
        return dropped("empty: weights are not quantised")
    return refused("quantised weights have no PyNative counterpart", final=True)


def _unread(context: Context, row: Row, leaf: Leaf, found: Architecture) -> Outcome:
    name = str(leaf.path[2])
    close = nearest(name, list(found.reads))
    advice = f"did you mean `{SECTION}.{close}`?" if close else None
    why = f"no legacy class is known to read `{name}`; it is not carried, {UNTOLD}"
    return Outcome(Fate.UNKNOWN, Effect.TRAINING, why, help=advice)


_SERVING = (
    *GENERATION, "batch_size", "use_past", "is_dynamic", "block_size", "num_blocks", "num_block", "use_past_shard",
    "use_prompt_flash_attention", "chunk_prefill", "llm_backend", "return_hidden_states",
)  # fmt: skip
_OF_OTHERS = (
    "rotary_pct", "rotary_emb_base", "kv_channels", "emb_dropout_prob", "embed_dropout_prob", "hidden_dropout_prob",
    "attention_dropout_prob", "initializer_range", "layernorm_compute_dtype", "softmax_compute_dtype",
    "router_dense_type",
)  # fmt: skip
_QUANTISED = "refused unless empty: quantised weights have no PyNative counterpart"
_ADAPTERS = "refused unless empty: adapters are trained beside frozen weights, PyNative mode would train all weights"
_FUSIONS = ("fused_rms_norm", "use_fused_rope", "use_fused_swiglu", "compute_in_2d", "rmsnorm_compute_2d")
_LAYOUTS = ("qkv_concat", "use_rope_slice")
_STRETCHING = ("scaling_factor", "scaling_factor.*", "pretrain_seqlen")
_DROPPED: tuple[tuple[str, str, Effect], ...] = (
    *((name, "text generation only; training is the same", Effect.NONE) for name in _SERVING),
    *((name, "the class does not read it", Effect.NONE) for name in _OF_OTHERS),
    *((name, "a fusion of graph mode; the same numbers", Effect.SPEED) for name in _FUSIONS),
    *((name, "a layout of the weights; the same numbers", Effect.NONE) for name in _LAYOUTS),
    *((name, "extend_method decides; None does not use it", Effect.NONE) for name in _STRETCHING),
    ("input_sliced_sig", "PyNative's loaders give inputs and labels of seq_length tokens", Effect.NONE),
    ("use_eod_attn_mask_compression", "train_dataset decides on document masks", Effect.NONE),
    ("use_attn_mask_compression", "a form of the causal mask; the same numbers", Effect.MEMORY),
    ("use_ring_attention", "a way to split sequences over devices; context_parallel decides", Effect.MEMORY),
    ("parallel_optimizer", "PyNative mode always shards optimizer state", Effect.MEMORY),
    ("fine_grain_interleave", "an overlap of computation and communication", Effect.SPEED),
    ("pp_interleave_num", "virtual pipeline stages; the stages are folded", Effect.SPEED),
    ("offset", "layers per pipeline stage; the stages are folded", Effect.MEMORY),
)

ROWS: tuple[Row, ...] = (
    translated(f"{SECTION}.type", "model.model_type", _class, Fate.COMPUTED, effect=Effect.TRAINING),
    *(
        translated(name, None, _registration, Fate.DROPPED, about=_REGISTRATION)
        for name in (SECTION, "model.arch", "model.arch.*", f"{SECTION}.auto_register")
    ),
    derived(
        "model.model_type",
        None,
        _model_type,
        about="the family that computes what the class computes; refused where there is none",
    ),
    derived("model.architectures", None, _architectures, about="the class of that family"),
    *(
        translated(f"{SECTION}.{name}", f"model.{pynative}", _key, about=_CARRIED)
        for pynative, names in _straight().items()
        for name in names
    ),
    *(_default(pynative, names) for pynative, names in _straight().items() if pynative != "attention_bias"),
    translated(f"{SECTION}.intermediate_size", "model.intermediate_size", _key, Fate.FLATTENED, about=_CARRIED),
    *(translated(f"{SECTION}.{name}", "model.intermediate_size", _width, Fate.COMPUTED) for name in _WIDTH),
    derived(
        "model.intermediate_size",
        None,
        _intermediate,
        about="intermediate_size or the class's default; else 2 / 3 × 4 × hidden_size × ffn_dim_multiplier, up to a "
        "multiple of multiple_of",
    ),
    translated(
        f"{SECTION}.extend_method",
        "model.position_embedding_type",
        _extend_method,
        Fate.COMPUTED,
        effect=Effect.TRAINING,
    ),
    derived(
        "model.position_embedding_type",
        None,
        _positions,
        about="rope for extend_method None; others are refused, --allow-lossy writes rope",
    ),
    *(_fixed(name) for name in dict.fromkeys(name for one in CLASSES.values() for name in one.fixed)),
    _switch("attn_proj_has_bias", False, "PyNative mode has no bias on attention's output alone"),
    _switch("return_extra_loss", True, "PyNative mode always adds the losses of routing and of MTP"),
    *(
        translated(f"{SECTION}.{name}", f"model.{name}", _as_it_is, Fate.FLATTENED, about="carried")
        for name in ("bos_token_id", "eos_token_id", "pad_token_id", "ignore_token_id", "use_flash_attention")
    ),
    translated(
        f"{SECTION}.checkpoint_name_or_path",
        "checkpoint.load_path",
        _start,
        Fate.REFUSED,
        about="refused when it names weights, for they are not in PyNative's form; dropped beside load_checkpoint",
        effect=Effect.TRAINING,
    ),
    *(
        translated(f"{SECTION}.{name}", None, _quantised, Fate.REFUSED, about=_QUANTISED, effect=Effect.TRAINING)
        for name in ("quant", "quant_config")
    ),
    *(gone(f"{SECTION}.{name}", why, effect) for name, why, effect in _DROPPED),
    *(
        translated(f"{SECTION}.{name}", None, _adapters, Fate.REFUSED, about=_ADAPTERS, effect=Effect.TRAINING)
        for name in ("pet_config", "pet_config.*")
    ),
    translated(f"{SECTION}.*", None, _unread, Fate.UNKNOWN, about="no legacy class is known to read it"),
    *EXPERT_ROWS,
    _under_the_readers_name("scaling_factor", "rotary_scaling_factor"),
    _under_the_readers_name("scoring_func", "moe_router_score_function"),
    _under_the_readers_name("router_dense_type", "moe_router_dtype"),
)
