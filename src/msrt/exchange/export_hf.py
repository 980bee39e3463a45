"""A checkpoint made into a Hugging Face folder."""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from msmigrate.hf_config import FILE as CONFIG_JSON
from msmigrate.problems import UnreadableError
from msmigrate.yaml.source import shown_path, write_whole
from msrt.checkpoint.common import copies_in, model_section
from msrt.checkpoint.folder import whole_folder
from msrt.checkpoint.layout import COMMON, is_checkpoint
from msrt.checkpoint.read import Checkpoint
from msrt.exchange.hf_files import config_json, made_config, small_files
from msrt.exchange.same_model import other_arithmetic
from msrt.exchange.source import Source, open_source
from msrt.models import config_from_hf, empty_model
from msrt.ops.autograd import array
from msrt.ops.device import prepare
from msrt.weights.fit import refuse_misfits
from msrt.weights.hf import INDEX, ONE_FILE
from msrt.weights.names import Binding
from msrt.weights.safetensors import Raw
from msrt.weights.safetensors_file import TensorSpec, write_safetensors

SHARD_BYTES = 5 * 10**9
"""Largest file, unless one parameter alone is larger; the size at which transformers 4 begins a new file."""

_TORCH = {"F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16"}


@dataclass(frozen=True)
class _Parameter:
    """A parameter of the checkpoint, the tensors it is split into, and copies of the only one of them."""

    binding: Binding
    parts: tuple[TensorSpec, ...]
    copies: tuple[TensorSpec, ...]

    @property
    def tensors(self) -> tuple[TensorSpec, ...]:
        return self.parts + self.copies

    @property
    def nbytes(self) -> int:
        return sum(spec.nbytes for spec in self.tensors)


def export_hf_folder(
    path: Path, target: Path, note: Callable[[str], None], *, shard_bytes: int = SHARD_BYTES
) -> list[Path]:
    """Makes the Hugging Face folder `target` out of the checkpoint at `path`; returns the files with weights.

    Weights keep their type and every bit. config.json, tokenizer and the like are those that the checkpoint was
    imported with; for others a config.json is made of the model section. Raises UserError when the weights do not fit
    the checkpoint's model, UnreadableError for what cannot be read or written; then there is no `target`.
    """
    if not is_checkpoint(path) and (path / CONFIG_JSON).is_file():
        raise UnreadableError(f"{shown_path(str(path))} is a Hugging Face folder already; export takes a checkpoint.")
    source = open_source(path)
    assert source.checkpoint is not None
    parameters = _parameters(source, source.checkpoint)
    shards = _shards(parameters, shard_bytes)
    names = [ONE_FILE] if len(shards) == 1 else _numbered(len(shards))
    files = _small_files(source, source.checkpoint, note)
    if len(shards) > 1:
        files[INDEX] = _index(shards, names)
    with whole_folder(target) as folder:
        for name, data in files.items():
            write_whole(str(folder / name), data)
        for name, shard in zip(names, shards, strict=True):
            specs = [spec for item in shard for spec in item.tensors]
            write_safetensors(folder / name, specs, _values(source.checkpoint, shard), {"format": "pt"})
    return [target / name for name in names]


def _parameters(source: Source, checkpoint: Checkpoint) -> list[_Parameter]:
    """Every parameter of the checkpoint, those of the widest type first."""
    prepare()
    model: Any = empty_model(source.config)
    cells = dict(model.parameters_and_names())
    stored = checkpoint.weights
    shapes = {name: tuple(parameter.shape) for name, parameter in cells.items()}
    refuse_misfits(shapes, {name: info.shape for name, info in stored.items()}, shown_path(str(checkpoint.folder)))
    copied = copies_in(checkpoint.common)
    found = []
    for row in model.name_table():
        for binding in row.bindings():
            parts = binding.layout.split(array(cells[binding.ours]))
            dtype = stored[binding.ours].dtype
            tensors = tuple(TensorSpec(name, dtype, part.shape) for name, part in zip(binding.hub, parts, strict=True))
            copies = tuple(replace(tensors[0], name=name) for name in row.copies if name in copied)
            found.append(_Parameter(binding, tensors, copies))
    return sorted(found, key=lambda item: -item.tensors[0].width)


def _shards(parameters: Sequence[_Parameter], limit: int) -> list[list[_Parameter]]:
    """The parameters in order, cut so that no file is larger than `limit` unless it holds one parameter alone."""
    shards: list[list[_Parameter]] = [[]]
    size = 0
    for item in parameters:
        if shards[-1] and size + item.nbytes > limit:
            shards.append([])
            size = 0
        shards[-1].append(item)
        size += item.nbytes
    return shards


def _numbered(count: int) -> list[str]:
    stem, _, suffix = ONE_FILE.rpartition(".")
    return [f"{stem}-{number:05d}-of-{count:05d}.{suffix}" for number in range(1, count + 1)]


def _index(shards: Sequence[Sequence[_Parameter]], names: Sequence[str]) -> bytes:
    weight_map = {
        spec.name: name
        for name, shard in zip(names, shards, strict=True)
        for item in shard
        for spec in item.tensors
    }  # fmt: skip
    total = sum(item.nbytes for shard in shards for item in shard)
    content = {"metadata": {"total_size": total}, "weight_map": dict(sorted(weight_map.items()))}
    return (json.dumps(content, indent=2) + "\n").encode()


def _values(checkpoint: Checkpoint, shard: Sequence[_Parameter]) -> Iterator[Raw]:
    for item in shard:
        parts = item.binding.layout.split(checkpoint.raw(item.binding.ours))
        yield from [*parts, *parts[:1] * len(item.copies)]


def _small_files(source: Source, checkpoint: Checkpoint, note: Callable[[str], None]) -> dict[str, bytes]:
    """What stands beside the weights, always with a config.json."""
    files = small_files(source.hf_files)
    if CONFIG_JSON in files:
        return files
    section = model_section(checkpoint.common, shown_path(str(checkpoint.folder / COMMON)))
    assert section is not None
    kinds = [info.dtype for info in checkpoint.weights.values()]
    values = made_config(section, _TORCH[max(set(kinds), key=kinds.count)])
    differences = other_arithmetic(source.config, config_from_hf(values))
    if differences:
        note(
            "transformers computes this model with another arithmetic than MindFormers (MindFormers / transformers): "
            f"{'; '.join(differences)}. The weights are the same."
        )
    return {**files, CONFIG_JSON: config_json(values)}
