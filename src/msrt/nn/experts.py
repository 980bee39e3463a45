"""The routed experts: SwiGLU MLPs whose matrices are stacked."""

import numpy as np
from mindspore import Tensor, nn
from numpy.typing import NDArray

from msrt.nn.linear import empty_parameter
from msrt.ops.dispatch import grouped_matmul
from msrt.ops.precision import FLOAT32, cast
from msrt.ops.swiglu import swiglu


class Experts(nn.Cell):
    """`weight1` (experts, hidden, 2·ffn) with the gate lanes before the up lanes, `weight2` (experts, ffn, hidden)."""

    precision = FLOAT32

    def __init__(self, num_experts: int, hidden_size: int, intermediate_size: int) -> None:
        super().__init__()
        self.weight1 = empty_parameter(num_experts, hidden_size, 2 * intermediate_size)
        self.weight2 = empty_parameter(num_experts, intermediate_size, hidden_size)

    def construct(self, x: Tensor, counts: NDArray[np.int64]) -> Tensor:
        """Rows (slots, hidden) sorted by expert, `counts` (experts,) of them each: (slots, hidden)."""
        dtype = self.precision.compute
        wide = cast(grouped_matmul(x, cast(self.weight1, dtype), counts), dtype)
        gated = cast(swiglu(wide, "halves"), dtype)
        return cast(grouped_matmul(gated, cast(self.weight2, dtype), counts), dtype)
