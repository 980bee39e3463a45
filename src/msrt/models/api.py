"""What every model family offers to the trainer and the probe."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np
from mindspore import Parameter, Tensor
from numpy.typing import NDArray

from msrt.ops.autograd import Ints
from msrt.weights.names import NameRow


class LossParts(NamedTuple):
    """The loss of one micro-batch, all tensors; `total` comes first, as `mindspore.value_and_grad` wants it."""

    total: Tensor
    """Scalar: `main` + `aux`."""
    main: Tensor
    """Scalar: mean cross entropy of the tokens that the loss mask counts; 0 when it counts none."""
    aux: Tensor
    """Scalar: Σ over layers of coefficient · load-balancing loss."""
    load_balancing: Tensor
    """Scalar: mean over layers with experts of the load-balancing loss without its coefficient; near 1 is balanced."""
    tokens_per_expert: Tensor
    """(layers with experts, experts) int64: tokens that each expert got."""


class TrainableModel(Protocol):
    """What the training loop needs from a model, whichever family it is."""

    def loss(
        self,
        input_ids: Tensor,
        labels: Tensor,
        loss_mask: Tensor | None = None,
        position_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
    ) -> LossParts:
        """The loss of a micro-batch (batch, seq).

        `labels` are already shifted, -100 is ignored. `loss_mask` float, None for all ones; `position_ids` int, None
        for 0, 1, …; `attention_mask` (batch, 1, seq, seq) bool hides keys (True) beside those of the future.
        """
        ...

    def start_step(self) -> None:
        """Forgets what the global balance loss remembers of earlier micro-batches: call before an optimizer step's
        first one."""
        ...

    def update_expert_bias(self, counts: Ints) -> None:
        """Moves the expert biases by the tokens (layers with experts, experts) that a step gave to each expert."""
        ...

    def trainable_params(self) -> Sequence[Parameter]:
        """The parameters that the optimizer trains, in the network's order."""
        ...


class Model(TrainableModel, Protocol):
    """A language model on one process: what training needs, and what the probe and the exchange of weights ask for."""

    def logits(self, input_ids: Tensor, position_ids: Tensor | None = None) -> Tensor:
        """Scores of the next token: (batch, seq, vocab) float32."""
        ...

    def trace(
        self, input_ids: Tensor, position_ids: Tensor | None = None, attention_mask: Tensor | None = None
    ) -> dict[str, NDArray[np.generic]]:
        """Inner values by the names of the contract's probe: hidden.embed, hidden.K, router.K.logits, …"""
        ...

    def name_table(self) -> tuple[NameRow, ...]:
        """How the parameters stand to Hugging Face tensors."""
        ...
