"""Callbacks, output_dir, load_checkpoint and resume_training of a graph file, from the section `checkpoint`."""

from msmigrate.mapping.back.context import Back, BackContext
from msmigrate.mapping.outcome import Fate, Outcome, dropped, written
from msmigrate.yaml.scalars import Value

MONITOR = "callbacks[CheckpointMonitor]"
_PATH = "checkpoint.save_path"
_FOLDER = "/checkpoint"
"""The folder below output_dir in which graph mode saves."""


def _saves(context: BackContext) -> bool:
    return context.value("checkpoint.enable_save") is True


def _loads(context: BackContext) -> bool:
    return context.text("checkpoint.load_path") != ""


def monitor(context: BackContext) -> Outcome:
    """The callback that saves."""
    if not _saves(context):
        return dropped("graph mode saves only with CheckpointMonitor, and there is none")
    fate = context.fate("checkpoint.enable_save")
    return written(fate, f"{MONITOR}.type", "CheckpointMonitor", "graph mode saves by this callback")


def saved(name: str, pynative: str) -> Back:
    """A setting of CheckpointMonitor under its graph name."""

    def back(context: BackContext) -> Outcome | None:
        return context.bring(f"{MONITOR}.{name}", pynative) if _saves(context) else _nothing_saved()

    return back


def saved_as(name: str, value: Value, why: str) -> Back:
    """A setting of CheckpointMonitor that PyNative mode always has."""

    def back(context: BackContext) -> Outcome | None:
        return written(Fate.DEFAULT, f"{MONITOR}.{name}", value, why) if _saves(context) else None

    return back


def loaded_as(graph: str, value: Value, why: str) -> Back:
    """A graph key that matters only where a checkpoint is loaded."""

    def back(context: BackContext) -> Outcome | None:
        return written(Fate.DEFAULT, graph, value, why) if _loads(context) else None

    return back


def _nothing_saved() -> Outcome:
    return dropped("enable_save is False: nothing is saved")


def _above(path: str) -> str | None:
    """The output_dir below which graph mode saves into `path`, None when there is none."""
    folder = path.removesuffix(_FOLDER)
    return folder if folder != path and folder == folder.rstrip("/") and folder else None


def output_dir(context: BackContext) -> Outcome | None:
    if not _saves(context):
        return _nothing_saved()
    folder = _above(context.text(_PATH))
    if folder is None:
        return None
    return written(Fate.COMPUTED, "output_dir", folder, "graph mode saves into output_dir/checkpoint")


def directory(context: BackContext) -> Outcome | None:
    path = context.text(_PATH)
    if not _saves(context) or not path or _above(path) is not None:
        return None
    return context.bring(f"{MONITOR}.directory", _PATH, "the folder of CheckpointMonitor")


def save_optimizer(context: BackContext) -> Outcome | None:
    if not _saves(context):
        return _nothing_saved()
    if not context.given("checkpoint.no_save_optim"):
        return None
    saves = context.value("checkpoint.no_save_optim") is False
    return written(Fate.COMPUTED, f"{MONITOR}.save_optimizer", saves, "the opposite of no_save_optim")


def resume_training(context: BackContext) -> Outcome:
    key = "checkpoint.no_load_optim"
    if not _loads(context):
        return written(context.fate(key), "resume_training", False, "load_path is empty: there is nothing to resume")
    resumes = context.value(key) is False
    return written(context.fate(key), "resume_training", resumes, "the opposite of no_load_optim")


def run_mode(context: BackContext) -> Outcome | None:
    """`finetune` where weights alone are loaded, as graph mode calls a run that starts from a trained model."""
    if context.value("run_mode") != "train":
        return None
    alone = _loads(context) and context.value("checkpoint.no_load_optim") is True
    why = "weights alone are loaded" if alone else "PyNative mode trains"
    return written(context.fate("run_mode"), "run_mode", "finetune" if alone else "train", why)
