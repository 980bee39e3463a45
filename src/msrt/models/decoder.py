"""A decoder of pre-norm layers; each gets its attention and its MLP from the family."""

from collections.abc import Callable

from mindspore import Tensor, nn

from msrt.models.config import DecoderConfig
from msrt.nn.linear import VocabEmbedding, empty_parameter
from msrt.nn.mlp import MLP
from msrt.nn.moe import MoE, MoESpec, MoEStats
from msrt.nn.norm import RMSNorm
from msrt.ops.basic import linear
from msrt.ops.cross_entropy import linear_cross_entropy
from msrt.ops.precision import FLOAT32, cast

Attention = Callable[[], nn.Cell]
"""Makes the self-attention of one layer: a cell called with (x, cos, sin, hidden), as `MLASelfAttention` is."""


class Embedding(nn.Cell):
    """Token ids to hidden states."""

    def __init__(self, vocab_size: int, hidden_size: int) -> None:
        super().__init__()
        self.word_embeddings = VocabEmbedding(vocab_size, hidden_size)

    def construct(self, input_ids: Tensor) -> Tensor:
        """(batch, seq) int gives (batch, seq, hidden)."""
        return self.word_embeddings(input_ids)


class DecoderLayer(nn.Cell):
    """h = x + attention(norm(x)); h + mlp(norm(h))."""

    precision = FLOAT32

    def __init__(self, config: DecoderConfig, attention: nn.Cell, moe: MoESpec | None) -> None:
        super().__init__()
        self.has_experts = moe is not None
        self.input_layernorm = RMSNorm(config.hidden_size, config.rms_norm_eps)
        self.self_attention = attention
        self.pre_mlp_layernorm = RMSNorm(config.hidden_size, config.rms_norm_eps)
        self.mlp = MLP(config.hidden_size, config.intermediate_size) if moe is None else MoE(moe)

    def construct(
        self, x: Tensor, cos: Tensor, sin: Tensor, hidden: Tensor | None, history: Tensor | None
    ) -> tuple[Tensor, ...]:
        """The new hidden state (batch, seq, hidden), followed by the fields of `MoEStats` in a layer with experts.

        `cos`, `sin`, `hidden` as in the attention; `history` as in `MoE`, None in a dense layer. All in and out are
        tensors, so that a layer can be recomputed.
        """
        dtype = self.precision.compute
        x = cast(x + self.self_attention(self.input_layernorm(x), cos, sin, hidden), dtype)
        if not self.has_experts:
            return (cast(x + self.mlp(self.pre_mlp_layernorm(x)), dtype),)
        out, stats = self.mlp(self.pre_mlp_layernorm(x), history)
        return (cast(x + out, dtype), *stats)


class Decoder(nn.Cell):
    """All layers and the norm behind the last."""

    def __init__(self, config: DecoderConfig, attention: Attention) -> None:
        super().__init__()
        self.layers = nn.CellList(
            [
                DecoderLayer(config, attention(), config.moe if layer in config.moe_layers else None)
                for layer in range(config.num_hidden_layers)
            ]
        )
        self.final_layernorm = RMSNorm(config.hidden_size, config.rms_norm_eps)

    def construct(
        self, x: Tensor, cos: Tensor, sin: Tensor, hidden: Tensor | None, histories: dict[int, Tensor]
    ) -> tuple[Tensor, list[Tensor], dict[int, MoEStats]]:
        """The normed state (batch, seq, hidden), the state after each layer, and the stats of layers with experts."""
        states: list[Tensor] = []
        stats: dict[int, MoEStats] = {}
        for number, layer in enumerate(self.layers):
            x, *told = layer(x, cos, sin, hidden, histories.get(number))
            states.append(x)
            if told:
                stats[number] = MoEStats(*told)
        return self.final_layernorm(x), states, stats


class OutputLayer(nn.Cell):
    """The output matrix; `weight` is (vocab, hidden), None when the embedding's is used in its place."""

    precision = FLOAT32

    def __init__(self, vocab_size: int, hidden_size: int, *, tied: bool) -> None:
        super().__init__()
        self.weight = None if tied else empty_parameter(vocab_size, hidden_size)

    def construct(
        self, x: Tensor, tied: Tensor | None, targets: Tensor | None = None, shares: Tensor | None = None
    ) -> Tensor:
        """Logits (batch, seq, vocab) of `x` (batch, seq, hidden); with `targets` and `shares` (batch · seq,) the loss.

        The loss is Σ share · cross entropy, a scalar. `tied` is the embedding's matrix, None for a layer with its own.
        """
        dtype = self.precision.compute
        weight = cast(tied if self.weight is None else self.weight, dtype)
        if targets is None or shares is None:
            return cast(cast(linear(x, weight), dtype), "float32")
        return linear_cross_entropy(x.reshape((-1, x.shape[-1])), weight, targets, shares, dtype)
