"""Tables of parameter names: each row binds one kind of parameter to the Hugging Face tensors it is made of."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from msrt.weights.layout import Layout


@dataclass(frozen=True)
class NameRow:
    """`ours` and `hub` are name patterns with `{layer}`, and `{expert}` in `hub`; the row stands once per layer."""

    ours: str
    hub: tuple[str, ...]
    layout: Layout
    layers: tuple[int, ...] = (0,)
    experts: int = 1
    copies: tuple[str, ...] = ()
    """Tensors that a file may hold besides, each a copy of the only one in `hub`."""
    ignored: tuple[str, ...] = ()
    """Beginnings of the names of tensors that a file may hold besides and that the model has no use for."""

    def bindings(self) -> Iterator["Binding"]:
        """The row with numbers for its placeholders; tensors of one expert stand together."""
        for layer in self.layers:
            hub = tuple(name.format(layer=layer, expert=e) for e in range(self.experts) for name in self.hub)
            yield Binding(self.ours.format(layer=layer), hub, self.layout)


@dataclass(frozen=True)
class Binding:
    """The parameter `ours` is `layout.join` of the tensors `hub`."""

    ours: str
    hub: tuple[str, ...]
    layout: Layout


def to_hub(rows: Iterable[NameRow], values: Mapping[str, NDArray[np.float32]]) -> dict[str, NDArray[np.float32]]:
    """`values` (parameters or their gradients, by PyNative name) as Hugging Face tensors; absent names are left out."""
    return {
        name: part
        for row in rows
        for binding in row.bindings()
        if binding.ours in values
        for name, part in zip(binding.hub, binding.layout.split(values[binding.ours]), strict=True)
    }
