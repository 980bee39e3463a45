"""Rows of the appendix: keys that only Graph mode has and the run does not miss."""

from msmigrate.mapping.back.checkpoint import run_mode
from msmigrate.mapping.back.context import always
from msmigrate.mapping.back.settings import model_name
from msmigrate.mapping.context import Context
from msmigrate.mapping.legacy_classes import counterpart
from msmigrate.mapping.outcome import Effect, Fate, Outcome, dropped, refused
from msmigrate.mapping.rows import Row, goes, judged, leaf_value, turned_back
from msmigrate.mapping.switches import PER_TOKEN, spared, vital, vital_section
from msmigrate.mapping.table.callbacks import SKIPS
from msmigrate.yaml.nodes import Leaf

_PROFILER = "the profiler is off by default; switch it on under profiler"
_LOGS = "PyNative mode logs loss, rate and gradient norm itself"
_APPENDIX = "appendix"


def _run_mode(context: Context, row: Row, leaf: Leaf) -> Outcome:
    mode = leaf_value(leaf)
    if mode in ("train", "finetune", None):
        return dropped("PyNative mode trains")
    return refused(f"run_mode is {mode}: only training has a PyNative counterpart", final=True)


def _ignore_data_skip(context: Context, row: Row, leaf: Leaf) -> Outcome:
    if leaf_value(leaf) in (False, None):
        return dropped("a resumed run goes on behind the samples it has seen, as in PyNative mode")
    return refused("ignore_data_skip: True lets a resumed run start the data anew; PyNative mode goes on where it was")


def _use_legacy(context: Context, row: Row, leaf: Leaf) -> Outcome:
    if not context.legacy:
        return dropped("PyNative models are mcore models")
    found = counterpart(context.graph)
    if isinstance(found, str):
        return refused(found, final=True)
    return dropped(f"the legacy model is translated to model_type {found.model_type}")


def _data_skip_steps(context: Context, row: Row, leaf: Leaf) -> Outcome:
    if not leaf_value(leaf):
        return dropped("a resumed run goes on behind the samples it has seen, as in PyNative mode")
    return refused(
        f"data_skip_steps {leaf_value(leaf)} lets a resumed run pass over that many steps of data; PyNative mode goes "
        "on where it was"
    )


def _trains(context: Context, row: Row, leaf: Leaf) -> Outcome:
    if leaf_value(leaf) is False:
        return refused(f"{row.graph} is False: only training has a PyNative counterpart", final=True)
    return dropped("PyNative mode trains")


_TRAINS = "dropped for train and finetune; others are refused, for only training has a PyNative counterpart"
TRAINER = "CausalLanguageModelingTrainer"


def _trainer(context: Context, row: Row, leaf: Leaf) -> Outcome:
    kind = leaf_value(leaf)
    if kind in (None, TRAINER):
        return dropped("PyNative mode has one trainer, of language models")
    return refused(f"trainer {kind} trains for another task; PyNative mode has language models only", final=True)


def _precision_mode(context: Context, row: Row, leaf: Leaf) -> Outcome:
    mode = leaf_value(leaf)
    if mode in (None, "must_keep_origin_dtype"):
        return dropped("operators keep the type of their inputs, as in PyNative mode")
    return refused(f"precision_mode {mode} lets operators compute in other types than the model section says")


def _swap(context: Context, row: Row, leaf: Leaf) -> Outcome:
    if context.graph.value("swap_config.swap") is not True:
        return dropped("off, as in PyNative mode")
    return dropped(row.why, row.effect)


_PROFILER_KEYS = (
    "profile",
    "profile_start_step",
    "profile_stop_step",
    "profile_communication",
    "profile_memory",
    "profile_output",
    "profile_rank_ids",
    "profile_pipeline",
    "profiler_level",
    "init_start_profile",
    "mstx",
    "with_stack",
    "data_simplification",
)
_DEVICE = "PyNative mode sets the device context itself"
_DEVICE_KEYS = {
    "max_device_memory": Effect.MEMORY,
    "mempool_block_size": Effect.MEMORY,
    "memory_optimize_level": Effect.MEMORY,
    "jit_config.*": Effect.SPEED,
    "jit_level": Effect.SPEED,
    "enable_graph_kernel": Effect.SPEED,
    "graph_kernel_flags": Effect.SPEED,
    "runtime_num_threads": Effect.SPEED,
    "ascend_config.parallel_speed_up_json_path": Effect.SPEED,
}
_EVALUATION_KEYS = (
    "eval.*",
    "eval_callbacks[].*",
    "eval_callbacks",
    "do_eval",
    "eval_step_interval",
    "eval_epoch_interval",
    "metric.*",
)
_TUNING_KEYS = ("auto_tune", "autotune_per_step", "filepath_prefix")
_SERVING_KEYS = ("infer.*", "infer_precision_sync", "top_k", "pipeline.*", "do_predict")
_UPLOADS = (
    "remote_save_url",
    "aicc_config.*",
    "push_to_hub",
    "hub_model_id",
    "hub_private_repo",
    "hub_token",
)

