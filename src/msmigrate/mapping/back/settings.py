"""Graph keys of optimizer, clipping, layout, data and model that follow from a pynative.yaml by a rule of their own."""

from msmigrate.mapping.back.context import Back, BackContext
from msmigrate.mapping.back.schedule import degree
from msmigrate.mapping.graph_file import MODEL_SECTION
from msmigrate.mapping.outcome import Effect, Fate, Outcome, dropped, refused, written
from msmigrate.mapping.schedule import MEGATRON
from msmigrate.yaml.scalars import Value, spell

NEVER_CLIPS = 1.0e10
"""The readers have no off switch: no gradient norm reaches this."""
_NORM = "training.max_norm"
_SHARD = "parallelism.data_parallel_shard"
_SECTION = MODEL_SECTION


def optimizer_type(context: BackContext) -> Outcome | None:
    kind = context.value("optimizer.type")
    if kind != "AdamW":
        return refused(
            f"optimizer {kind}: only AdamW is known to compute the same in both modes",
            pynative="optimizer.type", advice="set it with --set optimizer.type=AdamW",
        )  # fmt: skip
    return context.bring("optimizer.type", "optimizer.type")


def _norm(context: BackContext) -> float:
    norm = context.value(_NORM)
    assert isinstance(norm, (int, float))
    return norm


def max_grad_norm(context: BackContext) -> Outcome | None:
    if _norm(context) >= NEVER_CLIPS:
        return None
    found = context.bring("runner_wrapper.max_grad_norm", _NORM)
    default = written(Fate.DEFAULT, "runner_wrapper.max_grad_norm", _norm(context), "PyNative mode's default max_norm")
    return found or default


def use_clip_grad(context: BackContext) -> Outcome:
    clips = _norm(context) < NEVER_CLIPS
    why = "PyNative mode always clips, at max_norm" if clips else "max_norm is so large that nothing is clipped"
    return written(context.fate(_NORM), "runner_wrapper.use_clip_grad", clips, why)


def deterministic(context: BackContext) -> Outcome | None:
    if not context.given("training.deterministic"):
        return None
    return context.bring("train_precision_sync", "training.deterministic")


def sequence_parallel(context: BackContext) -> Outcome | None:
    return context.bring("parallel_config.use_seq_parallel", "parallelism.sequence_parallel")


def parallel_optimizer(context: BackContext) -> Outcome:
    sharded = context.value(_SHARD) != 1
    why = "PyNative mode shards optimizer state" if sharded else "data_parallel_shard 1: every rank holds all of it"
    return written(context.fate(_SHARD), "parallel.enable_parallel_optimizer", sharded, why)


def shard_size(context: BackContext) -> Outcome | None:
    """optimizer_weight_shard_size, where the shards are fewer than the data-parallel ranks."""
    shard, replicas = context.integer(_SHARD), degree(context)
    if isinstance(replicas, Outcome) or not 1 < shard < replicas.value:
        return None
    target = "parallel.parallel_optimizer_config.optimizer_weight_shard_size"
    return written(Fate.COMPUTED, target, shard, "the ranks that share optimizer state", effect=Effect.MEMORY)


def loader(known: tuple[str, ...]) -> Back:
    """train_dataset.data_loader.type, one of the loaders that both modes have."""

    def back(context: BackContext) -> Outcome | None:
        kind = context.value("train_dataset.dataloader.type")
        if kind in known:
            return context.bring("train_dataset.data_loader.type", "train_dataset.dataloader.type")
        return refused(
            f"data loader {kind} is not known in graph mode; there are {', '.join(known)}",
            pynative="train_dataset.data_loader.type", advice="name one with --set train_dataset.dataloader.type=…",
            final=True,
        )  # fmt: skip

    return back


def input_columns(context: BackContext) -> Outcome | None:
    """The columns; a graph file without them takes those that the mask flags ask for, PyNative mode does not."""
    key, target = "train_dataset.dataloader.column_names", "train_dataset.input_columns"
    if context.given(key) or context.value("train_dataset.dataloader.type") != MEGATRON:
        return context.bring(target, key)
    columns = context.value(key)
    assert isinstance(columns, tuple)
    return written(Fate.DEFAULT, target, list(columns), "PyNative mode's default columns, whatever the masks ask for")


def model_name(context: BackContext) -> Outcome:
    return written(Fate.DEFAULT, "trainer.model_name", context.text("model.model_type"), "the model's type")


def expert_bias(context: BackContext) -> Outcome | None:
    """The callback without which graph mode leaves the expert bias alone."""
    if context.value("model.moe_router_enable_expert_bias") is not True:
        return None
    kind = "TopkBiasBalanceCallback"
    return written(Fate.DEFAULT, f"callbacks[{kind}].type", kind, "graph mode updates the expert bias by this callback")


def per_token_loss(context: BackContext) -> Outcome | None:
    """A loss over all tokens of a step: not known to be the same number in both modes."""
    if not context.given("model.calculate_per_token_loss"):
        return None
    if context.value("model.calculate_per_token_loss") is not True:
        return dropped("off, as in graph mode")
    why = "calculate_per_token_loss: True divides the loss by the tokens of a step, in each mode at another place"
    return refused(why, pynative=f"{_SECTION}.calculate_per_token_loss", advice="leave it out, or use --allow-lossy")


def balancing(context: BackContext) -> Outcome | None:
    """The load-balancing loss; the one over all micro-batches has another form in each mode."""
    key, target = "model.moe_router_load_balancing_type", f"{_SECTION}.moe_router_load_balancing_type"
    if context.value(key) != "global_aux_loss":
        return context.bring(target, key)
    if context.value("model.moe_aux_loss_coeff") == 0:
        return written(Fate.COMPUTED, target, "gbs_aux_loss", "moe_aux_loss_coeff is 0, so no balance loss is added")
    why = "global_aux_loss has no counterpart in graph mode; gbs_aux_loss averages over other tokens"
    if context.options.allow_lossy:
        return written(Fate.COMPUTED, target, "gbs_aux_loss", why, effect=Effect.TRAINING)
    return refused(why, pynative=target, advice="--allow-lossy writes gbs_aux_loss")


def twin(name: str, reader: str) -> Back:
    """A model key under the name that only the readers of PyNative mode take: a second mention of the manual's."""

    def back(context: BackContext) -> Outcome | None:
        manual, value = context.value(f"model.{name}"), context.value(f"model.{reader}")
        if manual is None or value is None:
            return None
        if manual == value:
            return dropped(f"the readers' name for {name}, with the same value", pynative=f"{_SECTION}.{name}")
        return refused(
            f"{reader} is {_shown(value)} and {name}, the manual's name for it, is {_shown(manual)}",
            pynative=f"{_SECTION}.{name}", advice="keep one of them in the pynative file", final=True,
        )  # fmt: skip

    return back


def _shown(value: object) -> str:
    shown: Value = value if isinstance(value, (bool, int, float, str)) else str(value)
    return spell(shown)
