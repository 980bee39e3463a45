"""Rows of `moe_config`, the section from which legacy classes take their experts, for the classes that have them."""

from msmigrate.mapping.context import Context
from msmigrate.mapping.legacy_classes import MIXTURE, Architecture
from msmigrate.mapping.model_values import canonical
from msmigrate.mapping.outcome import Effect, Fate, Outcome, carried, dropped, refused, written
from msmigrate.mapping.rows import Row, derived, leaf_value
from msmigrate.mapping.translated import architecture, gone, translated
from msmigrate.yaml.nodes import Leaf
from msmigrate.yaml.scalars import Value, spell

SECTION = "moe_config"
_OTHER_NAMES = {
    "num_experts_chosen": "num_experts_per_tok",
    "balance_via_topk_bias": "moe_router_enable_expert_bias",
    "topk_bias_update_rate": "moe_router_bias_update_rate",
    "use_gating_sigmoid": "scoring_func",
}
"""Keys that only `moe_config` spells so; the others are pynative keys or aliases of them."""
_ONE_EXPERT = "expert_num is 1: no layer has experts"
_COEFFICIENT = "model.moe_aux_loss_coeff"


def _target(name: str) -> str:
    found = _OTHER_NAMES.get(name) or canonical(name)
    assert found is not None, name
    return f"model.{found}"


def _value(context: Context, name: str) -> Value:
    """A key of `moe_config` in PyNative's terms, or its default."""
    value = context.graph.value(f"{SECTION}.{name}", MIXTURE[name])
    if name == "use_gating_sigmoid":
        return "sigmoid" if value else "softmax"
    return value


def _has_experts(found: Architecture | None) -> bool:
    return found is not None and found.model_type == "deepseek_v3"


def _key(context: Context, row: Row, leaf: Leaf, found: Architecture) -> Outcome:
    name = str(leaf.path[1])
    if not _has_experts(found):
        return dropped(_ONE_EXPERT)
    assert row.pynative is not None
    if leaf_value(leaf) is None:
        return dropped("null, as if it were absent", pynative=row.pynative)
    if name == "use_gating_sigmoid":
        return written(Fate.COMPUTED, row.pynative, _value(context, name), "True is sigmoid, False softmax")
    return carried(Fate.RENAMED, row.pynative, leaf.node)


def _with_experts(name: str) -> str:
    sense = "True is sigmoid, False softmax" if name == "use_gating_sigmoid" else "carried"
    return f"{sense}; dropped where the model has no experts"


def _default(name: str) -> Row:
    def derive(context: Context) -> Outcome | None:
        if not _has_experts(architecture(context)):
            return None
        return written(Fate.DEFAULT, _target(name), _value(context, name), f"moe_config's default {name}")

    about = f"moe_config's default {name} is {spell(MIXTURE[name])}"
    return derived(_target(name), None, derive, about=about)


def _losses(context: Context) -> dict[str, float]:
    """The balance losses of the file that are not weighed with 0."""
    names = context.graph.value(f"{SECTION}.aux_loss_types", [])
    factors = context.graph.value(f"{SECTION}.aux_loss_factors", [])
    if not isinstance(names, list) or not isinstance(factors, list):
        return {}
    pairs = zip(names, factors, strict=False)
    return {str(name): float(factor) for name, factor in pairs if isinstance(factor, (int, float)) and factor}


def _coefficient(context: Context) -> Outcome | None:
    """The weight of the balance loss: legacy routers take it over the experts chosen with the bias."""
    if not _has_experts(architecture(context)):
        return None
    losses = _losses(context)
    if not losses:
        fate = Fate.COMPUTED if context.graph.given(f"{SECTION}.aux_loss_factors") else Fate.DEFAULT
        return written(fate, _COEFFICIENT, 0.0, "the file weighs no balance loss")
    told = ", ".join(f"{name} {factor:g}" for name, factor in losses.items())
    why = (
        f"the balance losses of a legacy router ({told}) average over all tokens of a device and count the experts "
        "chosen with the bias; PyNative's aux_loss, over a micro-batch and without the bias, is the closest"
    )
    if context.options.allow_lossy:
        return written(Fate.COMPUTED, _COEFFICIENT, losses.get("expert", 0.0), why, effect=Effect.TRAINING)
    return refused(why, pynative=_COEFFICIENT, advice="--allow-lossy writes aux_loss")


def _balancing(context: Context) -> Outcome | None:
    if not _has_experts(architecture(context)) or not _losses(context) or not context.options.allow_lossy:
        return None
    return written(
        Fate.COMPUTED, "model.moe_router_load_balancing_type", "aux_loss", "the closest to a legacy router's loss"
    )


