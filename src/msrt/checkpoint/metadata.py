"""metadata.json: which tensors a checkpoint has, which file holds which piece of each, and every file's checksum."""

import json
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeVar

from msmigrate.json_text import read_json_object
from msmigrate.problems import UnreadableError
from msmigrate.yaml.source import shown_path
from msrt.weights.safetensors import STORED

T = TypeVar("T")

VERSION = 1

FORM = "a version, tensors with shape, dtype and pieces, and files with bytes and sha256"


@dataclass(frozen=True)
class Piece:
    """A box of a tensor: it starts at `offset` in the whole; `file` holds it under the tensor's name."""

    file: str
    offset: tuple[int, ...]
    shape: tuple[int, ...]

    @property
    def place(self) -> tuple[slice, ...]:
        """Where it lies in the whole."""
        return tuple(slice(start, start + size) for start, size in zip(self.offset, self.shape, strict=True))


@dataclass(frozen=True)
class TensorInfo:
    """A tensor by its `shape` as a whole, its type as safetensors names it, and its pieces."""

    shape: tuple[int, ...]
    dtype: str
    pieces: tuple[Piece, ...]


@dataclass(frozen=True)
class FileInfo:
    """What a file must be."""

    bytes: int
    sha256: str


@dataclass(frozen=True)
class Metadata:
    """A checkpoint's contents: tensors by PyNative name, files by their path in the iteration's folder."""

    tensors: Mapping[str, TensorInfo]
    files: Mapping[str, FileInfo]

    def to_json(self) -> bytes:
        """The file's text, UTF-8."""
        content = {
            "version": VERSION,
            "tensors": {name: asdict(info) for name, info in self.tensors.items()},
            "files": {name: asdict(info) for name, info in self.files.items()},
        }
        return (json.dumps(content, indent=1) + "\n").encode()

    @classmethod
    def read(cls, path: Path) -> "Metadata":
        """What the file `path` says. Raises UnreadableError when it is missing, damaged, or of a newer version."""
        shown = shown_path(str(path))
        content: Any = read_json_object(path, FORM)
        if type(content.get("version")) is not int:
            raise UnreadableError(f"{shown} is damaged: it has no version; expected {FORM}.")
        if content["version"] != VERSION:
            raise UnreadableError(f"{shown} has version {content['version']}; this msrt reads version {VERSION}.")
        tensors = _entries(content, "tensors", _tensor, shown)
        files = _entries(content, "files", _file, shown)
        problems = [f"{name}: {why}" for name, info in tensors.items() for why in _faults(info, files)]
        if problems:
            raise UnreadableError(f"{shown} is damaged: {'; '.join(problems[:5])}.")
        return cls(tensors, files)


def _entries(content: Mapping[str, object], key: str, read: Callable[[Any], T], shown: str) -> dict[str, T]:
    """What `read` makes of each entry of the object `key`."""
    given = content.get(key)
    if not isinstance(given, dict):
        raise UnreadableError(f"{shown} is damaged: it has no object {key}; expected {FORM}.")
    found: dict[str, T] = {}
    for name, entry in given.items():
        try:
            found[name] = read(entry)
        except (KeyError, TypeError) as error:
            raise UnreadableError(f"{shown} is damaged at {name} in {key}: expected {FORM}.") from error
    return found


def _tensor(entry: Mapping[str, Any]) -> TensorInfo:
    pieces = (Piece(str(piece["file"]), _sizes(piece["offset"]), _sizes(piece["shape"])) for piece in entry["pieces"])
    return TensorInfo(_sizes(entry["shape"]), str(entry["dtype"]), tuple(pieces))


def _file(entry: Mapping[str, Any]) -> FileInfo:
    size, digest = entry["bytes"], entry["sha256"]
    if type(size) is not int or not isinstance(digest, str):
        raise TypeError("no size and checksum")
    return FileInfo(size, digest)


def _sizes(values: object) -> tuple[int, ...]:
    if not isinstance(values, list) or not all(type(value) is int for value in values):
        raise TypeError("no list of integers")
    return tuple(values)


def _faults(info: TensorInfo, files: Mapping[str, FileInfo]) -> Iterator[str]:
    """Why the pieces cannot make up the tensor."""
    if info.dtype not in STORED:
        yield f"the type {info.dtype} is not known"
    for piece in info.pieces:
        if piece.file not in files:
            yield f"{piece.file} is not among the files"
        if not len(piece.offset) == len(piece.shape) == len(info.shape):
            yield f"a piece of {len(piece.shape)} dimensions in a tensor of {len(info.shape)}"
        elif any(
            start < 0 or size < 0 or start + size > whole
            for start, size, whole in zip(piece.offset, piece.shape, info.shape, strict=True)
        ):
            yield f"a piece at {piece.offset} of shape {piece.shape} lies outside {info.shape}"
    held, needed = sum(math.prod(piece.shape) for piece in info.pieces), math.prod(info.shape)
    if held != needed:
        yield f"its pieces hold {held} of {needed} elements"
