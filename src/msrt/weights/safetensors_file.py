"""Writing a safetensors file tensor by tensor: no more than one is in memory, and 16-bit floats stay 16-bit.

The safetensors library wants all tensors at once, and its numpy side has no bfloat16.
"""

import hashlib
import json
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from msrt.weights.safetensors import STORED, Raw


@dataclass(frozen=True)
class TensorSpec:
    """A tensor to be written; `dtype` is a type of safetensors, such as BF16."""

    name: str
    dtype: str
    shape: tuple[int, ...]

    @property
    def width(self) -> int:
        """Bytes of one element."""
        return np.dtype(STORED[self.dtype]).itemsize

    @property
    def nbytes(self) -> int:
        return self.width * math.prod(self.shape)


def write_safetensors(
    path: Path, specs: Sequence[TensorSpec], values: Iterable[Raw], metadata: Mapping[str, str] | None = None
) -> str:
    """Writes the file `path` and hands it to the disk; returns its SHA-256 in hexadecimal.

    `values` has the tensor of each of `specs`, in that order, as `StoredTensor.raw` gives it. Specs stand widest type
    first, so that every tensor is aligned. Raises OSError.
    """
    digest = hashlib.sha256()
    with path.open("xb") as file:

        def put(data: bytes | memoryview) -> None:
            digest.update(data)
            file.write(data)

        put(_header(specs, metadata))
        for spec, value in zip(specs, values, strict=True):
            assert value.shape == spec.shape, spec.name
            assert value.dtype == STORED[spec.dtype], spec.name
            if value.size:
                put(np.ascontiguousarray(value).reshape(-1).view(np.uint8).data)
        file.flush()
        os.fsync(file.fileno())
    return digest.hexdigest()


def _header(specs: Sequence[TensorSpec], metadata: Mapping[str, str] | None) -> bytes:
    """Its length in 8 bytes, then the header itself, padded with spaces to a multiple of 8."""
    entries: dict[str, object] = {} if metadata is None else {"__metadata__": dict(metadata)}
    begin = 0
    for spec in specs:
        end = begin + spec.nbytes
        entries[spec.name] = {"dtype": spec.dtype, "shape": list(spec.shape), "data_offsets": [begin, end]}
        begin = end
    text = json.dumps(entries, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text
