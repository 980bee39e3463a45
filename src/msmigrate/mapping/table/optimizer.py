"""Rows of the manual's section 3, and of gradient clipping and loss scaling (runner_wrapper)."""

from msmigrate.mapping.context import Context
from msmigrate.mapping.outcome import Effect, Fate, Outcome, dropped, refused, written
from msmigrate.mapping.rows import Row, computed, derived, goes, judged, leaf_value, same
from msmigrate.mapping.table.model import model_value
from msmigrate.yaml.nodes import Leaf
from msmigrate.yaml.scalars import Value

NEVER_CLIPS = 1.0e10
"""The readers have no off switch: no gradient norm reaches this."""


def clip_norm(context: Context) -> tuple[float, str]:
    """The norm at which the graph run clips (`NEVER_CLIPS` for no clipping), and why."""
    graph = context.graph
    threshold = graph.number("runner_wrapper.max_grad_norm", 1.0)
    if not graph.section("runner_wrapper"):
        return threshold, "without runner_wrapper graph mode clips at 1.0"
    if graph.flag("runner_wrapper.use_clip_grad", False):
        return threshold, "use_clip_grad: True clips at max_grad_norm"
    if graph.value("runner_wrapper.use_clip_grad") is not None:
        return NEVER_CLIPS, "use_clip_grad: False; the readers have no off switch, 1.0e+10 never clips"
    factors = context.batch_factors()
    if factors.pipeline_stage > 1 or (factors.degrees_hold and factors.gradient_accumulation_steps > 1):
        return threshold, "graph mode's wrapper for pipelines and accumulation clips unless told otherwise"
    return NEVER_CLIPS, "graph mode clips only with use_clip_grad: True; 1.0e+10 never clips"


def _max_norm(context: Context) -> Outcome:
    norm, why = clip_norm(context)
    fate = Fate.COMPUTED if context.graph.given("runner_wrapper.use_clip_grad") else Fate.DEFAULT
    return written(fate, "training.max_norm", norm, why)


def _loss_scale(context: Context, row: Row, leaf: Leaf) -> Outcome:
    value = leaf_value(leaf)
    if model_value(context, "compute_dtype") == "float16":
        return refused(
            "compute_dtype float16 needs loss scaling, which PyNative mode does not have",
            advice="use compute_dtype bfloat16, or --allow-lossy to train float16 without loss scaling",
        )
    if row.graph == "runner_wrapper.scale_sense" and value in (1, 1.0):
        return dropped("a loss scale of 1 changes nothing")
    return dropped(
        "the loss scale is divided out of the gradients again, exactly for powers of two; a dynamic scale skipped the "
        "steps that overflowed, PyNative mode has no such skip"
    )


def _type(context: Context, row: Row, leaf: Leaf) -> Outcome:
    value = leaf_value(leaf)
    if value == "AdamW":
        return row.carry(leaf)
    return refused(
        f"optimizer {value}: only AdamW is known to compute the same in both modes",
        pynative="optimizer.type",
        advice="set one with --set optimizer.type=AdamW",
    )


def _default_type(context: Context) -> Outcome | None:
    return written(Fate.DEFAULT, "optimizer.type", "AdamW", "graph mode's default optimizer")


def _betas(context: Context) -> Outcome:
    """The betas of a file that gives beta1 and beta2, or none."""
    graph = context.graph
    if graph.given("optimizer.beta1") or graph.given("optimizer.beta2"):
        pair: list[Value] = [graph.number("optimizer.beta1", 0.9), graph.number("optimizer.beta2", 0.999)]
        return written(Fate.COMPUTED, "optimizer.betas", pair, "beta1 and beta2 in one list")
    return written(
        Fate.DEFAULT, "optimizer.betas", [0.9, 0.999], "graph mode's default betas; PyNative's are 0.9, 0.95"
    )


def _default_decay(context: Context) -> Outcome:
    return written(Fate.DEFAULT, "optimizer.weight_decay", 0.0, "graph mode's default weight_decay; PyNative's is 0.01")


ROWS: tuple[Row, ...] = (
    judged("optimizer.type", "optimizer.type", "3.2", _type, Fate.SAME),
    same("optimizer.betas", "3.2"),
    same("optimizer.eps", "3.2"),
    same("optimizer.weight_decay", "3.2"),
    derived("optimizer.type", "3.1", _default_type),
    computed("optimizer.beta1", "optimizer.betas", None),
    computed("optimizer.beta2", "optimizer.betas", None),
    derived("optimizer.betas", "3.1", _betas),
    derived("optimizer.weight_decay", "3.1", _default_decay),
    goes("optimizer.swap", "optimizer state stays on the device", "3.2", Effect.MEMORY),
    goes("optimizer.learning_rate", "lr_schedule decides the rate"),
    computed("runner_wrapper.use_clip_grad", "training.max_norm", None),
    computed("runner_wrapper.max_grad_norm", "training.max_norm", None),
    derived("training.max_norm", None, _max_norm),
    goes("runner_wrapper.type", "PyNative mode has one training step", "appendix"),
    judged("runner_wrapper.scale_sense", None, "appendix", _loss_scale, Fate.DROPPED),
    judged("runner_wrapper.scale_sense.*", None, "appendix", _loss_scale, Fate.DROPPED),
    goes("layer_decay", "read only with layer_scale: True"),
    judged("layer_scale", None, None, lambda context, row, leaf: _switch(leaf, "per-layer learning rates")),
    judged("lr_scale", None, None, lambda context, row, leaf: _switch(leaf, "a learning rate scaled by the batch")),
    goes("lr_scale_factor", "read only with lr_scale: True"),
)


def _switch(leaf: Leaf, what: str) -> Outcome:
    if leaf_value(leaf) in (False, None):
        return dropped("off, as in PyNative mode")
    return refused(f"{what}: PyNative mode has no counterpart")
