"""The base of operators with a hand-written gradient, and their zero-copy way between tensors and numpy arrays."""

from typing import Any

import numpy as np
from mindspore import Tensor
from mindspore.common._grad_function import _Function
from numpy.typing import NDArray

Array = NDArray[np.float32]
Ints = NDArray[np.integer[Any]]


class Function(_Function):
    """An operator with its own backward. Tensors that backward needs go through `ctx.save_for_backward`.

    Only so do recomputation and sharded weights see (and replace) what is kept between forward and backward.
    """


def array(tensor: Tensor) -> NDArray[Any]:
    """The values of `tensor` as a numpy array that shares its memory on a CPU; write only to a tensor just made."""
    values: NDArray[Any] = tensor.asnumpy()
    return values


def tensor(values: NDArray[Any]) -> Tensor:
    """A tensor over the memory of `values`, which must not be written to afterwards; copied only if not contiguous."""
    return Tensor.from_numpy(np.ascontiguousarray(values))
