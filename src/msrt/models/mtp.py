"""Multi-token prediction (DeepSeek-V3, section 2.2): a layer that predicts the token after the next."""

from mindspore import Tensor, nn

from msrt.models.config import DecoderConfig
from msrt.models.decoder import Attention, DecoderLayer
from msrt.nn.linear import Linear
from msrt.nn.norm import RMSNorm
from msrt.ops.attention import join_last


class MTPLayer(nn.Cell):
    """A decoder layer on the next token's embedding beside the main model's last state; embedding and head are the
    main model's."""

    def __init__(self, config: DecoderConfig, attention: nn.Cell) -> None:
        super().__init__()
        self.enorm = RMSNorm(config.hidden_size, config.rms_norm_eps)
        self.hnorm = RMSNorm(config.hidden_size, config.rms_norm_eps)
        self.eh_proj = Linear(2 * config.hidden_size, config.hidden_size)
        self.transformer_layer = DecoderLayer(config, attention, config.mtp_moe)
        self.final_layernorm = RMSNorm(config.hidden_size, config.rms_norm_eps)

    def construct(
        self,
        embedded: Tensor,
        state: Tensor,
        cos: Tensor,
        sin: Tensor,
        hidden: Tensor | None,
        history: Tensor | None,
    ) -> tuple[Tensor, ...]:
        """The normed state that predicts two tokens ahead, followed by the fields of `MoEStats` with experts.

        `embedded` is the next token's at each position, `state` the main model's normed state, both (batch, seq,
        hidden); `cos`, `sin`, `hidden` and `history` as in `DecoderLayer`.
        """
        joined = self.eh_proj(join_last(self.enorm(embedded), self.hnorm(state)))
        state, *told = self.transformer_layer(joined, cos, sin, hidden, history)
        return (self.final_layernorm(state), *told)


class MultiTokenPrediction(nn.Cell):
    """The layers of multi-token prediction, of which there is one."""

    def __init__(self, config: DecoderConfig, attention: Attention) -> None:
        super().__init__()
        self.layers = nn.CellList([MTPLayer(config, attention()) for _ in config.mtp_layers])