ROWS: tuple[Row, ...] = (
    judged("run_mode", None, _APPENDIX, _run_mode, Fate.DROPPED, back=run_mode, about=_TRAINS, effect=Effect.TRAINING),
    turned_back("run_mode", run_mode),
    judged("run_status", None, None, _run_mode, Fate.DROPPED, about=_TRAINS, effect=Effect.TRAINING),
    judged(
        "do_train",
        None,
        None,
        _trains,
        Fate.DROPPED,
        effect=Effect.TRAINING,
        about="refused when False: only training has a PyNative counterpart",
    ),
    judged(
        "use_legacy",
        None,
        None,
        _use_legacy,
        Fate.DROPPED,
        back=always("use_legacy", False, "PyNative models are mcore models"),
        about="dropped; a legacy model is translated where PyNative mode has one that computes the same, else refused",
        effect=Effect.TRAINING,
    ),
    goes("print_separate_loss", "logging only; the training loss is the same"),
    vital("calculate_per_token_loss", PER_TOKEN),
    goes("check_for_nan_in_loss_and_grad", "a check that ends a broken run; training is the same until then"),
    vital("use_skip_data_by_global_norm", SKIPS),
    vital("monitor_config.check_for_global_norm", SKIPS),
    vital("no_decay_params", "parameters without weight decay; PyNative mode leaves out 1-D ones, biases and norms"),
    *vital_section("loss", "a loss of its own; PyNative mode has cross entropy"),
    judged(
        "trainer.type",
        None,
        _APPENDIX,
        _trainer,
        Fate.DROPPED,
        back=always("trainer.type", TRAINER, "graph mode's trainer of language models"),
        about=f"dropped for {TRAINER}; trainers of other tasks are refused",
        effect=Effect.TRAINING,
    ),
    goes("trainer.model_name", "PyNative mode has one trainer", _APPENDIX, back=model_name),
    goes("base_config", "the files that it names are merged into this one"),
    goes("trainer.*", "PyNative mode has one trainer", _APPENDIX),
    goes("runner_config.epoch", "graph mode reads epochs"),
    goes("runner_config.load_checkpoint", "graph mode reads load_checkpoint at the top level"),
    goes("runner_config.num_classes", "image models only", _APPENDIX),
    goes("runner_config.image_size", "image models only", _APPENDIX),
    goes("runner_config.per_epoch_size", "how often graph mode prints", _APPENDIX),
    goes("runner_config.has_trained_epoches", "a resumed run takes its position from the checkpoint", _APPENDIX),
    goes("runner_config.has_trained_steps", "a resumed run takes its position from the checkpoint", _APPENDIX),
    judged(
        "context.ascend_config.precision_mode",
        None,
        _APPENDIX,
        _precision_mode,
        Fate.REFUSED,
        effect=Effect.TRAINING,
        about="dropped for must_keep_origin_dtype, which PyNative mode does; others are refused",
    ),
    *(spared(f"context.{name}", _DEVICE, effect, _APPENDIX) for name, effect in _DEVICE_KEYS.items()),
    goes("context.*", _DEVICE, _APPENDIX),
    goes("monitor_config.*", _LOGS),
    *(goes(name, _PROFILER, _APPENDIX) for name in _PROFILER_KEYS),
    *(goes(name, "PyNative mode does not evaluate while training") for name in _EVALUATION_KEYS),
    *(goes(name, "graph mode's data tuning") for name in _TUNING_KEYS),
    Row("swap_config.*", None, Fate.DROPPED, Effect.MEMORY, "activations stay on the device", None, rule=_swap),
    judged(
        "ignore_data_skip",
        None,
        None,
        _ignore_data_skip,
        Fate.REFUSED,
        effect=Effect.TRAINING,
        about="refused when True: a resumed run would start the data anew, and PyNative mode goes on where it was",
    ),
    judged(
        "data_skip_steps",
        None,
        None,
        _data_skip_steps,
        Fate.REFUSED,
        effect=Effect.TRAINING,
        about="refused above 0: a resumed run would pass over data, and PyNative mode goes on where it was",
    ),
    goes("enable_mindio_ttp_save_ckpt", "a rescue of checkpoints on failing hardware; training is the same"),
    goes("use_graceful_exit", "how a run is stopped; training is the same"),
    goes("use_checkpoint_health_monitor", "a check of saved checkpoints; training is the same"),
    *(goes(name, "inference only") for name in _SERVING_KEYS),
    goes("processor.*", "tokenizers belong to data preparation and inference"),
    *(goes(name, "copying to storage is the cluster's work") for name in _UPLOADS),
    goes("exclude_cann_cpu", "binding of processes; training is the same"),
)
