"""The part of attention that has no parameters, as a layer that recompute patterns can name."""

from mindspore import Tensor, nn

from msrt.ops.attention import causal_attention
from msrt.ops.precision import FLOAT32


class CoreAttention(nn.Cell):
    """Causal softmax attention over all heads."""

    precision = FLOAT32

    def __init__(self, scale: float) -> None:
        super().__init__()
        self.scale = scale

    def construct(self, query: Tensor, key: Tensor, value: Tensor, hidden: Tensor | None) -> Tensor:
        """(batch, seq, heads, d), keys and values (batch, seq, groups, d or dv): (batch, seq, heads, dv)."""
        return causal_attention(query, key, value, self.scale, hidden, self.precision)
