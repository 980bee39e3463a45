"""What every model family offers to the trainer and the probe."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol

import numpy as np
from mindspore import Parameter, Tensor
from numpy.typing import NDArray

from msrt.ops.autograd import Ints
from msrt.weights.names import NameRow


class TokenCounts(NamedTuple):
    """How many tokens the losses are divided by: the main one, and that of multi-token prediction, which looks one
    position further."""

    main: float
    ahead: float


class LossParts(NamedTuple):
    """The loss of one micro-batch, all tensors; `total` comes first, as `mindspore.value_and_grad` wants it."""

    total: Tensor
    """Scalar: `main` + `aux` + the weighted losses of multi-token prediction."""
    main: Tensor
    """Scalar: mean cross entropy of the tokens that the loss mask counts; 0 when it counts none. Where the loss was
    given other `tokens`, it is divided by those, as the losses of multi-token prediction are."""
    aux: Tensor
    """Scalar: Σ over layers of coefficient · load-balancing loss."""
    load_balancing: Tensor
    """Scalar: mean over layers with experts of the load-balancing loss without its coefficient; near 1 is balanced."""
    tokens_per_expert: Tensor
    """(layers with experts, experts) int64: tokens that each expert got; multi-token prediction's layer is last."""
    mtp: Tensor
    """(multi-token prediction layers,) float32: the mean cross entropy of each, not weighted; empty without any."""


class TrainableModel(Protocol):
    """What the training loop needs from a model, whichever family it is."""

    def loss(
        self,
        input_ids: Tensor,
        labels: Tensor,
        loss_mask: Tensor | None = None,
        position_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        tokens: TokenCounts | None = None,
    ) -> LossParts:
        """The loss of a micro-batch (batch, seq).

        `labels` are already shifted, -100 is ignored. `loss_mask` float, None for all ones; `position_ids` int, None
        for 0, 1, …; `attention_mask` (batch, 1, seq, seq) bool hides keys (True) beside those of the future.
        Sums of token losses are divided by `tokens`, None for the micro-batch's own counts, which gives means.
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

    def parameters_and_names(self) -> Iterable[tuple[str, Parameter]]:
        """All parameters by PyNative name, also those that no optimizer trains."""
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
