"""Initial weights, decided by a parameter's name alone: the same for any build order and any sharding."""

import hashlib

import numpy as np
from mindspore import nn

from msrt.ops.autograd import Array, tensor


def initial_value(name: str, shape: tuple[int, ...], *, seed: int, std: float) -> Array:
    """The initial values of the parameter `name`, float32: norms 1, biases 0, everything else N(0, std²).

    Each name has a random stream of its own, made of `seed` and the name.
    """
    if name.endswith("norm.weight"):
        return np.ones(shape, np.float32)
    if name.endswith("bias"):
        return np.zeros(shape, np.float32)
    digest = int.from_bytes(hashlib.sha256(name.encode()).digest()[:16], "little")
    values: Array = np.random.default_rng([seed, digest]).standard_normal(shape, np.float32)
    values *= np.float32(std)
    return values


def initialise(cell: nn.Cell, *, seed: int, std: float) -> None:
    """Gives every parameter of `cell` its initial values, by its path in the cell."""
    for name, parameter in cell.parameters_and_names():
        parameter.set_data(tensor(initial_value(name, parameter.shape, seed=seed, std=std)))
