"""Rows for `callbacks` but those that save (checkpoint.py) or end the run (training.py)."""

from collections.abc import Mapping

from msmigrate.mapping.back.context import always
from msmigrate.mapping.back.settings import expert_bias
from msmigrate.mapping.context import Context
from msmigrate.mapping.model_values import model_value
from msmigrate.mapping.outcome import Effect, Fate, Outcome, dropped, refused
from msmigrate.mapping.rows import Row, goes, judged, leaf_value
from msmigrate.mapping.switches import vital
from msmigrate.problems import UserError
from msmigrate.wording import shown
from msmigrate.yaml.nodes import Leaf
from msmigrate.yaml.scalars import Value, spell

_APPENDIX = "appendix"
_LOGS = "PyNative mode logs loss, rate and gradient norm itself"
_SPARED: Mapping[str, tuple[str, Effect]] = {
    "MFLossMonitor": (_LOGS, Effect.NONE),
    "LossMonitor": (_LOGS, Effect.NONE),
    "SummaryMonitor": (_LOGS, Effect.NONE),
    "MaxLogitsMonitor": (_LOGS, Effect.NONE),
    "MoEDropRateCallback": ("it logs dropped tokens, and PyNative layers drop none", Effect.NONE),
    "TrainingStateMonitor": (_LOGS, Effect.NONE),
    "ProfileMonitor": ("the profiler is off by default; switch it on under profiler", Effect.NONE),
    "ObsMonitor": ("copying to object storage is the cluster's work", Effect.NONE),
    "StressDetectCallBack": ("a hardware check; training is the same", Effect.NONE),
    "StressDetectModuleMonitor": ("a hardware check; training is the same", Effect.NONE),
    "EvalCallBack": ("PyNative mode does not evaluate while training", Effect.NONE),
    "OnRequestExit": ("how a run is stopped; training is the same", Effect.NONE),
    "TrainFaultTolerance": ("a rescue of checkpoints on failing hardware; training is the same", Effect.NONE),
    "ColdHotExpertMonitor": ("it moves busy experts between devices; the numbers are the same", Effect.SPEED),
}
"""Callbacks that do not change what a run learns."""
_KEPT = {"MFLossMonitor": always("callbacks[MFLossMonitor].type", "MFLossMonitor", "graph mode logs by this callback")}
"""Those that a graph file turned back from a pynative file has."""

SKIPS = "steps with a large gradient norm are skipped or trained again in graph mode; PyNative mode takes every step"
_BIAS = "TopkBiasBalanceCallback"
_STEERS = "dropped where the model section asks for the expert bias with the same rate, or nothing does; else refused"


def _expert_bias(context: Context, row: Row, leaf: Leaf) -> Outcome:
    """The callback that steers the choice of experts; PyNative mode does it by model keys."""
    callback = context.graph.callback(_BIAS) or {}
    if callback.get("balance_via_topk_bias") is False:
        return dropped("balance_via_topk_bias is False: it does nothing")
    if model_value(context, "moe_router_enable_expert_bias") is not True:
        if callback.get("balance_via_topk_bias") is not True:
            return dropped("moe_router_enable_expert_bias is not True: it does nothing")
        return refused(
            "the callback steers the choice of experts by a bias; PyNative mode does so only with "
            "moe_router_enable_expert_bias: True",
            advice="set it with --set model.moe_router_enable_expert_bias=True, and moe_router_bias_update_rate",
        )
    rates = callback.get("topk_bias_update_rate"), model_value(context, "moe_router_bias_update_rate")
    if None not in rates and rates[0] != rates[1]:
        return refused(
            f"topk_bias_update_rate is {spell(rates[0])} in the callback, and moe_router_bias_update_rate is "
            f"{spell(rates[1])}; PyNative mode has the second alone",
            advice="make them agree in the graph file",
        )
    return dropped("PyNative mode updates the expert bias itself, as moe_router_enable_expert_bias says")


def _unheard_of(context: Context, row: Row, leaf: Leaf) -> Outcome:
    """A callback that is none of MindFormers' own."""
    kind = context.graph.row_key(leaf.path).partition("[")[2].partition("]")[0]
    if kind in ("?", "None"):
        return refused(f"callbacks[{leaf.path[1]}] has no `type`", advice="name its class", final=True)
    return refused(
        f"callback {kind} is not MindFormers' own: what it does to training is not known, and PyNative mode has no "
        "such callback",
        advice="take it out of the graph file if training is the same without it",
    )


def _none(context: Context, row: Row, leaf: Leaf) -> Outcome:
    value: Value = leaf_value(leaf)
    if value in (None, [], {}):
        return dropped("no callbacks")
    raise UserError(f"{context.graph.place('callbacks')}: `callbacks` is {shown(value)}; expected mappings with `type`")


def _spared_rows() -> tuple[Row, ...]:
    rows = [
        goes(f"callbacks[{kind}].type", why, _APPENDIX, effect, _KEPT.get(kind))
        for kind, (why, effect) in _SPARED.items()
    ]
    rows += [goes(f"callbacks[{kind}].*", why, _APPENDIX, effect) for kind, (why, effect) in _SPARED.items()]
    return tuple(rows)


ROWS: tuple[Row, ...] = (
    *_spared_rows(),
    vital("callbacks[TrainingStateMonitor].use_skip_data_by_global_norm", SKIPS),
    vital("callbacks[TrainingStateMonitor].config.check_for_global_norm", SKIPS),
    judged(
        f"callbacks[{_BIAS}].type",
        None,
        _APPENDIX,
        _expert_bias,
        Fate.DROPPED,
        back=expert_bias,
        about=_STEERS,
        effect=Effect.TRAINING,
    ),
    judged(f"callbacks[{_BIAS}].*", None, _APPENDIX, _expert_bias, Fate.DROPPED, about=_STEERS, effect=Effect.TRAINING),
    judged(
        "callbacks[].*",
        None,
        _APPENDIX,
        _unheard_of,
        Fate.REFUSED,
        effect=Effect.TRAINING,
        about="refused: a callback that is not MindFormers' own, so what it does to training is not known",
    ),
    judged("callbacks", None, _APPENDIX, _none, Fate.DROPPED, about="dropped: no callbacks"),
)
