"""All parameters of a model in one flat float32 vector: an update is a few calls, whatever the number of tensors."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import mindspore as ms
import numpy as np
from numpy.typing import NDArray

from msrt.ops.precision import Dtype, hold, rounded

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
    decays: bool
    """Whether weight decay applies to it."""


@dataclass(frozen=True)
class Slot:
    """One float32 value for every element of some parameters, such as a moment: what a checkpoint keeps of them.

    `vector` has the values from element `start` of the flat vector on; `kind` is the first part of the tensors' names.
    """

    kind: str
    vector: Vector
    segments: Sequence[Segment]
    start: int = 0

    def parts(self) -> Iterator[tuple[str, Vector]]:
        """The tensor of each parameter by its name in a checkpoint, as a view: what is written to it is in the slot."""
        for segment in self.segments:
            span = slice(segment.start - self.start, segment.stop - self.start)
            yield f"{self.kind}.{segment.name}", self.vector[span].reshape(segment.shape)


class FlatParameters:
    """The parameters' float32 values in `values` (n,) and their gradients in `gradients` (n,), both numpy.

    Parameters that are not `apart` come first, `values[:joint]`, and of these the decayed ones, in the given order:
    `values[:decayed]` is what a decay of the joint ones applies to. Parameters that are to hold float32 (`held`; None:
    all of them) are rebound to views of `values`: changing `values` changes the model. Those of 16 bits have a storage
    of their own; `values` is their float32 master copy, rounded at first, which `publish` writes back.
    """

    def __init__(
        self,
        parameters: Sequence[ms.Parameter],
        decays: Sequence[bool],
        apart: Sequence[bool] | None = None,
        held: Sequence[Dtype] | None = None,
    ) -> None:
        alone = [False] * len(parameters) if apart is None else apart
        order = sorted(range(len(parameters)), key=lambda index: (alone[index], not decays[index]))
        self._parameters = [parameters[index] for index in order]
        self._position = [order.index(index) for index in range(len(order))]
        self.segments, self.size = _laid_out(self._parameters, [decays[index] for index in order])
        joint = self.segments[: len(parameters) - sum(alone)]
        self.apart = self.segments[len(joint) :]
        self.joint = self.apart[0].start if self.apart else self.size
        self.decayed = max((segment.stop for segment in joint if segment.decays), default=0)
        self.values: Vector = np.zeros(self.size, np.float32)
        self.gradients: Vector = np.zeros(self.size, np.float32)
        types: Sequence[Dtype] = ["float32"] * len(parameters) if held is None else held
        self._masters = self._adopt([types[index] for index in order])
        self.publish()

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
        """Write the master copies back to the parameters of 16 bits."""
        for parameter, segment, dtype in self._masters:
            hold(parameter, self._view(segment), dtype)

    @property
    def types(self) -> dict[str, Dtype]:
        """What each parameter holds between updates, by its name."""
        sixteen = {segment.name: dtype for _, segment, dtype in self._masters}
        return {segment.name: sixteen.get(segment.name, "float32") for segment in self.segments}

    @property
    def values_by_name(self) -> dict[str, Vector]:
        """Views of `values`, of each parameter's shape; call `publish` after changes."""
        return {segment.name: self._view(segment) for segment in self.segments}

    @property
    def masters(self) -> Slot:
        """The master copies of the parameters of 16 bits; no parts where all are float32."""
        return Slot("main_param", self.values, [segment for _, segment, _ in self._masters])

    def _view(self, segment: Segment) -> Vector:
        return self.values[segment.start : segment.stop].reshape(segment.shape)

    def _adopt(self, types: Sequence[Dtype]) -> list[tuple[ms.Parameter, Segment, Dtype]]:
        masters: list[tuple[ms.Parameter, Segment, Dtype]] = []
        for parameter, segment, dtype in zip(self._parameters, self.segments, types, strict=True):
            view = self._view(segment)
            view[...] = rounded(parameter.asnumpy(), dtype)
            if dtype == "float32":
                parameter.set_data(ms.Tensor.from_numpy(view))
            else:
                masters.append((parameter, segment, dtype))
        return masters


def _laid_out(parameters: Sequence[ms.Parameter], decays: Sequence[bool]) -> tuple[tuple[Segment, ...], int]:
    segments, start = [], 0
    for parameter, decay in zip(parameters, decays, strict=True):
        stop = start + int(np.prod(parameter.shape, dtype=np.int64))
        segments.append(Segment(parameter.name, tuple(parameter.shape), start, stop, decay))
        start = -(-stop // ALIGNMENT) * ALIGNMENT
    return tuple(segments), start
