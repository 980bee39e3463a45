"""The file that a probe writes."""

import os
from collections.abc import Mapping
from pathlib import Path
from uuid import uuid4

from msmigrate.problems import UnreadableError
from msmigrate.yaml.source import shown_path
from msrt.ops.autograd import Array
from msrt.weights.safetensors_file import TensorSpec, write_safetensors


def write_output(path: Path, values: Mapping[str, Array]) -> None:
    """Writes float32 arrays as the safetensors file `path`, whole or not at all; an earlier file is replaced.

    Raises UnreadableError when it cannot be written.
    """
    specs = [TensorSpec(name, "F32", value.shape) for name, value in values.items()]
    temporary = path.with_name(f".{path.name}.{uuid4().hex}.tmp")
    try:
        try:
            write_safetensors(temporary, specs, values.values())
            os.replace(temporary, path)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        raise UnreadableError(f"{shown_path(str(path))} cannot be written: {error.strerror}.") from error
