"""What the training loop needs from a model, whichever family it is."""

from collections.abc import Sequence
from typing import Protocol

import mindspore as ms
import numpy as np
from numpy.typing import NDArray

from msrt.models.api import LossParts


class TrainableModel(Protocol):
    """The part of `msrt.models.api.Model` that training calls; meanings and shapes stand there."""

    def loss(
        self,
        input_ids: ms.Tensor,
        labels: ms.Tensor,
        loss_mask: ms.Tensor | None = None,
        position_ids: ms.Tensor | None = None,
        attention_mask: ms.Tensor | None = None,
    ) -> LossParts: ...

    def start_step(self) -> None: ...

    def update_expert_bias(self, counts: NDArray[np.int64]) -> None: ...

    def trainable_params(self) -> Sequence[ms.Parameter]: ...
