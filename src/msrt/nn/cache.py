"""What attention layers remember of earlier positions, so that a new token costs one position."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from mindspore import Tensor, nn

from msrt.ops.autograd import Array, array, tensor


class Cache:
    """The tensors of one attention layer for all positions so far: keys and values, or the latents they come from."""

    def __init__(self) -> None:
        self._kept: list[Array] = []
        self._length = 0

    def extended(self, *new: Tensor) -> tuple[Tensor, ...]:
        """`new` (batch, new positions, …), each behind what was given before: (batch, all positions, …)."""
        values = [array(item) for item in new]
        length = self._length + values[0].shape[1]
        if not self._kept or length > self._kept[0].shape[1]:
            self._grow(values, 2 * length)
        for kept, item in zip(self._kept, values, strict=True):
            kept[:, self._length : length] = item
        self._length = length
        return tuple(tensor(kept[:, :length]) for kept in self._kept)

    def _grow(self, values: list[Array], capacity: int) -> None:
        """Room for `capacity` positions; doubling it keeps the copies few."""
        old = self._kept
        self._kept = [np.empty((item.shape[0], capacity, *item.shape[2:]), item.dtype) for item in values]
        for kept, item in zip(self._kept, old, strict=False):
            kept[:, : self._length] = item[:, : self._length]


class Memory:
    """The caches of all attention layers of a model, for one sequence."""

    def __init__(self, model: nn.Cell) -> None:
        layers: list[Any] = [cell for _, cell in model.cells_and_names() if hasattr(cell, "kv_cache")]
        self._caches = [(layer, Cache()) for layer in layers]

    @contextmanager
    def used(self) -> Iterator[None]:
        """In the block a call of the model sees the positions of earlier blocks, and must bring those behind them."""
        for layer, cache in self._caches:
            layer.kv_cache = cache
        try:
            yield
        finally:
            for layer, _ in self._caches:
                layer.kv_cache = None
