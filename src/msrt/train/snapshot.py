"""What a checkpoint holds of a run: the tensors of its two files, taken when they are asked for."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from msrt.models.api import TrainableModel
from msrt.ops.autograd import Array, array
from msrt.ops.precision import Dtype, rounded
from msrt.optim.api import Optimizer
from msrt.weights.safetensors import Raw
from msrt.weights.safetensors_file import TensorSpec

STORED: dict[Dtype, str] = {"float32": "F32", "bfloat16": "BF16", "float16": "F16"}
"""What safetensors calls the types."""


@dataclass(frozen=True)
class LiveTensor:
    """A tensor of a run as it is at the moment of `take()`, which may be a view that training writes to."""

    spec: TensorSpec
    take: Callable[[], Raw]


def weight_tensors(model: TrainableModel, optimizer: Optimizer) -> list[LiveTensor]:
    """All parameters in the types that they hold between updates, the widest first; the rest is float32."""
    values, types = optimizer.flat.values_by_name, optimizer.flat.types
    found = []
    for name, parameter in model.parameters_and_names():
        spec = TensorSpec(name, STORED[types.get(name, "float32")], tuple(parameter.shape))
        if name in values:
            found.append(LiveTensor(spec, _held(values[name], types[name])))
        else:
            found.append(LiveTensor(spec, partial(array, parameter)))
    return sorted(found, key=lambda item: -item.spec.width)


def optimizer_tensors(optimizer: Optimizer) -> list[LiveTensor]:
    """What the optimizer remembers, and the master copies of parameters of 16 bits."""
    return list(_slots(optimizer))


def _slots(optimizer: Optimizer) -> Iterator[LiveTensor]:
    for slot in (*optimizer.slots, optimizer.flat.masters):
        for name, values in slot.parts():
            yield LiveTensor(TensorSpec(name, "F32", values.shape), _held(values, "float32"))


def _held(values: Array, dtype: Dtype) -> Callable[[], Raw]:
    """Takes float32 `values` as `dtype` stores them."""
    if dtype == "float32":
        return lambda: values
    if dtype == "float16":
        return lambda: rounded(values, dtype).astype(np.float16)
    return lambda: (rounded(values, dtype).view(np.uint32) >> 16).astype(np.uint16)  # bfloat16: the upper half
