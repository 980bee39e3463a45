"""Loss and gradients of one optimizer step, summed over its micro-batches."""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import mindspore as ms
import numpy as np
from numpy.typing import NDArray

from msrt.data import MicroBatch
from msrt.models.api import LossParts, TrainableModel
from msrt.ops.autograd import array
from msrt.optim.flat import FlatParameters


@dataclass(frozen=True, slots=True)
class StepLoss:
    """The losses of a step, each the mean over its micro-batches, and how many tokens each expert got.

    `main` has no auxiliary loss in it. `tokens_per_expert` (MoE layers, experts) int64 sums over the micro-batches;
    without experts it has no rows.
    """

    main: float
    load_balancing: float
    tokens_per_expert: NDArray[np.int64]

    @property
    def finite(self) -> bool:
        return math.isfinite(self.main)


class Gradients:
    """The differentiated loss of `model`; calling it leaves a step's gradients in `flat.gradients`.

    Each micro-batch's loss is divided by the number of micro-batches, as MindFormers does: the gradient is the mean of
    the micro-batches' token means, not a mean over all tokens.
    """

    def __init__(self, model: TrainableModel, flat: FlatParameters, accumulation: int) -> None:
        self._model, self._flat, self._accumulation = model, flat, accumulation

        def scaled_loss(*columns: ms.Tensor | None) -> tuple[ms.Tensor, ...]:
            parts = model.loss(*columns)
            return (parts.total / accumulation, *parts)

        weights = list(model.trainable_params())
        self._differentiated: Callable[..., tuple[tuple[ms.Tensor, ...], tuple[ms.Tensor, ...]]]
        self._differentiated = ms.value_and_grad(scaled_loss, None, weights=weights, has_aux=True)

    def __call__(self, batches: Iterable[MicroBatch]) -> StepLoss:
        """The loss of a step from its micro-batches, exactly as many as the accumulation says."""
        self._model.start_step()
        parts: list[LossParts] = []
        for batch in batches:
            take = self._flat.add_gradients if parts else self._flat.set_gradients
            part, gradients = self._backward(batch)
            take(gradients)
            parts.append(part)
        assert len(parts) == self._accumulation
        return StepLoss(
            main=sum(array(part.main).item() for part in parts) / len(parts),
            load_balancing=sum(array(part.load_balancing).item() for part in parts) / len(parts),
            tokens_per_expert=np.sum([array(part.tokens_per_expert) for part in parts], axis=0, dtype=np.int64),
        )

    def _backward(self, batch: MicroBatch) -> tuple[LossParts, tuple[ms.Tensor, ...]]:
        columns = (batch.input_ids, batch.labels, batch.loss_mask, batch.position_ids, batch.attention_mask)
        tensors = (None if column is None else ms.Tensor.from_numpy(column) for column in columns)
        (_, *parts), gradients = self._differentiated(*tensors)
        return LossParts(*parts), gradients
