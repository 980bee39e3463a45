"""RMSNorm as a layer."""

from mindspore import Tensor, nn

from msrt.nn.linear import empty_parameter
from msrt.ops.norm import rms_norm
from msrt.ops.precision import FLOAT32, cast


class RMSNorm(nn.Cell):
    """x / √(mean(x²) + eps) · weight over the last axis of size `width`."""

    precision = FLOAT32

    def __init__(self, width: int, eps: float) -> None:
        super().__init__()
        self.weight = empty_parameter(width)
        self.eps = eps

    def construct(self, x: Tensor) -> Tensor:
        """(..., width) gives the same shape."""
        dtype = self.precision.norm
        normed = rms_norm(cast(x, dtype), cast(self.weight, dtype), self.eps)
        return cast(cast(normed, dtype), self.precision.compute)
