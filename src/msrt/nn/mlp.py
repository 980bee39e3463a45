"""The dense SwiGLU MLP, also the shape of the shared experts."""

from mindspore import Tensor, nn

from msrt.nn.linear import Linear
from msrt.ops.precision import FLOAT32, cast
from msrt.ops.swiglu import swiglu


class MLP(nn.Cell):
    """down(silu(gate(x)) · up(x)); `linear_fc1` has rows gate0, up0, gate1, up1, … as MindFormers stores them."""

    precision = FLOAT32

    def __init__(self, hidden_size: int, intermediate_size: int) -> None:
        super().__init__()
        self.linear_fc1 = Linear(hidden_size, 2 * intermediate_size)
        self.linear_fc2 = Linear(intermediate_size, hidden_size)

    def construct(self, x: Tensor) -> Tensor:
        """(..., hidden_size) gives the same shape."""
        return self.linear_fc2(cast(swiglu(self.linear_fc1(x), "interleaved"), self.precision.compute))
