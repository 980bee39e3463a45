"""How tensors of a Hugging Face checkpoint make up one parameter: joins, and their exact inverses."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
"""Values of any type: they are moved, never computed with, so that the bits of a bfloat16 do as well."""


class Layout(Protocol):
    """One way to make a parameter of `parts` tensors; `split` undoes `join`."""

    def join(self, parts: Sequence[Array]) -> Array: ...

    def split(self, whole: Array) -> list[Array]: ...


@dataclass(frozen=True)
class Same:
    """One tensor, as it is."""

    def join(self, parts: Sequence[Array]) -> Array:
        (part,) = parts
        return part

    def split(self, whole: Array) -> list[Array]:
        return [whole]


@dataclass(frozen=True)
class Rows:
    """Blocks of rows, one below the other; `sizes` rows each."""

    sizes: tuple[int, ...]

    def join(self, parts: Sequence[Array]) -> Array:
        return np.concatenate(parts)

    def split(self, whole: Array) -> list[Array]:
        return np.split(whole, np.cumsum(self.sizes)[:-1])


@dataclass(frozen=True)
class GroupedRows:
    """Rows of each tensor in `groups` equal runs; the first run of every tensor, `sizes` rows each, then the second."""

    groups: int
    sizes: tuple[int, ...]

    def join(self, parts: Sequence[Array]) -> Array:
        runs = [part.reshape(self.groups, -1, *part.shape[1:]) for part in parts]
        whole: Array = np.concatenate(runs, axis=1).reshape(-1, *parts[0].shape[1:])
        return whole

    def split(self, whole: Array) -> list[Array]:
        runs = whole.reshape(self.groups, -1, *whole.shape[1:])
        parts = np.split(runs, np.cumsum(self.sizes)[:-1], axis=1)
        return [part.reshape(-1, *whole.shape[1:]) for part in parts]


@dataclass(frozen=True)
class InterleavedRows:
    """Rows of two tensors (n, in) in turn: first0, second0, first1, … gives (2·n, in)."""

    def join(self, parts: Sequence[Array]) -> Array:
        return np.stack(parts, axis=1).reshape(-1, parts[0].shape[1])

    def split(self, whole: Array) -> list[Array]:
        return [whole[0::2], whole[1::2]]


@dataclass(frozen=True)
class StackedExperts:
    """`per_expert` tensors (out, in) of each expert, transposed, side by side, experts stacked: (E, in, Σ out)."""

    per_expert: int

    def join(self, parts: Sequence[Array]) -> Array:
        groups = [parts[start : start + self.per_expert] for start in range(0, len(parts), self.per_expert)]
        return np.stack([np.concatenate(group).T for group in groups])

    def split(self, whole: Array) -> list[Array]:
        return [part.T for expert in whole for part in np.split(expert, self.per_expert, axis=1)]
