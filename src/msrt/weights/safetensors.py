"""Reading safetensors files of any type, without loading what is not asked for."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from msmigrate.problems import UnreadableError
from msmigrate.yaml.source import shown_path

Raw = NDArray[Any]
"""Values as they are stored; numpy has no bfloat16, whose bits are a uint16 here."""

FLOATS: Mapping[str, type[np.generic]] = {"F64": np.float64, "F32": np.float32, "F16": np.float16, "BF16": np.uint16}
STORED: Mapping[str, type[np.generic]] = {
    **FLOATS, "I64": np.int64, "I32": np.int32, "I16": np.int16, "I8": np.int8, "U8": np.uint8, "BOOL": np.bool_,
}  # fmt: skip
"""The types that are read, and what numpy makes of them."""


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
        count = math.prod(self.shape)
        try:
            values = np.fromfile(self.path, kind, count, offset=self.begin)
        except OSError as error:
            raise UnreadableError(f"{_shown(self.path)} cannot be read: {error.strerror}.") from error
        if values.size != count or self.end - self.begin != values.nbytes:
            raise UnreadableError(
                f"{_shown(self.path)} is damaged: {self.end - self.begin} bytes for {self.shape} of {self.dtype}."
            )
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


def read_header(path: Path) -> dict[str, StoredTensor]:
    """The tensors of the safetensors file `path`, by name, not loaded. Raises UnreadableError for a broken file."""
    try:
        with path.open("rb") as file:
            size = path.stat().st_size
            length = int.from_bytes(file.read(8), "little")
            if length > size - 8:
                raise UnreadableError(
                    f"{_shown(path)} is not a safetensors file: its header of {length} bytes is not all there."
                )
            header = json.loads(file.read(length))
        start = 8 + length
        tensors = {
            name: StoredTensor(path, entry["dtype"], tuple(entry["shape"]), *(start + n for n in entry["data_offsets"]))
            for name, entry in header.items()
            if name != "__metadata__"
        }
        end = max((tensor.end for tensor in tensors.values()), default=start)
    except OSError as error:
        raise UnreadableError(f"{_shown(path)} cannot be read: {error.strerror}.") from error
    except ValueError as error:
        raise UnreadableError(f"{_shown(path)} is not a safetensors file: its header is not JSON ({error}).") from error
    except (AttributeError, KeyError, TypeError, RecursionError) as error:
        raise UnreadableError(f"{_shown(path)} is not a safetensors file: its header has another form.") from error
    if end > size:
        raise UnreadableError(f"{_shown(path)} is cut short: {size} bytes where its header needs {end}.")
    return tensors


def _shown(path: Path) -> str:
    return shown_path(str(path))
