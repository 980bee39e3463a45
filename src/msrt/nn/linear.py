"""Layers that own one matrix: linear map, token embedding."""

import numpy as np
from mindspore import Parameter, Tensor, nn

from msrt.ops.autograd import tensor
from msrt.ops.basic import embedding, linear
from msrt.ops.precision import FLOAT32, cast


def empty_parameter(*shape: int, trainable: bool = True) -> Parameter:
    """A float32 parameter of zeros, to be filled by `nn.init` or an import."""
    return Parameter(tensor(np.zeros(shape, np.float32)), requires_grad=trainable)


class Linear(nn.Cell):
    """x · weightᵀ + bias; `weight` is (out_features, in_features), `bias` (out_features,), None for a layer without."""

    precision = FLOAT32

    def __init__(self, in_features: int, out_features: int, *, bias: bool = False) -> None:
        super().__init__()
        self.weight = empty_parameter(out_features, in_features)
        self.bias = empty_parameter(out_features) if bias else None

    def construct(self, x: Tensor) -> Tensor:
        """(..., in_features) gives (..., out_features)."""
        dtype = self.precision.compute
        out = cast(linear(x, cast(self.weight, dtype)), dtype)
        return out if self.bias is None else cast(out + cast(self.bias, dtype), dtype)


class VocabEmbedding(nn.Cell):
    """One row per token of the vocabulary; `weight` is (vocab_size, hidden_size)."""

    precision = FLOAT32

    def __init__(self, vocab_size: int, hidden_size: int) -> None:
        super().__init__()
        self.weight = empty_parameter(vocab_size, hidden_size)

    def construct(self, ids: Tensor) -> Tensor:
        """(batch, seq) int gives (batch, seq, hidden_size)."""
        return cast(embedding(ids, self.weight), self.precision.compute)
