"""Reading a checkpoint: every file is checked against its checksum, every tensor against its description."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from msmigrate.json_text import read_json_object
from msmigrate.problems import UnreadableError
from msmigrate.yaml.source import shown_path
from msrt.checkpoint.layout import COMMON, HF_FILES, METADATA, is_optimizer_state, iteration_folder
from msrt.checkpoint.metadata import FileInfo, Metadata, TensorInfo
from msrt.weights.safetensors import STORED, Raw, StoredTensor, read_header

_BLOCK = 1 << 22


@dataclass(frozen=True)
class Checkpoint:
    """One iteration whose files have been checked; tensors are loaded when they are asked for."""

    folder: Path
    metadata: Metadata
    common: Mapping[str, object]

    @property
    def hf_files(self) -> Path:
        """Where the small files of the Hugging Face folder are, if the weights came from one."""
        return self.folder / HF_FILES

    @property
    def weights(self) -> dict[str, TensorInfo]:
        """The tensors that are parameters."""
        return {name: info for name, info in self.metadata.tensors.items() if not is_optimizer_state(name)}

    @property
    def has_optimizer_state(self) -> bool:
        """Whether training can go on from here."""
        return any(map(is_optimizer_state, self.metadata.tensors))

    def raw(self, name: str) -> Raw:
        """The values of a tensor as its type stores them, put together from its pieces."""
        info = self.metadata.tensors[name]
        if len(info.pieces) == 1:
            return self._stored[info.pieces[0].file][name].raw()
        whole = np.empty(info.shape, STORED[info.dtype])
        for piece in info.pieces:
            whole[piece.place] = self._stored[piece.file][name].raw()
        return whole

    @cached_property
    def _stored(self) -> Mapping[str, Mapping[str, StoredTensor]]:
        """The tensors of each safetensors file."""
        files = {piece.file for info in self.metadata.tensors.values() for piece in info.pieces}
        return {file: read_header(self.folder / file) for file in sorted(files)}

    def check_pieces(self) -> None:
        """Raises UnreadableError when a file does not hold a piece as the metadata describes it."""
        for name, info in self.metadata.tensors.items():
            for piece in info.pieces:
                held = self._stored[piece.file].get(name)
                if held is None or (held.shape, held.dtype) != (piece.shape, info.dtype):
                    raise UnreadableError(_other_piece(self.folder / piece.file, name, info, piece.shape, held))


def open_checkpoint(path: Path) -> Checkpoint:
    """The checkpoint at `path`: a root, whose newest iteration is taken, or an iteration's folder.

    Raises UnreadableError for what is no checkpoint, for files that are missing or damaged (all are named), and for
    tensors that are not as described.
    """
    folder = iteration_folder(path)
    metadata = Metadata.read(folder / METADATA)
    faults = [fault for name, info in metadata.files.items() if (fault := _fault(folder / name, info)) is not None]
    if faults:
        raise UnreadableError("\n".join(faults))
    checkpoint = Checkpoint(folder, metadata, read_json_object(folder / COMMON, "an object with global_step and model"))
    checkpoint.check_pieces()
    return checkpoint


def _fault(path: Path, expected: FileInfo) -> str | None:
    """What is wrong with a file, None when it is the one that was written."""
    shown = shown_path(str(path))
    try:
        size = path.stat().st_size
        if size != expected.bytes:
            return f"{shown} is damaged: it has {size} bytes, {METADATA} says {expected.bytes}."
        digest = hashlib.sha256()
        with path.open("rb") as file:
            while block := file.read(_BLOCK):
                digest.update(block)
    except FileNotFoundError:
        return f"{shown} is missing."
    except OSError as error:
        return f"{shown} cannot be read: {error.strerror}."
    if digest.hexdigest() == expected.sha256:
        return None
    return (
        f"{shown} is damaged: its SHA-256 starts with {digest.hexdigest()[:12]}, {METADATA} says "
        f"{expected.sha256[:12]}."
    )


def _other_piece(path: Path, name: str, info: TensorInfo, shape: tuple[int, ...], held: StoredTensor | None) -> str:
    found = "nothing" if held is None else f"{held.shape} {held.dtype}"
    return f"{shown_path(str(path))} holds {found} for {name}; {METADATA} says {shape} {info.dtype}."
