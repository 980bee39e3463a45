"""A Hugging Face folder made into a checkpoint."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from msmigrate.hf_config import read_hf_config
from msmigrate.pynative import Model as ModelSection
from msmigrate.yaml.source import shown_path
from msrt.checkpoint.common import common_of
from msrt.checkpoint.folder import whole_folder
from msrt.checkpoint.layout import model_file
from msrt.checkpoint.write import TensorFile, all_of, write_checkpoint
from msrt.exchange.hf_files import small_files
from msrt.exchange.same_model import other_arithmetic, refuse_other_model
from msrt.exchange.source import hf_model, read_model_section
from msrt.models import empty_model
from msrt.models.registry import ModelConfig
from msrt.ops.device import prepare
from msrt.weights.hf import besides, bound
from msrt.weights.safetensors_file import TensorSpec

PREFIX = "checkpoint"
"""What MindFormers' file names start with unless a config says otherwise."""


def import_hf_folder(folder: Path, target: Path, config_file: str | None, note: Callable[[str], None]) -> int:
    """Makes the checkpoint `target`, of step 0, out of the Hugging Face folder; returns the number of parameters.

    With the pynative.yaml `config_file` the checkpoint holds its model, which must be that of the folder's config.json.
    Weights keep their type and every bit. Raises UserError for two different models and for weights that do not fit,
    UnreadableError for what cannot be read or written; then there is no `target`.
    """
    config, section = _chosen(folder, config_file, note)
    prepare()
    model: Any = empty_model(config)
    parameters = dict(model.parameters_and_names())
    sources = bound(parameters, model.name_table(), folder)
    copies, unused = besides(model.name_table(), folder)
    if unused:
        note(f"{len(unused)} tensors that this model has no use for are left out, such as {unused[0]}.")
    mixed = [item.binding.ours for item in sources if len({part.dtype for part in item.parts}) > 1]
    if mixed:
        note(
            f"{len(mixed)} parameters, such as {mixed[0]}, are made of tensors of several types; they are kept as F32."
        )
    specs = {
        item: TensorSpec(item.binding.ours, item.dtype, tuple(parameters[item.binding.ours].shape)) for item in sources
    }
    sources.sort(key=lambda item: -specs[item].width)
    pieces = [all_of(specs[item]) for item in sources]
    weights = TensorFile(model_file(PREFIX, 0, 1), pieces, (item.raw() for item in sources))
    with whole_folder(target) as root:
        write_checkpoint(root, 0, [weights], common_of(0, section, copies=copies), small_files(folder))
    return len(sources)


def _chosen(
    folder: Path, config_file: str | None, note: Callable[[str], None]
) -> tuple[ModelConfig, ModelSection | None]:
    """The model to import, and its section when a pynative.yaml gives it."""
    theirs = hf_model(folder)
    if config_file is None:
        return theirs, None
    ours, section = read_model_section(config_file)
    values, name = read_hf_config(str(folder))
    refuse_other_model(section, shown_path(config_file), values, shown_path(name))
    differences = other_arithmetic(ours, theirs)
    if differences:
        note(
            "The checkpoint is computed with MindFormers' arithmetic, which differs from transformers' for this model "
            f"(MindFormers / transformers): {'; '.join(differences)}."
        )
    return ours, section
