"""Whether a run fits into memory: refused before it allocates what cannot fit, explained when memory runs out."""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from msmigrate.problems import UserError
from msrt.config.resolve import Resolved

GIB = 2**30
BYTES_PER_PARAMETER = {"AdamW": 20, "Muon": 16}
"""By optimizer.type; float32 each: the value, AdamW's two moments or Muon's one, the step's gradient, and the gradient
as backward hands it over."""

GROUP_LIMIT = Path("/sys/fs/cgroup/memory.max")


def refuse_too_large(parameters: int, available: int | None, optimizer: str = "AdamW") -> None:
    """Raises UserError when training `parameters` takes more than `available` bytes; None: that is not known."""
    each = BYTES_PER_PARAMETER[optimizer]
    needed = parameters * each
    if available is None or needed <= available:
        return
    raise UserError(
        f"The model has {parameters:,} parameters, which take at least {needed / GIB:,.1f} GiB to train "
        f"({each} bytes each: value, gradients and optimizer moments, without activations); this "
        f"machine has {available / GIB:,.1f} GiB available. Lower model.hidden_size, model.num_hidden_layers, "
        "model.n_routed_experts or model.vocab_size."
    )


def available_memory() -> int | None:
    """Bytes that this process may still use: what the machine has left, or its control group's limit when lower.

    None where the system does not tell.
    """
    try:
        left = re.search(r"^MemAvailable: *(\d+) kB", Path("/proc/meminfo").read_text(), re.MULTILINE)
    except OSError:
        left = None
    known = [int(left[1]) * 1024] if left else []
    limit = GROUP_LIMIT.read_text().strip() if os.access(GROUP_LIMIT, os.R_OK) else "max"
    return min([*known, *([] if limit == "max" else [int(limit)])], default=None)


@contextmanager
def explained_shortage(numbers: Resolved) -> Iterator[None]:
    """Turns a failed allocation inside the block into a UserError with what to lower."""
    what = f"a micro-batch of {numbers.local_batch_size} × {numbers.seq_length} tokens"
    advice = (
        f"Lower training.local_batch_size (now {numbers.local_batch_size}), seq_length (now {numbers.seq_length}) or "
        "the size of the model."
    )
    with shortage_told(what, advice):
        yield


@contextmanager
def shortage_told(what: str, advice: str) -> Iterator[None]:
    """Turns a failed allocation inside the block, numpy's or MindSpore's, into a UserError on `what` was computed."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        if not isinstance(error, MemoryError) and not re.search("allocate memory|out of memory", str(error), re.I):
            raise
        raise UserError(f"Memory ran out with {what}{_asked_for(str(error))}. {advice}") from error


def out_of_memory(error: MemoryError) -> str:
    """A sentence on an allocation that failed where no other explains it."""
    return f"Memory ran out{_asked_for(str(error))}. Lower the sizes of the model or of its input."


def _asked_for(text: str) -> str:
    size = re.search(r"Unable to allocate ([\d.]+ \w+)", text)
    return f": {size[1]} could not be allocated" if size else ""
