"""recompute_config of a graph file, from layer ranges and module patterns."""

from dataclasses import dataclass

from msmigrate.mapping.back.context import BackContext
from msmigrate.mapping.back.pipeline import Spread, spread
from msmigrate.mapping.layers import MOST_LAYERS, Chunks, chunks_of, highest_id, ids_of
from msmigrate.mapping.outcome import Effect, Outcome, dropped, refused, written
from msmigrate.pynative.families import ARCHITECTURES, FAMILY_DEFAULTS
from msmigrate.yaml.scalars import Value

ATTENTION = "self_attention"
"""The module whose operators graph mode's select_recompute covers."""
COMMUNICATION = r".*\.(allgather|reducescatter|alltoallsingle)"
"""The communication slots that MindFormers 2.1 registers: `<module>.input.allgather`, `.output.reducescatter`, …"""
MANUAL_COMMUNICATION = "mlp.router.all_gather"
"""The slot that the manual names (section 10)."""
SHAPE = ("hidden_size", "num_hidden_layers", "vocab_size")
"""Keys without which a model section has no shape of its own."""
_MODE = "recompute.mode"
_FULL = "recompute.full_recompute_layer"
_SELECT = "recompute.select_module"


@dataclass(frozen=True, slots=True)
class Plan:
    """What is recomputed: graph mode's two keys, and the chunks that give their counts a meaning."""

    whole: Value
    select: Value
    chunks: Chunks
    ids: tuple[int, ...]
    """Layers that are recomputed in some part."""
    exact: bool = True
    """False where as many layers of a pipeline stage are recomputed, but its first ones instead of these."""


def plan(context: BackContext) -> Plan | Outcome:
    """The recomputed layers in graph mode's terms, or why they cannot be told."""
    mode = context.value(_MODE)
    if mode == "None":
        return Plan(False, False, Chunks((0,)), ())
    full = _parts(context.value(_FULL))
    attention = _parts(_attention(context)) if mode == "select" else ()
    if mode == "full" and not full:
        return refused(
            "recompute.mode is full and full_recompute_layer names no layer, which the readers refuse",
            pynative="recompute_config.recompute", advice="name the layers, or set mode to None", final=True,
        )  # fmt: skip
    held = layers_held(context)
    highest = max(highest_id(full), highest_id(attention))
    last = MOST_LAYERS - 1 if held is None else min(held, MOST_LAYERS) - 1
    if highest > last:
        return refused(
            f"layer {highest} is recomputed, and the model has the layers 0 to {last}",
            pynative="recompute_config.recompute", advice="correct the layer ranges", final=True,
        )  # fmt: skip
    if context.integer("parallelism.pipeline_parallel") > 1:
        return _over_stages(context, ids_of(full), ids_of(attention))
    found = _planned(ids_of(full), ids_of(attention), held)
    layers = effective(context, "num_hidden_layers")
    if isinstance(found, Plan) and isinstance(layers, int) and len(found.chunks.starts) > layers:
        return refused(
            f"graph mode can only name the first layers of chunks, and {len(found.chunks.starts)} chunks are more than "
            f"the {layers} decoder layers",
            pynative="recompute_config.recompute", advice="recompute the decoder layers too", effect=Effect.MEMORY,
        )  # fmt: skip
    return found


def _planned(full: list[int], attention: list[int], held: int | None) -> Plan | Outcome:
    chunks = chunks_of(full, attention)
    if held is None and len(chunks.starts) > 1:
        return _without_layers("the recomputed layers do not begin with layer 0 in one piece, so they need")
    every = list(range(min(held or 0, MOST_LAYERS)))
    ids = tuple(sorted({*full, *attention}))
    if not attention:
        whole: Value = False if not full else True if full == every else chunks.counts(full)
        return Plan(whole, False, chunks, ids)
    select: Value = True if attention == every and not full else chunks.counts(attention)
    return Plan(chunks.counts(full) if full else True, select, chunks, ids)


def _over_stages(context: BackContext, full: list[int], attention: list[int]) -> Plan | Outcome:
    """The plan over pipeline stages, whose recomputed layers graph mode counts from the first of each."""
    held = spread_over_stages(context)
    if held is None:
        return _without_layers("the recomputed layers of each pipeline stage follow from")
    if isinstance(held, str):
        return refused(held, pynative="parallel_config.pipeline_stage", final=True)
    every = list(range(layers_held(context) or 0))

    def told(ids: list[int]) -> Value:
        return True if ids == every else list(held.counts(ids))

    whole: Value = told(full) if full else bool(attention)
    ids = tuple(sorted({*full, *attention}))
    exact = held.are_first(full) and held.are_first(attention)
    return Plan(whole, told(attention) if attention else False, Chunks((0,)), ids, exact)


def spread_over_stages(context: BackContext) -> Spread | str | None:
    """The layers over two pipeline stages or more, or why they do not fit; None for one stage, or unknown layers."""
    layers, stages = effective(context, "num_hidden_layers"), context.integer("parallelism.pipeline_parallel")
    if stages == 1 or not isinstance(layers, int):
        return None
    return spread(layers, (layers_held(context) or layers) - layers, stages)


def _without_layers(reason: str) -> Outcome:
    return refused(
        f"{reason} num_hidden_layers, which the file does not give",
        pynative="recompute_config.recompute", advice="give it with --set model.num_hidden_layers=N", final=True,
    )  # fmt: skip


