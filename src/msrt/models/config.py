"""What a config of any family says of the network, apart from its attention."""

from dataclasses import dataclass
from typing import TypedDict

from msrt.nn.moe import MoESpec
from msrt.nn.rotary import RotarySpec
from msrt.ops.precision import FLOAT32, Precision


class Sizes(TypedDict):
    """The values of a `DecoderConfig` that are a shape's own."""

    vocab_size: int
    hidden_size: int
    intermediate_size: int
    num_hidden_layers: int
    rms_norm_eps: float
    tie_word_embeddings: bool
    initializer_range: float


@dataclass(frozen=True, kw_only=True)
class DecoderConfig:
    """A decoder of equal layers; a family adds its attention. `rotary` holds for every layer, `moe` for those in
    `moe_layers`."""

    model_type: str
    vocab_size: int
    hidden_size: int
    intermediate_size: int
    """Width of a dense layer's MLP."""
    num_hidden_layers: int
    """Layers of the main model."""
    rms_norm_eps: float
    rotary: RotarySpec
    moe: MoESpec | None = None
    """None: no layer has experts."""
    moe_layers: tuple[int, ...] = ()
    """Numbers, from 0, of the layers with experts."""
    bias_update_rate: float = 0.0
    """Step of the expert bias."""
    mtp_loss_scaling_factor: float | None = None
    """Weight of the loss of a multi-token prediction layer; None for a model without one."""
    tie_word_embeddings: bool
    initializer_range: float
    """Standard deviation of the initial weights."""
    max_sequence: int | None = None
    """Longest sequence taken; None for no bound."""
    max_positions: int | None = None
    """max_position_embeddings, where a longer sequence is worth a note; None for no bound."""
    precision: Precision = FLOAT32
    """The types the config asks for. Training gives them to the network; other uses compute in float32."""
    remarks: tuple[str, ...] = ()
    """Sentences on settings that were left out and that other readers take otherwise."""

    @property
    def mtp_layers(self) -> tuple[int, ...]:
        """The number of the multi-token prediction layer: it stands behind the main model's; empty without one."""
        return () if self.mtp_loss_scaling_factor is None else (self.num_hidden_layers,)

    @property
    def mtp_moe(self) -> MoESpec | None:
        """The experts of the multi-token prediction layer: it is of the last layer's kind."""
        return self.moe if self.num_hidden_layers - 1 in self.moe_layers else None

    @property
    def routed_layers(self) -> tuple[int, ...]:
        """Numbers of all layers with experts, that of multi-token prediction last."""
        return self.moe_layers if self.mtp_moe is None else self.moe_layers + self.mtp_layers
