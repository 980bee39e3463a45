"""Rows of the appendix: keys that only Graph mode has and the run does not miss."""

from msmigrate.mapping.context import Context
from msmigrate.mapping.outcome import Effect, Fate, Outcome, dropped, refused
from msmigrate.mapping.rows import Row, goes, judged, leaf_value
from msmigrate.problems import UserError
from msmigrate.yaml.nodes import Leaf
from msmigrate.yaml.scalars import spell

_PROFILER = "the profiler is off by default; switch it on under profiler"
_LOGS = "PyNative mode logs loss, rate and gradient norm itself"
_APPENDIX = "appendix"


def _run_mode(context: Context, row: Row, leaf: Leaf) -> Outcome:
    mode = leaf_value(leaf)
    if mode in ("train", "finetune", None):
        return dropped("PyNative mode trains")
    return refused(f"run_mode is {mode}: only training has a PyNative counterpart", final=True)


def _no_callbacks(context: Context, row: Row, leaf: Leaf) -> Outcome:
    if leaf_value(leaf) in (None, [], {}):
        return dropped("no callbacks")
    raise UserError(
        f"{context.graph.place('callbacks')}: `callbacks` is {spell(leaf_value(leaf))}; expected mappings with `type`"
    )


def _ignore_data_skip(context: Context, row: Row, leaf: Leaf) -> Outcome:
    if leaf_value(leaf) in (False, None):
        return dropped("a resumed run goes on behind the samples it has seen, as in PyNative mode")
    return refused("ignore_data_skip: True lets a resumed run start the data anew; PyNative mode goes on where it was")


def _use_legacy(context: Context, row: Row, leaf: Leaf) -> Outcome:
    if not context.graph.flag("use_legacy", False):
        return dropped("PyNative models are mcore models")
    return refused("use_legacy: True asks for a legacy model; PyNative mode has mcore models only", final=True)


def _callback(kind: str, why: str) -> tuple[Row, Row]:
    return goes(f"callbacks[{kind}].type", why, _APPENDIX), goes(f"callbacks[{kind}].*", why, _APPENDIX)


_SERVING = "inference only"

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
)
_EVALUATION_KEYS = (
    "eval_callbacks[].*",
    "eval_callbacks",
    "do_eval",
    "eval_step_interval",
    "eval_epoch_interval",
    "metric.*",
)
_TUNING_KEYS = ("auto_tune", "autotune_per_step", "filepath_prefix")

ROWS: tuple[Row, ...] = (
    judged("run_mode", None, _APPENDIX, _run_mode, Fate.DROPPED),
    judged("use_legacy", None, None, _use_legacy, Fate.DROPPED),
    goes("train_precision_sync", "training.deterministic makes runs bit-identical in PyNative mode", _APPENDIX),
    goes("print_separate_loss", "logging only; the training loss is the same"),
    goes("trainer.*", "PyNative mode has one trainer", _APPENDIX),
    goes("runner_config.num_classes", "image models only", _APPENDIX),
    goes("runner_config.image_size", "image models only", _APPENDIX),
    goes("runner_config.per_epoch_size", "how often graph mode prints", _APPENDIX),
    goes("runner_config.has_trained_epoches", "a resumed run takes its position from the checkpoint", _APPENDIX),
    goes("runner_config.has_trained_steps", "a resumed run takes its position from the checkpoint", _APPENDIX),
    goes("context.*", "PyNative mode sets the device context itself", _APPENDIX),
    goes("monitor_config.*", _LOGS),
    *(goes(name, _PROFILER, _APPENDIX) for name in _PROFILER_KEYS),
    *(goes(name, "PyNative mode does not evaluate while training") for name in _EVALUATION_KEYS),
    *(goes(name, "graph mode's data tuning") for name in _TUNING_KEYS),
    *_callback("MFLossMonitor", _LOGS),
    *_callback("ObsMonitor", "copying to object storage is the cluster's work"),
    *_callback("SummaryMonitor", _LOGS),
    *_callback("MaxLogitsMonitor", _LOGS),
    *_callback("StressDetectCallBack", "a hardware check; training is the same"),
    *_callback("EvalCallBack", "PyNative mode does not evaluate while training"),
    *_callback(
        "TopkBiasBalanceCallback",
        "PyNative mode updates the expert bias itself when moe_router_enable_expert_bias is True",
    ),
    judged("callbacks", None, _APPENDIX, _no_callbacks, Fate.DROPPED),
    goes("swap_config.*", "activations stay on the device", None, Effect.MEMORY),
    judged("ignore_data_skip", None, None, _ignore_data_skip, Fate.DROPPED),
    goes("enable_mindio_ttp_save_ckpt", "a rescue of checkpoints on failing hardware; training is the same"),
    goes("use_graceful_exit", "how a run is stopped; training is the same"),
    goes("use_checkpoint_health_monitor", "a check of saved checkpoints; training is the same"),
    goes("infer.*", _SERVING),
    goes("processor.*", "tokenizers belong to data preparation and inference"),
    goes("remote_save_url", "copying to object storage is the cluster's work"),
    goes("exclude_cann_cpu", "binding of processes; training is the same"),
    goes("moe_config.*", "mcore models do not read it; model.model_config decides"),
)
