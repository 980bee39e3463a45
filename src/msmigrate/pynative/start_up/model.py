"""Rules of the model section: names that clash or are ignored, and values that the model's config class refuses."""

from collections.abc import Iterator

from msmigrate.findings import Severity
from msmigrate.pynative.families import FAMILY_DEFAULTS, READER_DEFAULTS
from msmigrate.pynative.keys import specs_of
from msmigrate.pynative.model import Model
from msmigrate.pynative.start_up.rule import Facts, Problem, Rule, divisors

SECTION = "model."
TYPE = SECTION + "model_type"
KNOWN_FAMILY = "deepseek_v3"
"""The family whose reading of names is known; others spell some keys in their own way."""
BALANCING = ("aux_loss", "seq_aux_loss", "global_aux_loss")
"""What the PyNative router computes."""


def _paths(*names: str) -> tuple[str, ...]:
    return tuple(SECTION + name for name in names)


def _names(facts: Facts) -> Iterator[Problem]:
    """Other names of a setting: the reader fills in the Hugging Face name's default and finds two values, or none."""
    if facts.config.model.model_type != KNOWN_FAMILY:
        return
    defaults = FAMILY_DEFAULTS[KNOWN_FAMILY]
    for spec in specs_of(Model).values():
        written = facts.written.get(SECTION + spec.name)
        name = written.path.removeprefix(SECTION) if written is not None else spec.name
        if written is None or name == spec.name or spec.name not in defaults or written.value == defaults[spec.name]:
            continue
        held = f"the readers take {spec.name} as {defaults[spec.name]}, its default"
        advice = f"write {spec.name} instead of {name}"
        if name in spec.key.converted:
            message = f"`{SECTION}{name}` is {written.value} and {held}: they stop at two values for one setting"
            yield Problem(_paths(spec.name), message, advice)
        else:
            yield Problem(_paths(spec.name), f"`{SECTION}{name}` is ignored; {held}", advice, Severity.WARNING)


def _reader_names(facts: Facts) -> Iterator[Problem]:
    """The manual's names that the readers ignore in silence, where their own name says something else."""
    for spec in specs_of(Model).values():
        reader = spec.key.reader_name
        value: object = getattr(facts.config.model, spec.name)
        if reader is None or value is None or facts.config.model.model_type != KNOWN_FAMILY:
            continue
        own: object = getattr(facts.config.model, reader)
        taken = READER_DEFAULTS[reader] if own is None else own
        if value != taken:
            yield Problem(
                _paths(spec.name, reader),
                f"`{SECTION}{spec.name}` {value} is ignored: the readers take `{reader}`, which is {taken}",
                f"write `{reader}: {value}` too",
                Severity.WARNING,
            )


def _dropout(facts: Facts) -> Iterator[Problem]:
    for name in ("hidden_dropout", "attention_dropout"):
        written = facts.written.get(SECTION + name)
        if written is not None and isinstance(written.value, float) and written.value == 1:
            yield Problem(_paths(name), f"{name} is 1.0; the readers take values below 1")


def _fused_swiglu(facts: Facts) -> Iterator[Problem]:
    activation = facts.model("hidden_act")
    if facts.config.model.bias_swiglu_fusion and activation != "swiglu":
        message = f"bias_swiglu_fusion is true and hidden_act is {activation}; the readers want swiglu"
        yield Problem(_paths("bias_swiglu_fusion", "hidden_act"), message, "remove bias_swiglu_fusion")


def _heads(facts: Facts) -> Iterator[Problem]:
    heads, tensor = facts.count("num_attention_heads"), facts.config.parallelism.tensor_parallel
    if heads is not None and heads % tensor:
        message = f"tensor_parallel {tensor} does not divide num_attention_heads {heads}"
        keys = ("parallelism.tensor_parallel", SECTION + "num_attention_heads")
        yield Problem(keys, message, f"legal values: {divisors(heads)}")