def _balance(context: Context, row: Row, leaf: Leaf, found: Architecture) -> Outcome:
    return context.derive(_COEFFICIENT) or dropped(_ONE_EXPERT)


def _capacity(context: Context, row: Row, leaf: Leaf, found: Architecture) -> Outcome:
    """How many tokens an expert takes; PyNative layers drop none."""
    if not _has_experts(found):
        return dropped(_ONE_EXPERT)
    if context.graph.flag(f"{SECTION}.use_gmm", False):
        return dropped("use_gmm: True drops no token, as in PyNative mode")
    factor = context.graph.number(f"{SECTION}.capacity_factor", 1.1)
    if factor <= 0:
        return dropped(f"capacity_factor {factor:g} drops no token, as in PyNative mode")
    return refused(f"capacity_factor {factor:g} drops tokens of crowded experts; PyNative layers drop none")


def _policy(context: Context, row: Row, leaf: Leaf, found: Architecture) -> Outcome:
    if not _has_experts(found):
        return dropped(_ONE_EXPERT)
    if leaf_value(leaf) == "TopkRouterV2":
        return dropped("PyNative mode routes like TopkRouterV2")
    return refused(f"routing_policy {leaf_value(leaf)} has no PyNative counterpart")


def _off(what: str) -> Row:
    """A switch that PyNative mode does not have."""

    def rule(context: Context, row: Row, leaf: Leaf, found: Architecture) -> Outcome:
        if not _has_experts(found):
            return dropped(_ONE_EXPERT)
        if not leaf_value(leaf):
            return dropped("off, as in PyNative mode")
        return refused(f"{what} has no PyNative counterpart")

    about = "refused while on: no PyNative counterpart"
    return translated(f"{SECTION}.{what}", None, rule, Fate.REFUSED, about=about, effect=Effect.TRAINING)


_SAME_NUMBERS = "how experts are computed or reached; the same numbers"
_LAYOUTS = (
    "use_gmm", "use_fused_ops_topkrouter", "use_fused_ops_permute", "enable_gmm_safe_tokens", "expert_group_size",
    "expert_model_parallel", "group_wise_a2a", "comp_comm_parallel", "comp_comm_parallel_degree",
    "use_allgather_dispatcher", "moe_shared_expert_overlap", "enable_deredundency", "npu_nums_per_device",
    "ep_extend_tp", "use_pad_tokens", "dispatch_global_max_bs", "max_router_load", "enable_cold_hot_expert",
    "hot_expert_num", "cold_token_percent", "update_step", "cur_layer", "moe_module_name",
)  # fmt: skip

EXPERT_ROWS: tuple[Row, ...] = (
    *(translated(f"{SECTION}.{name}", _target(name), _key, about=_with_experts(name)) for name in MIXTURE),
    *(_default(name) for name in MIXTURE),
    *(
        translated(f"{SECTION}.{name}", _COEFFICIENT, _balance, Fate.COMPUTED, effect=Effect.TRAINING)
        for name in ("aux_loss_types", "aux_loss_factors")
    ),
    derived(
        _COEFFICIENT,
        None,
        _coefficient,
        about="0.0 where the file weighs no balance loss; else refused, for a legacy router averages over other "
        "tokens, --allow-lossy writes the closest",
    ),
    derived(
        "model.moe_router_load_balancing_type", None, _balancing, about="aux_loss, the closest, with --allow-lossy"
    ),
    translated(
        f"{SECTION}.capacity_factor",
        None,
        _capacity,
        Fate.REFUSED,
        about="refused above 0 without use_gmm, where experts drop tokens: PyNative layers drop none",
        effect=Effect.TRAINING,
    ),
    translated(
        f"{SECTION}.routing_policy",
        None,
        _policy,
        Fate.REFUSED,
        about="dropped for TopkRouterV2, by which PyNative mode routes; others are refused",
        effect=Effect.TRAINING,
    ),
    *(_off(name) for name in ("z_loss_factor", "use_shared_expert_gating")),
    gone(f"{SECTION}.aux_loss_factor", "TopkRouterV2 takes aux_loss_factors"),
    gone(f"{SECTION}.topk_method", "n_group and topk_group decide"),
    gone(f"{SECTION}.enable_sdrop", "which tokens are dropped over capacity; capacity_factor decides whether any are"),
    gone(f"{SECTION}.callback_moe_droprate", "logging only"),
    gone(f"{SECTION}.save_token_distribution", "logging only"),
    *(gone(f"{SECTION}.{name}", _SAME_NUMBERS, Effect.SPEED) for name in _LAYOUTS),
)
