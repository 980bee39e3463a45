"""A Hugging Face folder made into a checkpoint."""

import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from msmigrate.hf_config import FILE as CONFIG_JSON
from msmigrate.hf_config import read_hf_config
from msmigrate.problems import UnreadableError, UserError
from msmigrate.pynative import Model as ModelSection
from msmigrate.yaml.source import shown_path
from msrt.checkpoint.common import common_of
from msrt.checkpoint.folder import whole_folder
from msrt.checkpoint.layout import model_file
from msrt.checkpoint.write import TensorFile, all_of, write_checkpoint
from msrt.exchange.hf_files import small_files
from msrt.exchange.same_model import other_arithmetic, refuse_other_model
from msrt.exchange.source import hf_model, read_model_section
from msrt.models import empty_model, parameter_count
from msrt.models.registry import ModelConfig
from msrt.ops.device import prepare
from msrt.train.memory import available_memory
from msrt.weights.fit import LISTED
from msrt.weights.hf import Sources, besides, bound, stored_tensors
from msrt.weights.safetensors import Raw
from msrt.weights.safetensors_file import TensorSpec

EMBEDDING = "model.embed_tokens.weight"

BYTES = 4
"""Of a parameter of the model that is made to compare shapes."""

PREFIX = "checkpoint"
"""What MindFormers' file names start with unless a config says otherwise."""


def import_hf_folder(folder: Path, target: Path, config_file: str | None, note: Callable[[str], None]) -> int:
    """Makes the checkpoint `target`, of step 0, out of the Hugging Face folder; returns the number of parameters.

    With the pynative.yaml `config_file` the checkpoint holds its model, which must be that of the folder's config.json.
    Weights keep their type and every bit. Raises UserError for two different models and for weights that do not fit,
    UnreadableError for what cannot be read or written; then there is no `target`.
    """
    if not folder.is_dir():
        found = "is a file" if folder.exists() else "does not exist"
        raise UnreadableError(
            f"{shown_path(str(folder))} {found}; expected a folder with {CONFIG_JSON} and safetensors files."
        )
    config, section = _chosen(folder, config_file, note)
    _refuse_more_than_stored(config, folder)
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
    not_finite: list[str] = []
    weights = TensorFile(model_file(PREFIX, 0, 1), pieces, _watched(sources, not_finite))
    with whole_folder(target) as root:
        write_checkpoint(root, 0, [weights], common_of(0, section, copies=copies), small_files(folder))
    if not_finite:
        count = "1 tensor holds" if len(not_finite) == 1 else f"{len(not_finite)} tensors hold"
        more = f" and {len(not_finite) - LISTED} more" if len(not_finite) > LISTED else ""
        note(f"{count} NaN or infinite values, kept as they are: {', '.join(not_finite[:LISTED])}{more}.")
    return len(sources)


def _watched(sources: Sequence[Sources], not_finite: list[str]) -> Iterator[Raw]:
    """The parameters' values; the names of tensors with values that are not finite are added to `not_finite`."""
    for item in sources:
        raw = item.raw()
        not_finite += item.not_finite(raw)
        yield raw


def _refuse_more_than_stored(config: ModelConfig, folder: Path) -> None:
    """Raises UserError for a model that has more values than the files hold and than memory does.

    A smaller one that does not fit the files is made, and every tensor is compared.
    """
    needed, available = parameter_count(config), available_memory()
    if available is None or needed * BYTES <= available:
        return
    stored = stored_tensors(folder)
    held = sum(math.prod(tensor.shape) for tensor in stored.values())
    if needed <= held:
        return
    rows, shape = stored.get(EMBEDDING), (config.vocab_size, config.hidden_size)
    other = "" if rows is None or rows.shape == shape else f" {EMBEDDING} is {rows.shape}, the model needs {shape}."
    raise UserError(
        f"The weights in {shown_path(str(folder))} do not fit the model: it has {needed:,} parameters, and the files "
        f"hold {held:,} values.{other}"
    )


def _chosen(
    folder: Path, config_file: str | None, note: Callable[[str], None]
) -> tuple[ModelConfig, ModelSection | None]:
    """The model to import, and its section when a pynative.yaml gives it."""
    if config_file is None:
        return hf_model(folder, note), None
    theirs = hf_model(folder)
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
