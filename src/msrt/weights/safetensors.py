"""Reading safetensors files of any type, without loading what is not asked for."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from msmigrate.json_text import KINDS, parse_json
from msmigrate.problems import UnreadableError
from msmigrate.yaml.source import shown_path

Raw = NDArray[Any]
"""Values as they are stored; numpy has no bfloat16, whose bits are a uint16 here."""

FLOATS: Mapping[str, type[np.generic]] = {"F64": np.float64, "F32": np.float32, "F16": np.float16, "BF16": np.uint16}
STORED: Mapping[str, type[np.generic]] = {
    **FLOATS, "I64": np.int64, "I32": np.int32, "I16": np.int16, "I8": np.int8, "U8": np.uint8, "BOOL": np.bool_,
}  # fmt: skip
"""The types that are read, and what numpy makes of them."""

LONGEST_HEADER = 100_000_000
"""Bytes; the format's own limit (safetensors, README, "Format")."""


@dataclass(frozen=True)
class StoredTensor:
    """One tensor of a file; `begin` and `end` are byte offsets in it."""

    path: Path
    dtype: str
    shape: tuple[int, ...]
    begin: int
    end: int

    def raw(self) -> Raw:
        """The values as they are stored, bfloat16 as uint16. Raises UnreadableError for a type that is not known."""
        kind = STORED.get(self.dtype)
        if kind is None:
            raise UnreadableError(
                f"{_shown(self.path)} holds a tensor of type {self.dtype}; expected one of {', '.join(STORED)}."
            )
        count, held = math.prod(self.shape), self.end - self.begin
        # Before anything is allocated: a damaged header may name any shape.
        if count * np.dtype(kind).itemsize != held:
            raise UnreadableError(f"{_shown(self.path)} is damaged: {held} bytes for {self.shape} of {self.dtype}.")
        try:
            values = np.fromfile(self.path, kind, count, offset=self.begin)
        except OSError as error:
            raise UnreadableError(f"{_shown(self.path)} cannot be read: {error.strerror}.") from error
        if values.size != count:
            raise UnreadableError(f"{_shown(self.path)} was cut short while it was read.")
        return values.reshape(self.shape)

    def load(self) -> NDArray[np.float32]:
        """The values as float32. Raises UnreadableError for a type that is no float."""
        if self.dtype not in FLOATS:
            raise UnreadableError(
                f"{_shown(self.path)} holds a tensor of type {self.dtype}; expected one of {', '.join(FLOATS)}."
            )
        return widened(self.raw(), self.dtype)


def widened(raw: Raw, dtype: str) -> NDArray[np.float32]:
    """Stored values of the float type `dtype` as float32: exact for all but F64, which is rounded."""
    if dtype == "BF16":  # the upper half of a float32
        values: NDArray[np.float32] = (raw.astype(np.uint32) << 16).view(np.float32)
        return values
    return raw.astype(np.float32, copy=False)


def all_finite(raw: Raw, dtype: str) -> bool:
    """Whether stored values of the float type `dtype` are free of NaN and infinities."""
    if dtype == "BF16":  # an exponent of all ones
        return not bool(np.any((raw & np.uint16(0x7F80)) == 0x7F80))
    return bool(np.isfinite(raw).all())


def read_header(path: Path) -> dict[str, StoredTensor]:
    """The tensors of the safetensors file `path`, by name, not loaded. Raises UnreadableError for a broken file."""
    try:
        with path.open("rb") as file:
            size = path.stat().st_size
            length = int.from_bytes(file.read(8), "little")
            if size < 8 or length > LONGEST_HEADER:
                raise UnreadableError(
                    f"{_shown(path)} is not a safetensors file: it does not begin with the length of a header."
                )
            if length > size - 8:
                raise UnreadableError(
                    f"{_shown(path)} is cut short: its header has {length} bytes, and {size - 8} are there."
                )
            data = file.read(length)
    except OSError as error:
        raise UnreadableError(f"{_shown(path)} cannot be read: {error.strerror}.") from error
    start = 8 + length
    header = parse_json(data, f"{_shown(path)} is not a safetensors file: header")
    if not isinstance(header, dict):
        raise UnreadableError(f"{_shown(path)} is not a safetensors file: its header is {KINDS[type(header)]}.")
    tensors = {name: _stored(path, name, entry, start) for name, entry in header.items() if name != "__metadata__"}
    end = max((tensor.end for tensor in tensors.values()), default=start)
    if end > size:
        raise UnreadableError(f"{_shown(path)} is cut short: {size} bytes where its header needs {end}.")
    return tensors


def _stored(path: Path, name: str, entry: object, start: int) -> StoredTensor:
    """The tensor that an entry of a header describes; `start` is where the data begin."""
    if isinstance(entry, dict):
        dtype, shape, offsets = entry.get("dtype"), _sizes(entry.get("shape")), _sizes(entry.get("data_offsets"))
        if isinstance(dtype, str) and shape is not None and offsets is not None and len(offsets) == 2:
            return StoredTensor(path, dtype, shape, start + offsets[0], start + offsets[1])
    raise UnreadableError(
        f"{_shown(path)} is not a safetensors file: its header does not give {name!r} a dtype, a shape and two "
        "data_offsets."
    )


def _sizes(values: object) -> tuple[int, ...] | None:
    """A list of integers from 0; None for anything else."""
    if not isinstance(values, list) or not all(type(value) is int and value >= 0 for value in values):
        return None
    return tuple(values)


def _shown(path: Path) -> str:
    return shown_path(str(path))
