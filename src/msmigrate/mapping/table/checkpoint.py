"""Rows for saving and loading (manual section 1): from callbacks, output_dir, load_checkpoint and resume_training."""

from msmigrate.mapping.context import Context
from msmigrate.mapping.outcome import Fate, Outcome, carried, dropped, refused, written
from msmigrate.mapping.rows import Row, computed, derived, goes, judged, leaf_value, renamed
from msmigrate.yaml.nodes import Leaf

_MONITOR = "callbacks[CheckpointMonitor]"
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


def _saved(name: str, pynative: str, value: int | str) -> Row:
    def default(context: Context) -> Outcome | None:
        if not _saves(context):
            return None
        return written(Fate.DEFAULT, pynative, value, f"graph mode's default {name} is {value}")

    return derived(pynative, "1.1", default)


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


def _load_path(context: Context, row: Row, leaf: Leaf) -> Outcome:
    value = leaf_value(leaf)
    if value is None:
        return dropped("null, as if it were absent", pynative="checkpoint.load_path")
    if not value and context.graph.value("run_mode") == "finetune" and context.graph.value("pretrained_model_dir"):
        return dropped("empty: pretrained_model_dir is loaded", pynative="checkpoint.load_path")
    return row.carry(leaf)


ROWS: tuple[Row, ...] = (
    judged("load_checkpoint", "checkpoint.load_path", "appendix", _load_path),
    judged("pretrained_model_dir", "checkpoint.load_path", None, _pretrained),
    computed("resume_training", "checkpoint.no_load_optim", "appendix"),
    derived("checkpoint.no_load_optim", "1.1", _no_load_optim),
    judged("output_dir", "checkpoint.save_path", "appendix", _output_dir, Fate.COMPUTED),
    derived("checkpoint.enable_save", "1.1", _enable_save),
    derived("checkpoint.save_path", "1.1", _save_path),
    computed(f"{_MONITOR}.type", "checkpoint.enable_save", "appendix"),
    computed(f"{_MONITOR}.directory", "checkpoint.save_path", None),
    renamed(f"{_MONITOR}.prefix", "checkpoint.prefix", "appendix"),
    _saved("prefix", "checkpoint.prefix", "CKP"),
    renamed(f"{_MONITOR}.save_checkpoint_steps", "checkpoint.save_interleaved_steps", "appendix"),
    _saved("save_checkpoint_steps", "checkpoint.save_interleaved_steps", 1),
    renamed(f"{_MONITOR}.keep_checkpoint_max", "checkpoint.save_max", "appendix"),
    renamed(f"{_MONITOR}.async_save", "checkpoint.async_save", "appendix"),
    renamed(f"{_MONITOR}.remove_redundancy", "checkpoint.remove_redundancy", "appendix"),
    judged(f"{_MONITOR}.save_optimizer", "checkpoint.no_save_optim", None, _no_save_optim, Fate.COMPUTED),
    renamed("remove_redundancy", "checkpoint.remove_redundancy", None),
    renamed("balanced_load", "checkpoint.load_balanced", None),
    goes(f"{_MONITOR}.integrated_save", "PyNative mode always saves one file per rank", "appendix"),
    goes(f"{_MONITOR}.checkpoint_format", "PyNative mode saves safetensors", "appendix"),
    goes(f"{_MONITOR}.save_checkpoint_seconds", "PyNative mode saves by steps"),
    goes("load_ckpt_format", "PyNative mode loads safetensors", "appendix"),
    goes("auto_trans_ckpt", "PyNative mode fits a checkpoint to the layout while loading", "appendix"),
    goes("src_strategy_path_or_dir", "PyNative checkpoints carry their layout", "appendix"),
    goes("only_save_strategy", "PyNative mode has no strategy files", "appendix"),
)
