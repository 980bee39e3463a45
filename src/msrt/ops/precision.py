"""16-bit types: which part of a model has which, and values rounded to them.

A device that computes in 16 bits gets tensors of these types. On a CPU, whose kernels know no bfloat16, tensors stay
float32 and hold values rounded to the type, to nearest and ties to even, wherever a 16-bit run would round: products
of rounded values, summed in float32, come out as such a run has them but for the order of sums.
"""

import math
from dataclasses import dataclass
from typing import Any, Literal

import mindspore as ms
import numpy as np
from mindspore import Parameter, Tensor, ops

from msrt.ops.autograd import Array, Function, array, tensor
from msrt.ops.device import on_cpu

Dtype = Literal["float32", "bfloat16", "float16"]

BLOCK = 1 << 16
"""Elements rounded at once, so that the steps of rounding meet in the processor's cache."""


@dataclass(frozen=True)
class Precision:
    """The types that a pynative.yaml's `model:` asks for; the loss is always float32."""

    params: Dtype = "float32"
    """What matrices hold between updates; norms, biases and the router's matrix are float32."""
    compute: Dtype = "float32"
    """Matrix products, attention, experts, and the residual stream."""
    norm: Dtype = "float32"
    softmax: Dtype = "float32"
    """Attention's."""
    rotary: Dtype = "float32"
    router: Dtype = "float32"

    def note(self) -> str | None:
        """One sentence on the arithmetic of each part on this device; None when all of it is float32."""
        if self == Precision():
            return None
        parts = {
            "matrix products, attention and the residual stream": self.compute, "stored matrices": self.params,
            "norms": self.norm, "attention's softmax": self.softmax, "rotary positions": self.rotary,
            "router": self.router, "loss, sums and optimizer": "float32",
        }  # fmt: skip
        told = {dtype: [part for part, its in parts.items() if its == dtype] for dtype in parts.values()}
        sentence = "; ".join(f"{dtype}: {', '.join(named)}" for dtype, named in told.items())
        by_hand = ". 16-bit values are rounded as such, and computed with in float32, which is what this device has"
        return f"precision: {sentence}{by_hand if on_cpu() else ''}."


FLOAT32 = Precision()


def cast(x: Tensor, dtype: Dtype) -> Tensor:
    """`x` as `dtype`, its gradient as what `x` was; of a float32 tensor on a CPU the same with rounded values."""
    if not on_cpu():
        return ops.cast(x, getattr(ms, dtype))
    return x if dtype == "float32" else _Rounded.apply(x, dtype)


class _Rounded(Function):
    # The gradient that arrives is one of a 16-bit tensor.
    @staticmethod
    def forward(ctx: Any, x: Tensor, dtype: Dtype) -> Tensor:
        ctx.dtype = dtype
        return tensor(rounded(array(x), dtype))

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        return tensor(rounded(array(grad), ctx.dtype)), None


def hold(parameter: Parameter, values: Array, dtype: Dtype) -> None:
    """Gives `parameter` a copy of float32 `values` in the 16-bit type `dtype`, as this device has it."""
    if on_cpu():
        parameter.set_data(tensor(rounded(values, dtype)))
        return
    parameter.set_dtype(getattr(ms, dtype))
    parameter.set_data(ops.cast(tensor(values), parameter.dtype))


def rounded(values: Array, dtype: Dtype) -> Array:
    """A copy of float32 `values`, each the nearest one of `dtype`; what lies beyond its range becomes infinite."""
    copy = np.array(values, np.float32, order="C")
    round_in_place(copy, dtype)
    return copy


def round_in_place(values: Array, dtype: Dtype) -> None:
    """The same in `values`, which must be contiguous; nothing for float32."""
    flat = values.reshape(-1)
    if dtype == "float16":
        with np.errstate(over="ignore"):
            flat[...] = flat.astype(np.float16)
    elif dtype == "bfloat16":
        for start in range(0, flat.size, BLOCK):
            _round_block(flat[start : start + BLOCK])


def _round_block(values: Array) -> None:
    """To bfloat16, the upper half of a float32: half a step is added to the bits, less one where that would end odd."""
    bits = values.view(np.uint32)
    carry = bits >> np.uint32(16)
    carry &= np.uint32(1)
    carry += np.uint32(0x7FFF)
    if not math.isfinite(float(np.dot(values, values))):
        none = np.isnan(values)  # a carry could make them numbers, and the loss of the lower half infinities
        carry[none] = 0
        bits[none] |= np.uint32(0x00400000)
    bits += carry
    bits &= np.uint32(0xFFFF0000)
