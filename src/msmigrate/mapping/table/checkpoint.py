"""Rows for saving and loading (manual section 1): from callbacks, output_dir, load_checkpoint and resume_training."""

from msmigrate.mapping.back import checkpoint as back
from msmigrate.mapping.context import Context
from msmigrate.mapping.outcome import Effect, Fate, Outcome, carried, dropped, refused, written
from msmigrate.mapping.rows import Row, computed, default_of, derived, goes, judged, leaf_value, renamed
from msmigrate.yaml.nodes import Leaf
from msmigrate.yaml.scalars import Value

_MONITOR = back.MONITOR
_BY_TIME = ("save_checkpoint_seconds", "keep_checkpoint_per_n_minutes")
_EXTRA_FILES = ("save_network_params", "save_trainable_params")
_FORMS = ("append_info", "enc_key", "enc_mode", "exception_save", "embedding_local_norm_threshold")
DEFAULT_OUTPUT = "./output"


def _saves(context: Context) -> bool:
    return context.graph.callback("CheckpointMonitor") is not None


def _enable_save(context: Context) -> Outcome:
    if _saves(context):
        return written(Fate.COMPUTED, "checkpoint.enable_save", True, "CheckpointMonitor saves")
    return written(
        Fate.DEFAULT, "checkpoint.enable_save", False, "graph mode saves only with CheckpointMonitor, PyNative always"
    )


def _save_path(context: Context) -> Outcome | None:
    if not _saves(context):
        return None
    folder = str(context.graph.value("output_dir", DEFAULT_OUTPUT)).rstrip("/") or "/"
    monitor = context.graph.callback("CheckpointMonitor") or {}
    directory = monitor.get("directory")
    if isinstance(directory, str) and directory:
        return written(Fate.COMPUTED, "checkpoint.save_path", directory, "CheckpointMonitor's directory")
    fate = Fate.COMPUTED if context.graph.given("output_dir") else Fate.DEFAULT
    return written(fate, "checkpoint.save_path", f"{folder}/checkpoint", "graph mode saves into output_dir/checkpoint")


def _output_dir(context: Context, row: Row, leaf: Leaf) -> Outcome:
    return context.derive("checkpoint.save_path") or dropped("no CheckpointMonitor: nothing is saved")


def _no_load_optim(context: Context) -> Outcome:
    value = context.graph.value("resume_training", False)
    fate = Fate.COMPUTED if context.graph.given("resume_training") else Fate.DEFAULT
    if isinstance(value, str) and value:
        return refused(
            f"resume_training names the checkpoint {value}",
            pynative="checkpoint.no_load_optim",
            advice="give its folder with --set checkpoint.load_path=… --set checkpoint.no_load_optim=False",
        )
    resumes = value is True
    why = "the opposite of resume_training" if fate is Fate.COMPUTED else "graph mode does not resume by default"
    return written(fate, "checkpoint.no_load_optim", not resumes, why)


def _no_save_optim(context: Context, row: Row, leaf: Leaf) -> Outcome:
    return written(
        Fate.COMPUTED, "checkpoint.no_save_optim", leaf_value(leaf) is False, "the opposite of save_optimizer"
    )


def _pretrained(context: Context, row: Row, leaf: Leaf) -> Outcome:
    value = leaf_value(leaf)
    if not value:
        return dropped("empty: it names no folder")
    if context.options.hf_config is None:
        return refused(
            f"{value}/config.json holds what the model section leaves out, and it is not here",
            pynative="model.model_type", advice="give the folder or its config.json with --hf-config", final=True,
        )  # fmt: skip
    weights = context.graph.value("load_checkpoint")
    if context.graph.value("run_mode") == "finetune" and not weights:
        return carried(
            Fate.RENAMED, "checkpoint.load_path", leaf.node, "fine-tuning starts from the weights in this folder"
        )
    return dropped("it gives the model's config.json; its keys are written into model")


def _only_strategy(context: Context, row: Row, leaf: Leaf) -> Outcome:
    if leaf_value(leaf) is not True:
        return dropped("PyNative mode has no strategy files")
    return refused("only_save_strategy: True ends the graph run before it trains", final=True)


def _old_load(context: Context, row: Row, leaf: Leaf) -> Outcome:
    if not leaf_value(leaf):
        return dropped("empty: it names no checkpoint")
    return refused(
        f"{row.graph} names {leaf_value(leaf)}, and the run_mode of old releases said whether it is resumed",
        pynative="checkpoint.load_path",
        advice="write load_checkpoint and resume_training in the graph file instead",
    )


def _load_path(context: Context, row: Row, leaf: Leaf) -> Outcome:
    value = leaf_value(leaf)
    if value is None:
        return dropped("null, as if it were absent", pynative="checkpoint.load_path")
    if not value and context.graph.value("run_mode") == "finetune" and context.graph.value("pretrained_model_dir"):
        return dropped("empty: pretrained_model_dir is loaded", pynative="checkpoint.load_path")
    kind = context.graph.value("load_ckpt_format", "ckpt")
    if value and kind != "safetensors":
        context.note(
            f"`load_checkpoint` (line {context.graph.line('load_checkpoint')}) names {value} in the format {kind}; "
            "PyNative mode loads safetensors, so turn it into these first"
        )
    return row.carry(leaf)


