"""The file that a probe writes."""

import os
from collections.abc import Mapping
from pathlib import Path
from uuid import uuid4

from msmigrate.problems import UnreadableError, UsageError
from msmigrate.yaml.source import shown_path
from msrt.ops.autograd import Array
from msrt.weights.safetensors_file import TensorSpec, write_safetensors


def refuse_what_is_read(target: Path, given: Path, config: str | None, model: Path) -> None:
    """Raises UsageError when writing `target` would replace the input, the config, or a file of the model's folder."""
    if not target.exists():
        return
    shown = shown_path(str(target))
    read = [("--input", given), *([] if config is None else [("--config", Path(config))])]
    for option, path in read:
        if path.exists() and target.samefile(path):
            raise UsageError(f"-o {shown} is the file of {option}, which it would replace; name another one.")
    # Of a link the link is replaced, not what it points at.
    if target.parent.resolve().is_relative_to(model.resolve()):
        raise UsageError(f"-o {shown} is a file of the model's folder {shown_path(str(model))}; name another one.")


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
