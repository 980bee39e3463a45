"""Reading safetensors files of any float type as float32, without copying what is not asked for."""

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from msmigrate.problems import UnreadableError

_STORED = {"F64": np.float64, "F32": np.float32, "F16": np.float16, "BF16": np.uint16}


@dataclass(frozen=True)
class StoredTensor:
    """One tensor of a file; `begin` and `end` are byte offsets in it."""

    path: Path
    dtype: str
    shape: tuple[int, ...]
    begin: int
    end: int

    def load(self) -> NDArray[np.float32]:
        """The values as float32. Raises UnreadableError for a type that is no float."""
        if self.dtype not in _STORED:
            raise UnreadableError(
                f"{self.path} holds a tensor of type {self.dtype}; expected one of {', '.join(_STORED)}."
            )
        size = (self.end - self.begin) // np.dtype(_STORED[self.dtype]).itemsize
        raw = np.fromfile(self.path, _STORED[self.dtype], size, offset=self.begin)
        # A bfloat16 is the upper half of a float32.
        values = (raw.astype(np.uint32) << 16).view(np.float32) if self.dtype == "BF16" else raw.astype(np.float32)
        return values.reshape(self.shape)


def read_header(path: Path) -> dict[str, StoredTensor]:
    """The tensors of the safetensors file `path`, by name, not loaded. Raises UnreadableError for a broken file."""
    try:
        with path.open("rb") as file:
            length = int.from_bytes(file.read(8), "little")
            if length > path.stat().st_size - 8:
                raise UnreadableError(
                    f"{path} is not a safetensors file: its header of {length} bytes is not all there."
                )
            header = json.loads(file.read(length))
    except OSError as error:
        raise UnreadableError(f"{path} cannot be read: {error.strerror}.") from error
    except ValueError as error:
        raise UnreadableError(f"{path} is not a safetensors file: its header is not JSON ({error}).") from error
    header.pop("__metadata__", None)
    start = 8 + length
    tensors = {
        name: StoredTensor(path, entry["dtype"], tuple(entry["shape"]), *(start + n for n in entry["data_offsets"]))
        for name, entry in header.items()
    }
    end = max((tensor.end for tensor in tensors.values()), default=start)
    if end > path.stat().st_size:
        raise UnreadableError(f"{path} is cut short: {path.stat().st_size} bytes where its header needs {end}.")
    return tensors
