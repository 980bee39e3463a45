"""Rows of the manual's sections 6 and 7: which activations and which communication are computed again."""

from msmigrate.mapping.back import recompute as back
from msmigrate.mapping.back.recompute import ATTENTION, COMMUNICATION, MANUAL_COMMUNICATION
from msmigrate.mapping.context import Context
from msmigrate.mapping.layers import MOST_LAYERS, cut, first_of_each, per_stage, ranges
from msmigrate.mapping.model_values import effective_value, model_value
from msmigrate.mapping.outcome import Effect, Fate, Outcome, dropped, refused, written
from msmigrate.mapping.rows import Row, computed, derived, judged, leaf_value, turned_back
from msmigrate.mapping.switches import spared
from msmigrate.problems import UserError
from msmigrate.wording import shown
from msmigrate.yaml.nodes import Leaf
from msmigrate.yaml.scalars import Value

_KEY = "recompute_config.recompute"
_SELECT = "recompute_config.select_recompute"


def _all_layers(context: Context) -> list[int] | Outcome:
    """Every decoder layer, and those of multi-token prediction as the last ids."""
    layers = effective_value(context, "num_hidden_layers")
    if not isinstance(layers, int) or isinstance(layers, bool):
        return refused(
            "the layer range needs num_hidden_layers, which the file does not give",
            pynative="recompute.mode",
            advice="give the model's config.json with --hf-config",
            final=True,
        )
    if not 0 < layers <= MOST_LAYERS:
        return refused(
            f"num_hidden_layers is {layers}; expected 1 to {MOST_LAYERS}", pynative="recompute.mode", final=True
        )
    return list(range(layers + _mtp_layers(context)))


def _mtp_layers(context: Context) -> int:
    """Multi-token prediction layers that a layer range can name: MindFormers counts them, the manual does not."""
    extra = effective_value(context, "num_nextn_predict_layers")
    return extra if extra in (0, 1) and isinstance(extra, int) and not context.options.manual_only else 0


def chosen_layers(context: Context, key: str) -> list[int] | Outcome:
    """Layers that a recompute key of graph mode names: True for all, counts per stage or chunk and stage, else none."""
    value = context.graph.value(key, False)
    if value is True:
        return _all_layers(context)
    if isinstance(value, list):
        return [] if all(isinstance(item, str) for item in value) else _from_counts(context, key, value)
    if value is not False and not (key == _SELECT and isinstance(value, dict)):
        raise UserError(
            f"{context.graph.place(key)}: `{key}` is {shown(value)}; expected True, False or a list of layers per stage"
        )
    return []


def _from_counts(context: Context, key: str, value: Value) -> list[int] | Outcome:
    every = _all_layers(context)
    if isinstance(every, Outcome):
        return every
    extra = _mtp_layers(context)
    if context.legacy:  # legacy models cut the layers of multi-token prediction like those of the decoder
        extra = 0
    layers = len(every) - extra
    stages = context.degree("pipeline_stage")
    interleave = _interleave(context)
    parts = cut(layers, stages, interleave, model_value(context, "offset") or 0)
    counts = per_stage(value, stages, interleave, "the list")
    for problem in (parts, counts):
        if isinstance(problem, str):
            return refused(problem, pynative="recompute.full_recompute_layer", effect=Effect.MEMORY, final=True)
    assert not isinstance(parts, str)
    assert not isinstance(counts, str)
    return first_of_each(parts, counts, extra)


def _interleave(context: Context) -> int:
    value = model_value(context, "pp_interleave_num")
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 1


def _select_modules(context: Context) -> bool:
    return context.graph.value(_SELECT, False) not in (False, None, [], {})


def _mode(context: Context) -> Outcome | None:
    ids = chosen_layers(context, _KEY)
    if isinstance(ids, Outcome):
        return ids
    if _select_modules(context):
        return _mode_with_select(context, ids)
    if not ids:
        return None
    return written(Fate.COMPUTED, "recompute.mode", "full", f"layers recomputed whole: {len(ids)}")


def _mode_with_select(context: Context, ids: list[int]) -> Outcome | None:
    modules = context.derive("recompute.select_module")
    if modules is None:
        return written(Fate.COMPUTED, "recompute.mode", "full", f"layers recomputed whole: {len(ids)}") if ids else None
    if modules.fate is Fate.REFUSED:
        return modules
    return written(Fate.COMPUTED, "recompute.mode", "select", "recompute with select_recompute (manual section 6.2)")


def _layers(context: Context) -> Outcome | None:
    ids = chosen_layers(context, _KEY)
    if isinstance(ids, Outcome):
        return ids
    mode = context.derive("recompute.mode")
    whole = ids and not (mode and mode.value == "select" and context.graph.value(_KEY) is True)
    if not whole:
        return None
    return written(
        Fate.COMPUTED,
        "recompute.full_recompute_layer",
        ranges(ids),
        "the 2.x readers refuse mode full without a layer range",
        arithmetic=f"layers: {len(ids)}",
    )


