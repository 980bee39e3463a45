"""Rows of the manual's sections 5 and 11.4: how ranks share the work."""

import math

from msmigrate.mapping.context import Context
from msmigrate.mapping.outcome import Effect, Fate, Outcome, dropped, refused, written
from msmigrate.mapping.rows import Row, computed, derived, goes, judged, leaf_value
from msmigrate.options import ExpertMesh
from msmigrate.yaml.nodes import Leaf

_RESET = "use_parallel or parallel_mode reset it to 1"


def _degree(name: str, pynative: str) -> tuple[Row, Row]:
    """The rows of a degree that both modes have: carried where it holds, else the 1 of the graph run."""

    def rule(context: Context, row: Row, leaf: Leaf) -> Outcome:
        if not context.degrees_hold and leaf_value(leaf) not in (1, None):
            return written(Fate.COMPUTED, pynative, 1, _RESET)
        return row.carry(leaf)

    def default(context: Context) -> Outcome:
        return written(Fate.DEFAULT, pynative, 1, f"graph mode's default {name} is 1")

    return (
        judged(f"parallel_config.{name}", pynative, "5.2", rule),
        derived(pynative, "5.1", default),
    )


def _shard(context: Context) -> Outcome:
    replicas = context.degree("data_parallel")
    why = f"-1 shards over all data-parallel ranks; graph mode's data_parallel {replicas} counts replicas"
    fate = Fate.COMPUTED if context.graph.given("parallel_config.data_parallel") else Fate.DEFAULT
    check_ranks(context)
    return written(fate, "parallelism.data_parallel_shard", -1, why)


def check_ranks(context: Context) -> None:
    """Note degrees and batches that the PyNative run cannot have on the graph run's devices, and facts that clash."""
    world = context.world().value
    if not isinstance(world, int):
        return
    in_file = context.devices_of_degrees()
    if in_file is not None and in_file != world:
        context.note(f"--world {world} is not the {in_file} devices of the file's degrees (dp·mp·pp)")
    tensor, expert = context.degree("model_parallel"), context.degree("expert_parallel")
    for reading, ranks in ((ExpertMesh.PRODUCT, tensor * expert), (ExpertMesh.NESTED, math.lcm(tensor, expert))):
        if world % ranks:
            context.note(
                f"{world} devices are no multiple of the {ranks} ranks that tensor_parallel {tensor} and "
                f"expert_parallel {expert} need {_READINGS[reading]}"
            )
    ranks = tensor * expert if context.options.expert_mesh is ExpertMesh.PRODUCT else tensor
    if world % ranks == 0:
        _check_batch(context, world, ranks)


_READINGS = {
    ExpertMesh.PRODUCT: "under the manual's formula, tensor_parallel × expert_parallel × data_parallel (section 11.4)",
    ExpertMesh.NESTED: "in MindFormers 2.x, where expert_parallel divides data_parallel × tensor_parallel",
}


def _check_batch(context: Context, world: int, ranks: int) -> None:
    batch = context.global_batch()
    local = context.options.overrides.get("training.local_batch_size", context.batch_factors().batch_size)
    if batch is None or not isinstance(local, int):
        return
    if batch.value % local:
        context.note(
            f"global_batch_size {batch.value} is not a multiple of local_batch_size {local}: it runs on no number of "
            f"ranks; nearest legal values: {_nearest(batch.value, local)}"
        )
        return
    data_parallel = world // ranks
    unit = local * data_parallel
    if batch.value % unit:
        context.note(
            f"global_batch_size {batch.value} is not a multiple of local_batch_size {local} × data_parallel "
            f"{data_parallel} ({world} ranks / {ranks}); nearest legal values there: {_nearest(batch.value, unit)}"
        )


def _nearest(value: int, unit: int) -> str:
    below, above = value // unit * unit, -(-value // unit) * unit
    return f"{below} and {above}" if below else str(above)


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


_PARALLEL = "PyNative mode manages the parallel context itself"

ROWS: tuple[Row, ...] = (
    computed("parallel_config.data_parallel", "parallelism.data_parallel_shard", "5.2"),
    derived("parallelism.data_parallel_shard", "5.1", _shard),
    *_degree("model_parallel", "parallelism.tensor_parallel"),
    *_degree("expert_parallel", "parallelism.expert_parallel"),
    computed(
        "parallel_config.use_seq_parallel",
        "parallelism.sequence_parallel",
        "5.2",
        "without tensor parallelism there is no sequence parallelism",
    ),
    derived("parallelism.sequence_parallel", None, _sequence_parallel, lost=Effect.MEMORY),
    judged("parallel_config.pipeline_stage", None, "5.2", _pipeline, Fate.DROPPED),
    judged("parallel_config.context_parallel", None, None, _context_parallel, Fate.DROPPED),
    goes("parallel_config.gradient_aggregation_group", "communication of graph mode", "5.2", Effect.SPEED),
    goes("parallel_config.vocab_emb_dp", "a split of the embedding; same numbers", "appendix", Effect.MEMORY),
    goes("parallel_config.optimizer_shard", "PyNative mode always shards optimizer state", None, Effect.MEMORY),
    goes("parallel_config.seq_split_num", "a pipeline of sequence pieces; the stages are folded", None, Effect.SPEED),
    goes("parallel_config.mem_coeff", "a weight of graph mode's strategy search", None, Effect.SPEED),
    goes("parallel_config.ulysses_degree_in_cp", "part of context_parallel, which is 1", None, Effect.SPEED),
    goes("parallel_config.context_parallel_algo", "part of context_parallel, which is 1", None, Effect.SPEED),
    judged("parallel.parallel_mode", None, "5.2", _mode, Fate.DROPPED),
    judged("use_parallel", None, "appendix", _mode, Fate.DROPPED),
    goes("parallel.enable_parallel_optimizer", "PyNative mode always shards optimizer state", "5.2", Effect.MEMORY),
    goes(
        "parallel.parallel_optimizer_config.*",
        "PyNative mode shards by parallelism.data_parallel_shard",
        "5.2",
        Effect.MEMORY,
    ),
    goes("parallel.*", _PARALLEL, "5.2"),
)
