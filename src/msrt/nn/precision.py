"""The types of a network's parts, given to it after it is built."""

from collections.abc import Sequence

from mindspore import nn

from msrt.ops.precision import Dtype, Precision


def set_precision(network: nn.Cell, precision: Precision) -> None:
    """From now on every layer of `network` that has a `precision` computes with this one; they start in float32."""
    for _, cell in network.cells_and_names():
        if hasattr(cell, "precision"):
            cell.precision = precision


def held_type(name: str, shape: Sequence[int], precision: Precision) -> Dtype:
    """The type of a parameter between updates: `precision.params` for matrices, float32 for the router's and vectors.

    MindFormers 2.1 keeps them so. As products round their matrices anyway, a run whose params and compute types agree
    has the gradients of one with float32 parameters, bit for bit.
    """
    return precision.params if len(shape) > 1 and not name.endswith("router.weight") else "float32"