def _saved(name: str, pynative: str) -> Row:
    """A setting of CheckpointMonitor."""
    return renamed(f"{_MONITOR}.{name}", pynative, "appendix", back=back.saved(name, pynative))


def _always_saved(name: str, value: Value, why: str) -> Row:
    """A setting of CheckpointMonitor that has one value in PyNative mode."""
    return goes(f"{_MONITOR}.{name}", why, "appendix", back=back.saved_as(name, value, why))


def _always_loaded(name: str, value: Value, why: str) -> Row:
    """A setting of loading that has one value in PyNative mode."""
    return goes(name, why, "appendix", back=back.loaded_as(name, value, why))


ROWS: tuple[Row, ...] = (
    judged(
        "load_checkpoint",
        "checkpoint.load_path",
        "appendix",
        _load_path,
        about="carried; PyNative mode loads safetensors, and a note tells of another load_ckpt_format",
    ),
    judged(
        "pretrained_model_dir",
        "checkpoint.load_path",
        None,
        _pretrained,
        effect=Effect.TRAINING,
        about="refused without --hf-config, which gives the model; carried where fine-tuning starts from its weights, "
        "else dropped",
    ),
    computed("resume_training", "checkpoint.no_load_optim", "appendix", back=back.resume_training),
    derived(
        "checkpoint.no_load_optim",
        "1.1",
        _no_load_optim,
        about="the opposite of resume_training, which is False in graph mode by default; a name is refused",
    ),
    judged(
        "output_dir",
        "checkpoint.save_path",
        "appendix",
        _output_dir,
        Fate.COMPUTED,
        back=back.output_dir,
        about="part of the folder that CheckpointMonitor saves into; dropped without this callback",
    ),
    derived("checkpoint.enable_save", "1.1", _enable_save, about="True with CheckpointMonitor, else False"),
    derived(
        "checkpoint.save_path",
        "1.1",
        _save_path,
        about="CheckpointMonitor's directory, else output_dir/checkpoint; not written without the callback",
    ),
    computed(f"{_MONITOR}.type", "checkpoint.enable_save", "appendix", back=back.monitor),
    computed(f"{_MONITOR}.directory", "checkpoint.save_path", None, back=back.directory),
    _saved("prefix", "checkpoint.prefix"),
    default_of("prefix", "checkpoint.prefix", "1.1", "CKP", _saves),
    _saved("save_checkpoint_steps", "checkpoint.save_interleaved_steps"),
    default_of("save_checkpoint_steps", "checkpoint.save_interleaved_steps", "1.1", 1, _saves),
    _saved("keep_checkpoint_max", "checkpoint.save_max"),
    _saved("async_save", "checkpoint.async_save"),
    _saved("remove_redundancy", "checkpoint.remove_redundancy"),
    judged(
        f"{_MONITOR}.save_optimizer",
        "checkpoint.no_save_optim",
        None,
        _no_save_optim,
        Fate.COMPUTED,
        back=back.save_optimizer,
        about="the opposite of save_optimizer",
    ),
    goes("remove_redundancy", "how the loaded checkpoint was saved; PyNative checkpoints carry their layout"),
    renamed("balanced_load", "checkpoint.load_balanced", None),
    _always_saved("integrated_save", False, "PyNative mode always saves one file per rank"),
    _always_saved("checkpoint_format", "safetensors", "PyNative mode saves safetensors"),
    *(goes(f"{_MONITOR}.{name}", "PyNative mode saves by steps") for name in _BY_TIME),
    *(goes(f"{_MONITOR}.{name}", "an extra file of weights; the checkpoint holds them too") for name in _EXTRA_FILES),
    *(goes(f"{_MONITOR}.{name}", "a form of graph mode's files; training is the same") for name in _FORMS),
    _always_loaded("load_ckpt_format", "safetensors", "PyNative mode loads safetensors"),
    _always_loaded("auto_trans_ckpt", True, "PyNative mode fits a checkpoint to the layout while loading"),
    goes("src_strategy_path_or_dir", "PyNative checkpoints carry their layout", "appendix"),
    goes("transform_process_num", "PyNative mode fits a checkpoint to the layout while loading"),
    goes("use_legacy_format", "PyNative checkpoints have one format"),
    goes("resume_by_last_timestamp_ckpt", "PyNative mode resumes from the newest checkpoint of load_path"),
    judged(
        "resume_or_finetune_checkpoint",
        "checkpoint.load_path",
        None,
        _old_load,
        Fate.REFUSED,
        effect=Effect.TRAINING,
        about="refused when it names a checkpoint: the run_mode of old releases said whether that is resumed",
    ),
    judged(
        "only_save_strategy",
        None,
        "appendix",
        _only_strategy,
        Fate.DROPPED,
        effect=Effect.TRAINING,
        about="refused when True: such a graph run ends before it trains",
    ),
)
