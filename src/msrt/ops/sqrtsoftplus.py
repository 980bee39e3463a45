"""√softplus, a score function of routers."""

from typing import Any

import numpy as np
from mindspore import Tensor

from msrt.ops.autograd import Function, array, tensor

_SMALLEST = np.float32(1e-20)


def sqrt_softplus(x: Tensor) -> Tensor:
    """√ln(1 + exp(x)), any shape; exact and with a finite gradient where ln(1 + exp(x)) rounds to 0."""
    return _SqrtSoftplus.apply(x)


class _SqrtSoftplus(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        y = tensor(np.sqrt(np.logaddexp(np.float32(0), array(x))))
        ctx.save_for_backward(x, y)
        return y

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        x, y = (array(saved) for saved in ctx.saved_tensors)
        # The derivative is σ(x) / (2y), with σ(x) = exp(x - softplus(x)).
        return tensor(array(grad) * np.exp(x - y * y) / (2 * np.maximum(y, _SMALLEST)))
