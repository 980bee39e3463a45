"""Multi-head latent attention (DeepSeek-V2, section 2.1): queries and keys from low-rank latents."""

from dataclasses import dataclass

from mindspore import Tensor, nn

from msrt.nn.cache import Cache
from msrt.nn.core_attention import CoreAttention
from msrt.nn.linear import Linear
from msrt.nn.norm import RMSNorm
from msrt.nn.rotary import RotaryEmbedding
from msrt.ops.attention import join_shared_key, split_last


@dataclass(frozen=True)
class MLASpec:
    """Shape of one attention layer. `q_lora_rank` None: queries come straight from the hidden state."""

    hidden_size: int
    num_attention_heads: int
    q_lora_rank: int | None
    kv_lora_rank: int
    qk_nope_head_dim: int
    qk_rope_head_dim: int
    v_head_dim: int
    softmax_scale: float
    latent_norm_eps: float | None
    """Epsilon of the norms on the latents; None leaves the norms out."""

    @property
    def qk_head_dim(self) -> int:
        return self.qk_nope_head_dim + self.qk_rope_head_dim

    @property
    def query_width(self) -> int:
        """Columns of the query block of `linear_qkv`: the query latent, or all heads' queries."""
        return self.q_lora_rank or self.num_attention_heads * self.qk_head_dim


class MLASelfAttention(nn.Cell):
    """Self-attention of one layer; `linear_qkv` gives [query latent | key-value latent | rotary key] at once."""

    def __init__(self, spec: MLASpec) -> None:
        super().__init__()
        self.spec = spec
        self.kv_cache: Cache | None = None
        heads = spec.num_attention_heads
        self.linear_qkv = Linear(spec.hidden_size, spec.query_width + spec.kv_lora_rank + spec.qk_rope_head_dim)
        self.q_layernorm = self.linear_qb = self.k_layernorm = None
        if spec.q_lora_rank is not None:
            self.linear_qb = Linear(spec.q_lora_rank, heads * spec.qk_head_dim)
        if spec.latent_norm_eps is not None:
            self.k_layernorm = RMSNorm(spec.kv_lora_rank, spec.latent_norm_eps)
            if spec.q_lora_rank is not None:
                self.q_layernorm = RMSNorm(spec.q_lora_rank, spec.latent_norm_eps)
        self.linear_kvb = Linear(spec.kv_lora_rank, heads * (spec.qk_nope_head_dim + spec.v_head_dim))
        self.apply_rotary_emb_q = RotaryEmbedding("interleaved")
        self.apply_rotary_emb_k = RotaryEmbedding("interleaved")
        self.core_attention = CoreAttention(spec.softmax_scale)
        self.linear_proj = Linear(heads * spec.v_head_dim, spec.hidden_size)

    def construct(self, x: Tensor, cos: Tensor, sin: Tensor, hidden: Tensor | None) -> Tensor:
        """(batch, seq, hidden_size), tables (batch, seq, rope / 2), `hidden` as in `causal_attention`: `x`'s shape."""
        spec, (batch, seq, _) = self.spec, x.shape
        query, latent, rotary_key = split_last(
            self.linear_qkv(x), (spec.query_width, spec.kv_lora_rank, spec.qk_rope_head_dim)
        )
        if self.q_layernorm is not None:
            query = self.q_layernorm(query)
        if self.linear_qb is not None:
            query = self.linear_qb(query)
        if self.k_layernorm is not None:
            latent = self.k_layernorm(latent)
        query = self.apply_rotary_emb_q(query.reshape((batch, seq, -1, spec.qk_head_dim)), cos, sin)
        rotary_key = self.apply_rotary_emb_k(rotary_key.reshape((batch, seq, 1, -1)), cos, sin)
        if self.kv_cache is not None:
            latent, rotary_key = self.kv_cache.extended(latent, rotary_key)
        seen = latent.shape[1]
        key_value = self.linear_kvb(latent).reshape((batch, seen, -1, spec.qk_nope_head_dim + spec.v_head_dim))
        key, value = split_last(key_value, (spec.qk_nope_head_dim, spec.v_head_dim))
        attended = self.core_attention(query, join_shared_key(key, rotary_key), value, hidden)
        return self.linear_proj(attended.reshape((batch, seq, -1)))