def _groups(facts: Facts) -> Iterator[Problem]:
    """Node-limited routing: a group is scored by its two best experts; a token takes as many from each chosen group."""
    experts, per_token = facts.count("n_routed_experts"), facts.count("num_experts_per_tok")
    groups, chosen = facts.count("n_group"), facts.count("topk_group")
    if not chosen or experts is None or per_token is None:
        return
    keys = _paths("topk_group", "n_group", "n_routed_experts", "num_experts_per_tok")
    if not groups:
        yield Problem(keys, f"topk_group is {chosen} and n_group is missing: there are no groups to choose from")
        return
    if experts % groups:
        message = f"n_group {groups} does not divide n_routed_experts {experts}"
        yield Problem((keys[1], *keys), message, f"legal values: {divisors(experts)}")
    elif experts // groups < 2:
        message = f"n_group {groups} leaves {experts // groups} of n_routed_experts {experts} in a group; 2 are needed"
        yield Problem((keys[1], *keys), message)
    if chosen > groups:
        yield Problem(keys, f"topk_group {chosen} is above n_group {groups}")
    if per_token % chosen:
        message = f"topk_group {chosen} does not divide num_experts_per_tok {per_token}"
        yield Problem(keys, message, f"legal values: {divisors(per_token)}")
    elif chosen * (experts // groups) < per_token:
        message = (
            f"topk_group {chosen} × {experts // groups} experts of a group are below num_experts_per_tok {per_token}"
        )
        yield Problem(keys, message)


def _balancing(facts: Facts) -> Iterator[Problem]:
    """Graph mode's kinds of balance loss, one of which the readers take when the file names none."""
    here = facts.config.model
    kind = here.moe_router_load_balancing_type
    if not here.moe_aux_loss_coeff or not facts.count("n_routed_experts") or kind in BALANCING:
        return
    shown = f"is {kind}" if kind else "is missing, which means sub_seq_aux_loss"
    yield Problem(
        _paths("moe_router_load_balancing_type", "moe_aux_loss_coeff"),
        f"moe_router_load_balancing_type {shown}; with moe_aux_loss_coeff {here.moe_aux_loss_coeff:g} the router stops",
        f"expected one of {', '.join(BALANCING)}",
    )


def _expert_bias(facts: Facts) -> Iterator[Problem]:
    """The reader of DeepSeek-V3 turns the bias on when the file says nothing."""
    here = facts.config.model
    score = here.moe_router_score_function
    bias = here.moe_router_enable_expert_bias
    on = bias if bias is not None else here.model_type == KNOWN_FAMILY
    if on and score == "softmax":
        said = "" if bias else " (its default)"
        message = (
            f"moe_router_enable_expert_bias is true{said} and moe_router_score_function is softmax: the readers stop"
        )
        keys = _paths("moe_router_score_function", "moe_router_enable_expert_bias")
        yield Problem(keys, message, "write moe_router_enable_expert_bias: False, or score with sigmoid")


def _one_expert(facts: Facts) -> Iterator[Problem]:
    here = facts.config.model
    softmax = here.moe_router_score_function == "softmax"
    if softmax and facts.count("num_experts_per_tok") == 1 and not here.moe_router_pre_softmax:
        keys = _paths("num_experts_per_tok", "moe_router_score_function", "moe_router_pre_softmax")
        message = "softmax over the 1 chosen expert gives no gradient: the readers stop"
        yield Problem(keys, message, "write moe_router_pre_softmax: True")


def _expert_layers(facts: Facts) -> Iterator[Problem]:
    dense, layers = facts.count("first_k_dense_replace"), facts.count("num_hidden_layers")
    every = facts.count("moe_layer_freq")
    keys = _paths("first_k_dense_replace", "num_hidden_layers", "moe_layer_freq")
    if dense and layers is not None and dense > layers:
        yield Problem(keys, f"first_k_dense_replace {dense} is above num_hidden_layers {layers}")
    if dense and every is not None and every > 1:
        yield Problem((keys[2], *keys), f"moe_layer_freq {every} and first_k_dense_replace {dense} exclude each other")


def _bias(facts: Facts) -> Iterator[Problem]:
    if facts.config.model.add_bias_linear and facts.count("n_routed_experts"):
        keys = _paths("add_bias_linear", "n_routed_experts")
        yield Problem(keys, "add_bias_linear is true in a model with experts: the readers stop", "write False")


RULES = (
    Rule("P060", "model-name", _names),
    Rule("P061", "ignored-by-readers", _reader_names),
    Rule("P062", "dropout-of-all", _dropout),
    Rule("P063", "fused-swiglu", _fused_swiglu),
    Rule("P064", "heads-over-ranks", _heads),
    Rule("P065", "expert-groups", _groups),
    Rule("P066", "balance-loss", _balancing),
    Rule("P067", "expert-bias", _expert_bias),
    Rule("P068", "one-expert", _one_expert),
    Rule("P069", "expert-layers", _expert_layers),
    Rule("P070", "bias-with-experts", _bias),
)