def _parts(value: object) -> tuple[object, ...]:
    return value if isinstance(value, tuple) else ()


def _attention(context: BackContext) -> object:
    modules = context.value(_SELECT)
    return modules.get(ATTENTION) if isinstance(modules, dict) else None


def effective(context: BackContext, name: str) -> object:
    """A model key as the run has it: given, else the family's default where the file gives no shape of its own."""
    value = context.value(f"model.{name}")
    if value is not None or any(context.value(f"model.{key}") is not None for key in SHAPE):
        return value
    kind = context.text("model.model_type")
    return FAMILY_DEFAULTS.get(kind, {}).get(name) if kind in ARCHITECTURES else None


def layers_held(context: BackContext) -> int | None:
    """Layers that a range can name: the decoder's, and one of multi-token prediction; None when not known."""
    layers = effective(context, "num_hidden_layers")
    if not isinstance(layers, int):
        return None
    return layers + (1 if effective(context, "num_nextn_predict_layers") == 1 else 0)


def recompute(context: BackContext) -> Outcome:
    found = plan(context)
    if isinstance(found, Outcome):
        return found
    why = f"layers recomputed: {len(found.ids)} of the decoder's" if found.ids else "nothing is recomputed"
    if not found.exact:
        why += "; graph mode counts them from the first of each pipeline stage, so others are recomputed"
        return written(context.fate(_MODE), "recompute_config.recompute", found.whole, why, effect=Effect.MEMORY)
    if len(found.chunks.starts) > 1:
        why += f"; the counts are for the {len(found.chunks.starts)} chunks that pp_interleave_num and offset make"
    return written(context.fate(_MODE), "recompute_config.recompute", found.whole, why)


def select_recompute(context: BackContext) -> Outcome | None:
    found = plan(context)
    if isinstance(found, Outcome):
        return found
    if found.select is False:
        return dropped(f"recompute.mode is {context.value(_MODE)}") if context.given(_SELECT) else None
    why = "graph mode's selective recompute covers operators of attention"
    return written(context.fate(_SELECT), "recompute_config.select_recompute", found.select, why, effect=Effect.MEMORY)


def other_modules(context: BackContext) -> Outcome:
    """Patterns that graph mode has no counterpart for."""
    if context.value(_MODE) != "select":
        return dropped(f"recompute.mode is {context.value(_MODE)}")
    return dropped("graph mode's selective recompute covers attention alone: these modules keep more", Effect.MEMORY)


def _chunked(context: BackContext) -> tuple[Chunks, int] | None:
    """The chunks, where one is not enough, and the decoder's layers."""
    found = plan(context)
    layers = effective(context, "num_hidden_layers")
    if isinstance(found, Outcome) or len(found.chunks.starts) == 1 or not isinstance(layers, int):
        return None
    return found.chunks, layers


_WHY_CHUNKS = "one stage in chunks, each of which begins with its recomputed layers: graph mode counts from there"


def interleave(context: BackContext) -> Outcome | None:
    found = _chunked(context)
    if found is None:
        return None
    fate, count = context.fate(_FULL), len(found[0].starts)
    return written(fate, "model.model_config.pp_interleave_num", count, _WHY_CHUNKS)


def offset(context: BackContext) -> Outcome | None:
    """Where one stage has chunks, their layers; where the layers do not divide over the stages, who has one more."""
    over = spread_over_stages(context)
    if over is not None:
        return _uneven(context, over)
    found = _chunked(context)
    if found is None:
        return None
    chunks, layers = found
    base = f"{layers} layers // {len(chunks.starts)} chunks = {layers // len(chunks.starts)}"
    value = chunks.offset(layers)
    return written(context.fate(_FULL), "model.model_config.offset", value, _WHY_CHUNKS, arithmetic=base)


def _uneven(context: BackContext, over: Spread | str) -> Outcome | None:
    target, fate = "model.model_config.offset", context.fate("parallelism.pipeline_parallel")
    if isinstance(over, str):
        return refused(over, pynative="parallel_config.pipeline_stage", final=True)
    why = "the layers do not divide evenly over the stages"
    return written(fate, target, over.offset, why) if over.offset != 0 else None


def communication(context: BackContext) -> Outcome | None:
    """mp_comm_recompute: on by default in graph mode, and without effect where nothing is recomputed."""
    key, target = "recompute_comm.enable", "recompute_config.mp_comm_recompute"
    found = plan(context)
    if isinstance(found, Outcome):
        return found
    enabled = context.value(key) is True
    if not found.ids and not context.given(key):
        return None
    lonely = enabled and not found.ids
    why = "nothing is recomputed, and graph mode then keeps communication" if lonely else "as recompute_comm.enable"
    if not context.given(key):
        why = "PyNative mode's default enable is False, graph mode's mp_comm_recompute is True"
    return written(context.fate(key), target, enabled, why, effect=Effect.MEMORY if lonely else Effect.NONE)


def other_communication(context: BackContext) -> Outcome:
    if context.value("recompute_comm.enable") is not True:
        return dropped("recompute_comm.enable is False")
    return dropped("mp_comm_recompute covers all communication of the recomputed layers, these alone", Effect.MEMORY)
