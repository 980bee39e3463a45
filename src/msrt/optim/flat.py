"""All parameters of a model in one flat float32 vector: an update is a few calls, whatever the number of tensors."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import mindspore as ms
import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float32]

ALIGNMENT = 16
"""Elements (64 bytes): each parameter starts at a cache line, as a tensor of its own would."""


@dataclass(frozen=True, slots=True)
class Segment:
    """Where one parameter lies in the flat vector."""

    name: str
    shape: tuple[int, ...]
    start: int
    stop: int


class FlatParameters:
    """The parameters' float32 values in `values` (n,) and their gradients in `gradients` (n,), both numpy.

    Decayed parameters come first, in the given order: `values[:decayed]` is what weight decay applies to. float32
    parameters are rebound to views of `values`: changing `values` changes the model. Parameters of other types keep
    their storage; `values` is their float32 master copy, which `publish` writes back.
    """

    def __init__(self, parameters: Sequence[ms.Parameter], decays: Sequence[bool]) -> None:
        order = sorted(range(len(parameters)), key=lambda index: not decays[index])
        self._parameters = [parameters[index] for index in order]
        self._position = [order.index(index) for index in range(len(order))]
        self.segments, self.size = _laid_out(self._parameters)
        decayed = sum(decays)
        self.decayed = self.segments[decayed - 1].stop if decayed else 0
        self.values: Vector = np.zeros(self.size, np.float32)
        self.gradients: Vector = np.zeros(self.size, np.float32)
        self._masters = self._adopt()

    def __len__(self) -> int:
        return len(self.segments)

    def set_gradients(self, gradients: Sequence[ms.Tensor]) -> None:
        """Take one gradient per parameter, in the order the parameters were given in, as float32."""
        for part, gradient in self._matched(gradients):
            part[...] = gradient

    def add_gradients(self, gradients: Sequence[ms.Tensor]) -> None:
        """Add one gradient per parameter, in the same order, to those already there; summed in float32."""
        for part, gradient in self._matched(gradients):
            part += gradient

    def _matched(self, gradients: Sequence[ms.Tensor]) -> Iterator[tuple[Vector, Vector]]:
        for gradient, position in zip(gradients, self._position, strict=True):
            segment = self.segments[position]
            yield self.gradients[segment.start : segment.stop], gradient.astype(ms.float32).asnumpy().reshape(-1)

    def publish(self) -> None:
        """Write the master copies back to the parameters that are not float32."""
        for parameter, segment in self._masters:
            view = self.values[segment.start : segment.stop].reshape(segment.shape)
            parameter.set_data(ms.Tensor.from_numpy(view).astype(parameter.dtype))

    def _adopt(self) -> list[tuple[ms.Parameter, Segment]]:
        masters = []
        for parameter, segment in zip(self._parameters, self.segments, strict=True):
            view = self.values[segment.start : segment.stop].reshape(segment.shape)
            view[...] = parameter.astype(ms.float32).asnumpy()
            if parameter.dtype == ms.float32:
                parameter.set_data(ms.Tensor.from_numpy(view))
            else:
                masters.append((parameter, segment))
        return masters


def _laid_out(parameters: Sequence[ms.Parameter]) -> tuple[tuple[Segment, ...], int]:
    segments, start = [], 0
    for parameter in parameters:
        stop = start + int(np.prod(parameter.shape, dtype=np.int64))
        segments.append(Segment(parameter.name, tuple(parameter.shape), start, stop))
        start = -(-stop // ALIGNMENT) * ALIGNMENT
    return tuple(segments), start
