"""Where the first value that is not finite comes from: a pass done again with every module watched."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import mindspore as ms
import numpy as np
from mindspore import nn

from msrt.ops.autograd import array


def bad_parameter(parameters: Sequence[ms.Parameter]) -> str | None:
    """What to tell of the first parameter that holds a value that is not finite; None when none does."""
    return next((f"in {item.name} itself, before the pass" for item in parameters if not _finite(item)), None)


def bad_gradient(parameters: Sequence[ms.Parameter], gradients: Sequence[ms.Tensor]) -> str | None:
    """The same of gradients, in the order in which backward comes to them: from the loss to the embedding."""
    pairs = zip(reversed(parameters), reversed(gradients), strict=True)
    return next((f"in the gradient of {item.name}" for item, gradient in pairs if not _finite(gradient)), None)


@contextmanager
def watched(model: object) -> Iterator[Callable[[], str | None]]:
    """In the block every module of `model` is watched; what is yielded tells of the first bad value seen so far.

    Modules are told of from the inside out. An input that is bad while every module before it was not comes from what
    the surrounding module does between its parts. A model that is no cell has no modules to watch.
    """
    seen: list[str] = []

    def on_input(name: str) -> Callable[..., None]:
        return lambda cell, inputs: None if seen or _finite(inputs) else seen.append(f"in the input of {name}")

    def on_output(name: str) -> Callable[..., None]:
        return lambda cell, inputs, out: None if seen or _finite(out) else seen.append(f"in the output of {name}")

    cells: list[tuple[str, Any]] = list(model.cells_and_names()) if isinstance(model, nn.Cell) else []
    hooks = []
    for path, cell in cells:
        name = path or "the model"
        hooks += [cell.register_forward_pre_hook(on_input(name)), cell.register_forward_hook(on_output(name))]
    try:
        yield lambda: seen[0] if seen else None
    finally:
        for hook in hooks:
            hook.remove()


def _finite(value: object) -> bool:
    """Whether all floating-point tensors in a nest of tuples, lists and dictionaries are finite."""
    if isinstance(value, dict):
        return _finite(tuple(value.values()))
    if isinstance(value, tuple | list):
        return all(_finite(item) for item in value)
    if not isinstance(value, ms.Tensor) or not value.is_floating_point():
        return True
    return bool(np.isfinite(array(value.astype(ms.float32))).all())
