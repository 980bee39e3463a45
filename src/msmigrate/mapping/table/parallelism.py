"""Rows of the manual's sections 5 and 11.4: how ranks share the work."""

from msmigrate.mapping.back import pipeline, schedule
from msmigrate.mapping.back import settings as back
from msmigrate.mapping.back.context import always
from msmigrate.mapping.context import Context
from msmigrate.mapping.model_values import effective_value
from msmigrate.mapping.outcome import Effect, Fate, Outcome, dropped, refused, written
from msmigrate.mapping.rows import Row, computed, default_of, derived, goes, judged, leaf_value, turned_back
from msmigrate.mapping.switches import spared
from msmigrate.yaml.nodes import Leaf

_RESET = "use_parallel or parallel_mode reset it to 1"


def _degree(name: str, pynative: str) -> tuple[Row, Row]:
    """The rows of a degree that both modes have: carried where it holds, else the 1 of the graph run."""

    def rule(context: Context, row: Row, leaf: Leaf) -> Outcome:
        if not context.degrees_hold and leaf_value(leaf) not in (1, None):
            return written(Fate.COMPUTED, pynative, 1, _RESET)
        return row.carry(leaf)

    return (
        judged(
            f"parallel_config.{name}",
            pynative,
            "5.2",
            rule,
            about="carried; 1 where use_parallel or parallel_mode reset the degrees",
        ),
        default_of(name, pynative, "5.1", 1),
    )


def _shard(context: Context) -> Outcome:
    replicas = context.degree("data_parallel")
    why = f"-1 shards over all data-parallel ranks; graph mode's data_parallel {replicas} counts replicas"
    fate = Fate.COMPUTED if context.graph.given("parallel_config.data_parallel") else Fate.DEFAULT
    check_ranks(context)
    return written(fate, "parallelism.data_parallel_shard", -1, why)


def check_ranks(context: Context) -> None:
    """Note a number of devices that clashes with the file; what the degrees need, the start-up rules tell."""
    world, in_file = context.world().value, context.devices_of_degrees()
    if isinstance(world, int) and in_file is not None and in_file != world:
        context.note(f"--world {world} is not the {in_file} devices of the file's degrees (dp·mp·pp)")


def _sequence_parallel(context: Context) -> Outcome | None:
    if context.degree("model_parallel") == 1:
        return None
    asked = context.graph.value("parallel_config.use_seq_parallel", False)
    fate = Fate.COMPUTED if context.graph.given("parallel_config.use_seq_parallel") else Fate.DEFAULT
    why = "as use_seq_parallel" if asked else "MindFormers 2.1 needs it with tensor_parallel above 1; same numbers"
    return written(fate, "parallelism.sequence_parallel", True, why, effect=Effect.NONE if asked else Effect.MEMORY)


def _pipeline(context: Context, row: Row, leaf: Leaf) -> Outcome:
    stages = context.degree("pipeline_stage")
    if stages == 1:
        return dropped("one stage: nothing to fold")
    layers = effective_value(context, "num_hidden_layers")
    share = f"all {layers} layers" if isinstance(layers, int) else "all layers"
    context.note(
        f"`parallel_config.pipeline_stage` (line {leaf.node.span.start.line}): {stages} stages are folded, so every "
        f"device holds {share} instead of the layers of one stage: expect more memory per device"
    )
    return dropped(
        f"{stages} pipeline stages are folded: PyNative mode holds all layers on every rank, and the devices become "
        "data-parallel ranks; global_batch_size keeps the batch",
        Effect.MEMORY,
    )


def _context_parallel(context: Context, row: Row, leaf: Leaf) -> Outcome:
    degree = context.degree("context_parallel")
    if degree == 1:
        return dropped("1: sequences are not split")
    return refused(
        f"context_parallel {degree} has no counterpart here: each rank would hold whole sequences",
        effect=Effect.MEMORY,
        advice="convert with --allow-lossy, or set context_parallel to 1 first",
    )


def _mode(context: Context, row: Row, leaf: Leaf) -> Outcome:
    if context.degrees_hold:
        return dropped("the degrees of parallel_config hold, as in PyNative mode")
    return dropped("every degree of the graph run is 1 in this mode; written so", pynative="training.global_batch_size")


def _gradients_mean(context: Context, row: Row, leaf: Leaf) -> Outcome:
    """Data-parallel mode adds gradients up unless told to average; the other modes average in the loss."""
    data_parallel = context.graph.flag("use_parallel", True) and context.parallel_mode == 0
    if leaf_value(leaf) is not False or not data_parallel or context.world().value == 1:
        return dropped("gradients are averaged, as in PyNative mode")
    return refused(
        "in data-parallel mode gradients_mean: False adds the gradients of the devices up; PyNative mode averages them",
        advice="scale max_grad_norm and eps by the devices, or go on with --allow-lossy",
    )


