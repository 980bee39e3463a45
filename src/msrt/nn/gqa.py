"""Grouped-query attention (Ainslie et al., 2023): groups of query heads share a key and a value head."""

from dataclasses import dataclass

from mindspore import Tensor, nn

from msrt.nn.cache import Cache
from msrt.nn.core_attention import CoreAttention
from msrt.nn.linear import Linear
from msrt.nn.norm import RMSNorm
from msrt.nn.rotary import RotaryEmbedding
from msrt.ops.attention import split_last


@dataclass(frozen=True)
class GQASpec:
    """Shape of one attention layer. As many key-value heads as heads: plain multi-head attention."""

    hidden_size: int
    num_attention_heads: int
    num_key_value_heads: int
    head_dim: int
    qk_norm_eps: float | None
    """Epsilon of the norms on each head's query and key; None leaves the norms out."""
    qkv_bias: bool = False
    proj_bias: bool = False

    @property
    def heads_per_group(self) -> int:
        return self.num_attention_heads // self.num_key_value_heads

    @property
    def group_widths(self) -> tuple[int, int, int]:
        """Rows of `linear_qkv` for one group: its queries, its key, its value."""
        return self.heads_per_group * self.head_dim, self.head_dim, self.head_dim

    @property
    def softmax_scale(self) -> float:
        return float(self.head_dim**-0.5)


class SelfAttention(nn.Cell):
    """Self-attention of one layer; `linear_qkv` gives [queries | key | value] of the first group, then the next."""

    def __init__(self, spec: GQASpec) -> None:
        super().__init__()
        self.spec = spec
        self.kv_cache: Cache | None = None
        self.linear_qkv = Linear(
            spec.hidden_size, spec.num_key_value_heads * sum(spec.group_widths), bias=spec.qkv_bias
        )
        self.q_layernorm = self.k_layernorm = None
        if spec.qk_norm_eps is not None:
            self.q_layernorm = RMSNorm(spec.head_dim, spec.qk_norm_eps)
            self.k_layernorm = RMSNorm(spec.head_dim, spec.qk_norm_eps)
        self.apply_rotary_pos_emb = RotaryEmbedding("halves")
        self.core_attention = CoreAttention(spec.softmax_scale)
        self.linear_proj = Linear(spec.num_attention_heads * spec.head_dim, spec.hidden_size, bias=spec.proj_bias)

    def construct(self, x: Tensor, cos: Tensor, sin: Tensor, hidden: Tensor | None) -> Tensor:
        """(batch, seq, hidden_size), tables (batch, seq, head_dim / 2): `x`'s shape; `hidden` as in the core."""
        spec, (batch, seq, _) = self.spec, x.shape
        groups = self.linear_qkv(x).reshape((batch, seq, spec.num_key_value_heads, -1))
        query, key, value = split_last(groups, spec.group_widths)
        query = query.reshape((batch, seq, -1, spec.head_dim))
        if self.q_layernorm is not None and self.k_layernorm is not None:
            query, key = self.q_layernorm(query), self.k_layernorm(key)
        query = self.apply_rotary_pos_emb(query, cos, sin)
        key = self.apply_rotary_pos_emb(key, cos, sin)
        if self.kv_cache is not None:
            key, value = self.kv_cache.extended(key, value)
        attended = self.core_attention(query, key, value, hidden)
        return self.linear_proj(attended.reshape((batch, seq, -1)))
