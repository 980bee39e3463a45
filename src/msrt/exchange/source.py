"""CHECKPOINT|HF_DIR as the commands take it: which model it is, and its weights."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from msmigrate.hf_config import FILE as CONFIG_JSON
from msmigrate.hf_config import read_hf_config
from msmigrate.problems import UnreadableError, UserError
from msmigrate.pynative import Model as ModelSection
from msmigrate.pynative.load import load_config
from msmigrate.yaml.source import read_source, shown_path
from msrt.checkpoint.common import model_section
from msrt.checkpoint.layout import COMMON, METADATA, TRACKER, is_checkpoint
from msrt.checkpoint.read import Checkpoint, open_checkpoint
from msrt.config.problem import about_file, refuse
from msrt.config.refusals import judge
from msrt.models import config_from_hf, config_from_model_section, empty_model, parameter_count
from msrt.models.registry import ModelConfig
from msrt.ops.autograd import tensor
from msrt.ops.device import prepare
from msrt.train.memory import GIB, available_memory
from msrt.weights.fit import refuse_misfits
from msrt.weights.hf import import_hf
from msrt.weights.safetensors import FLOATS, widened


@dataclass(frozen=True)
class Source:
    """Weights, not loaded yet, and the model they are for."""

    path: Path
    config: ModelConfig
    hf_files: Path
    """Folder with a tokenizer.json and a generation_config.json, where there are any."""
    checkpoint: Checkpoint | None
    """None for a Hugging Face folder."""

    def load(self) -> Any:
        """The model with its weights, in float32 (a cell that is a `models.api.Model`).

        Raises UserError when the weights do not fit it, or are too large for this machine.
        """
        prepare()
        _refuse_too_large(parameter_count(self.config), available_memory())
        model: Any = empty_model(self.config)
        parameters = dict(model.parameters_and_names())
        if self.checkpoint is None:
            import_hf(parameters, model.name_table(), self.path)
        else:
            _fill(parameters, self.checkpoint)
        return model


def open_source(path: Path, config_file: str | None = None, note: Callable[[str], None] | None = None) -> Source:
    """The checkpoint or Hugging Face folder at `path`.

    The model is that of the pynative.yaml `config_file`, in MindFormers' arithmetic; without one it is what `path`
    says of itself: a config.json, in transformers' arithmetic, or the section that a checkpoint was written with.
    `note` takes sentences on what a config.json asks for and transformers does not compute.
    Raises UnreadableError for anything else, and UserError for models that msrt lacks.
    """
    if is_checkpoint(path):
        checkpoint = open_checkpoint(path)
        config = read_model_section(config_file)[0] if config_file else _own_config(checkpoint, note)
        return Source(path, config, checkpoint.hf_files, checkpoint)
    if not (path / CONFIG_JSON).is_file():
        raise UnreadableError(
            f"{shown_path(str(path))} is neither a checkpoint ({TRACKER} or {METADATA} in it) nor a Hugging Face "
            f"folder ({CONFIG_JSON} in it)."
        )
    return Source(path, read_model_section(config_file)[0] if config_file else hf_model(path, note), path, None)


def read_model_section(path: str) -> tuple[ModelConfig, ModelSection]:
    """The model of a pynative.yaml and its section. Raises UserError with every reason why msrt cannot compute it."""
    source = read_source(path)
    loaded = load_config(source.text, source.name)
    problems = judge(loaded.config, loaded.given, world=1).problems
    refuse([problem for problem in problems if problem.key.startswith("model.")], source.name, loaded.given)
    with about_file(source.name):
        return config_from_model_section(loaded.config.model), loaded.config.model


def hf_model(folder: Path, note: Callable[[str], None] | None = None) -> ModelConfig:
    """The model of a Hugging Face folder's config.json; `note` takes its remarks."""
    values, name = read_hf_config(str(folder))
    with about_file(shown_path(name)):
        config = config_from_hf(values)
    if note is not None:
        for remark in config.remarks:
            note(remark)
    return config


def _own_config(checkpoint: Checkpoint, note: Callable[[str], None] | None) -> ModelConfig:
    name = shown_path(str(checkpoint.folder / COMMON))
    section = model_section(checkpoint.common, name)
    if section is not None:
        with about_file(name):
            return config_from_model_section(section)
    if not (checkpoint.hf_files / CONFIG_JSON).is_file():
        raise UnreadableError(
            f"{name} has no model section, and {shown_path(str(checkpoint.hf_files))} no {CONFIG_JSON}: give the "
            "model with --config."
        )
    return hf_model(checkpoint.hf_files, note)


def _fill(parameters: Mapping[str, Any], checkpoint: Checkpoint) -> None:
    """Loads every parameter from the checkpoint's tensors, which must be the same ones."""
    stored, shown = checkpoint.weights, shown_path(str(checkpoint.folder))
    shapes = {name: tuple(parameter.shape) for name, parameter in parameters.items()}
    refuse_misfits(shapes, {name: info.shape for name, info in stored.items()}, shown)
    for name, parameter in parameters.items():
        if stored[name].dtype not in FLOATS:
            raise UserError(f"{shown} holds {name} as {stored[name].dtype}; expected one of {', '.join(FLOATS)}.")
        parameter.set_data(tensor(widened(checkpoint.raw(name), stored[name].dtype)))


def _refuse_too_large(parameters: int, available: int | None) -> None:
    needed = 4 * parameters
    if available is not None and needed > available:
        raise UserError(
            f"The model has {parameters:,} parameters, which take {needed / GIB:,.1f} GiB in float32; this machine has "
            f"{available / GIB:,.1f} GiB available."
        )