_OF_CONTEXT = "part of context_parallel, whose row decides"
_PIECES = "a pipeline of sequence pieces; the stages are folded"
_PARALLEL = "PyNative mode manages the parallel context itself"
_TELLS = "it tells whether the degrees of parallel_config hold; where they do not, each is written as 1"

_ALWAYS_SHARDED = "PyNative mode always shards optimizer state"
_SHARDED_BY = "PyNative mode shards by parallelism.data_parallel_shard"
_OPTIMIZER = "parallel.parallel_optimizer_config"

ROWS: tuple[Row, ...] = (
    computed("parallel_config.data_parallel", "parallelism.data_parallel_shard", "5.2", back=schedule.data_parallel),
    derived(
        "parallelism.data_parallel_shard",
        "5.1",
        _shard,
        about="-1, over all data-parallel ranks; graph mode's data_parallel counts replicas",
    ),
    *_degree("model_parallel", "parallelism.tensor_parallel"),
    *_degree("expert_parallel", "parallelism.expert_parallel"),
    computed(
        "parallel_config.use_seq_parallel",
        "parallelism.sequence_parallel",
        "5.2",
        "without tensor parallelism there is no sequence parallelism",
        back=back.sequence_parallel,
    ),
    derived(
        "parallelism.sequence_parallel",
        None,
        _sequence_parallel,
        lost=Effect.MEMORY,
        about="True with model_parallel above 1, which MindFormers 2.1 needs; the same numbers",
    ),
    judged(
        "parallel_config.pipeline_stage",
        None,
        "5.2",
        _pipeline,
        Fate.DROPPED,
        back=pipeline.stage,
        about="folded: every rank holds all layers, and the devices become data-parallel ranks",
        effect=Effect.MEMORY,
    ),
    judged(
        "parallel_config.context_parallel",
        None,
        None,
        _context_parallel,
        Fate.DROPPED,
        back=pipeline.context_parallel,
        effect=Effect.MEMORY,
        about="dropped at 1; refused above, for each rank would hold whole sequences",
    ),
    goes("parallel_config.gradient_aggregation_group", "communication of graph mode", "5.2", Effect.SPEED),
    goes("parallel_config.vocab_emb_dp", "a split of the embedding; same numbers", "appendix", Effect.MEMORY),
    goes("parallel_config.optimizer_shard", _ALWAYS_SHARDED, None, Effect.MEMORY),
    spared("parallel_config.seq_split_num", _PIECES, Effect.SPEED, idle=(1,)),
    spared("parallel_config.mem_coeff", "a weight of graph mode's strategy search", Effect.SPEED),
    goes("parallel_config.ulysses_degree_in_cp", _OF_CONTEXT, back=pipeline.ulysses_degree),
    goes("parallel_config.context_parallel_algo", _OF_CONTEXT, back=pipeline.context_algorithm),
    *(turned_back(f"parallelism.{name}", back) for name, back in pipeline.TURNED_BACK.items()),
    judged(
        "parallel.parallel_mode",
        None,
        "5.2",
        _mode,
        Fate.DROPPED,
        back=always("parallel.parallel_mode", 1, "the mode in which the degrees hold"),
        about=_TELLS,
    ),
    judged(
        "parallel.gradients_mean",
        None,
        "5.2",
        _gradients_mean,
        Fate.REFUSED,
        effect=Effect.TRAINING,
        about="refused when False in data-parallel mode, which then adds gradients up; else dropped",
    ),
    spared("parallel.enable_alltoall", _PARALLEL, Effect.SPEED, "5.2"),
    spared("parallel.auto_pipeline", "the stages are folded", Effect.SPEED),
    judged(
        "use_parallel",
        None,
        "appendix",
        _mode,
        Fate.DROPPED,
        back=always("use_parallel", True, "the degrees hold only with it"),
        about=_TELLS,
    ),
    goes("parallel.enable_parallel_optimizer", _ALWAYS_SHARDED, "5.2", Effect.MEMORY, back.parallel_optimizer),
    goes(f"{_OPTIMIZER}.optimizer_weight_shard_size", _SHARDED_BY, "5.2", Effect.MEMORY, back.shard_size),
    spared(f"{_OPTIMIZER}.*", _SHARDED_BY, Effect.MEMORY, "5.2"),
    goes("parallel.*", _PARALLEL, "5.2"),
)