def _selected(context: Context) -> Outcome | None:
    """select_recompute recomputes the attention of the layers it names; it is read only beside recompute."""
    value = context.graph.value(_SELECT, False)
    if value is True and context.graph.value(_KEY, False) in (False, None):
        return None
    ids = chosen_layers(context, _SELECT)
    if isinstance(ids, Outcome):
        return ids
    if not ids:
        return None
    return written(
        Fate.COMPUTED,
        "recompute.select_module",
        {ATTENTION: ranges(ids)},
        "graph mode's selective recompute covers operators of attention; PyNative mode names the module",
        effect=Effect.MEMORY,
    )


def _select_rule(context: Context, row: Row, leaf: Leaf) -> Outcome:
    value = leaf_value(leaf)
    if value in (False, None, []):
        return context.derive("recompute.mode") or dropped("off, as in PyNative mode")
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return _patterns_rule(context, row, leaf)
    return context.derive("recompute.select_module") or dropped(
        "read only beside recompute, which is off", Effect.NONE, "recompute.select_module"
    )


def _patterns_rule(context: Context, row: Row, leaf: Leaf) -> Outcome:
    value = leaf_value(leaf)
    if not value:
        return dropped("off, as in PyNative mode", Effect.NONE, "recompute.select_module")
    patterns = leaf.path[-1] if row.graph != _SELECT else value
    return dropped(
        f"the pattern names modules of graph mode, {patterns!r}; write PyNative module paths under "
        "recompute.select_module",
        Effect.MEMORY,
        "recompute.select_module",
    )


def _comm_enable(context: Context) -> Outcome | None:
    mode = context.derive("recompute.mode")
    given = context.graph.given("recompute_config.mp_comm_recompute")
    fate = Fate.COMPUTED if given else Fate.DEFAULT
    target = "recompute_comm.enable"
    if mode is None:
        return written(fate, target, False, "recompute is off, so it has no effect in graph mode") if given else None
    if mode.fate is Fate.REFUSED:
        return mode
    value = context.graph.flag("recompute_config.mp_comm_recompute", True)
    why = "as mp_comm_recompute" if given else "graph mode's default mp_comm_recompute is True"
    return written(fate, target, value, why)


def _comm_modules(context: Context) -> Outcome | None:
    enable = context.derive("recompute_comm.enable")
    if enable is None or enable.value is not True:
        return None
    key = _SELECT if context.derive("recompute.full_recompute_layer") is None else _KEY
    ids = chosen_layers(context, key)
    if isinstance(ids, Outcome):
        return ids
    pattern = MANUAL_COMMUNICATION if context.options.manual_only else COMMUNICATION
    return written(
        Fate.COMPUTED,
        "recompute_comm.select_module",
        {pattern: ranges(ids)},
        "the communication of the recomputed layers; the readers refuse enable without it",
    )


ROWS: tuple[Row, ...] = (
    computed(_KEY, "recompute.mode", "6.2", "off, as in PyNative mode", back=back.recompute),
    derived(
        "recompute.mode",
        "6.1",
        _mode,
        about="full where layers are recomputed whole, select with select_recompute; not written while both are off",
    ),
    derived(
        "recompute.full_recompute_layer",
        "6.1",
        _layers,
        back=back.recompute,
        about="True is all layers, MTP layers last (the decoder's alone with --manual-only); a list of counts becomes "
        "the layers that it means on each stage",
    ),
    judged(
        _SELECT,
        "recompute.select_module",
        "6.2",
        _select_rule,
        Fate.COMPUTED,
        effect=Effect.MEMORY,
        about="the attention of the layers that it means; dropped while recompute is off; names of modules are dropped",
    ),
    turned_back(f"recompute.select_module.{ATTENTION}", back.select_recompute),
    judged(
        f"{_SELECT}.*",
        "recompute.select_module",
        "6.2",
        _patterns_rule,
        Fate.DROPPED,
        effect=Effect.MEMORY,
        about="dropped: the patterns name modules of graph mode; write module paths of PyNative mode",
    ),
    derived(
        "recompute.select_module",
        "6.1",
        _selected,
        back=back.other_modules,
        about="the attention of the layers that select_recompute means",
    ),
    computed("recompute_config.mp_comm_recompute", "recompute_comm.enable", "7.2", back=back.communication),
    *(
        turned_back(f"recompute_comm.select_module.{name}", back.communication)
        for name in (COMMUNICATION, MANUAL_COMMUNICATION)
    ),
    derived(
        "recompute_comm.enable",
        "7.1",
        _comm_enable,
        about="mp_comm_recompute, True in graph mode by default, where layers are recomputed; else it has no effect",
    ),
    derived(
        "recompute_comm.select_module",
        "7.1",
        _comm_modules,
        back=back.other_communication,
        about="the communication of the recomputed layers; the readers refuse enable without it",
    ),
    spared(
        "recompute_config.parallel_optimizer_comm_recompute",
        "parallelism.reshard_after_forward_policy decides it in PyNative mode",
        Effect.MEMORY,
    ),
    spared("recompute_config.recompute_slice_activation", "graph mode only", Effect.MEMORY),
    spared("recompute_config.select_comm_recompute", "select communication under recompute_comm", Effect.MEMORY),
    spared("recompute_config.select_comm_recompute.*", "select communication under recompute_comm", Effect.MEMORY),
)
