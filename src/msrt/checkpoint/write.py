"""Writing one iteration of a checkpoint."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from msmigrate.yaml.source import write_whole
from msrt.checkpoint.folder import whole_folder
from msrt.checkpoint.layout import COMMON, HF_FILES, METADATA, TRACKER, iteration_name
from msrt.checkpoint.metadata import FileInfo, Metadata, Piece, TensorInfo
from msrt.weights.safetensors import Raw
from msrt.weights.safetensors_file import TensorSpec, write_safetensors


@dataclass(frozen=True)
class TensorPiece:
    """A piece to be written: a box of `spec.shape` that starts at `offset` in the tensor of shape `whole`."""

    spec: TensorSpec
    offset: tuple[int, ...]
    whole: tuple[int, ...]


def all_of(spec: TensorSpec) -> TensorPiece:
    """The piece that is the whole tensor."""
    return TensorPiece(spec, (0,) * len(spec.shape), spec.shape)


@dataclass(frozen=True)
class TensorFile:
    """One file of tensors; `values` has those of `pieces` in their order, made as they are asked for."""

    name: str
    pieces: Sequence[TensorPiece]
    values: Iterable[Raw]


def write_checkpoint(
    root: Path,
    step: int,
    files: Sequence[TensorFile],
    common: Mapping[str, object],
    hf_files: Mapping[str, bytes],
    *,
    replace: bool = False,
) -> Path:
    """Adds the iteration of `step` to the checkpoint `root`, then names it in the tracker; returns its folder.

    `common` becomes common.json; `hf_files` are kept beside it by their names. A folder that is there
    already is an UnreadableError, or goes when the new one is complete (`replace`). Raises UnreadableError also when it
    cannot be written; then nothing of it stays.
    """
    target = root / iteration_name(step)
    with whole_folder(target, replace=replace) as folder:
        held: dict[str, FileInfo] = {}
        for file in files:
            digest = write_safetensors(folder / file.name, [piece.spec for piece in file.pieces], file.values)
            held[file.name] = FileInfo((folder / file.name).stat().st_size, digest)
        small = {COMMON: (json.dumps(common, indent=1) + "\n").encode()}
        small.update((f"{HF_FILES}/{name}", data) for name, data in hf_files.items())
        for name, data in small.items():
            (folder / name).parent.mkdir(exist_ok=True)
            write_whole(str(folder / name), data)
            held[name] = FileInfo(len(data), sha256(data).hexdigest())
        write_whole(str(folder / METADATA), Metadata(_tensors(files), held).to_json())
    write_whole(str(root / TRACKER), f"{step}\n".encode())
    return target


def _tensors(files: Sequence[TensorFile]) -> dict[str, TensorInfo]:
    """The tensors that the pieces of all files make up."""
    found: dict[str, TensorInfo] = {}
    for file in files:
        for piece in file.pieces:
            spec = piece.spec
            known = found.get(spec.name, TensorInfo(piece.whole, spec.dtype, ()))
            box = Piece(file.name, piece.offset, spec.shape)
            found[spec.name] = TensorInfo(known.shape, known.dtype, (*known.pieces, box))
    return found
