"""Loss and gradients of one optimizer step, summed over its micro-batches."""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import mindspore as ms
import numpy as np
from numpy.typing import NDArray

from msrt.data import MicroBatch
from msrt.models.api import LossParts, TokenCounts, TrainableModel
from msrt.ops.autograd import array
from msrt.optim.flat import FlatParameters
from msrt.train.culprit import bad_gradient, bad_parameter, watched
from msrt.train.normalization import GLOBAL_TOKENS, MICRO_BATCH, mean_counts


@dataclass(frozen=True, slots=True)
class StepLoss:
    """The losses of a step, each the mean over its micro-batches, and how many tokens each expert got.

    `main` has no auxiliary loss in it. `tokens_per_expert` (MoE layers, experts) int64 sums over the micro-batches;
    without experts it has no rows. `mtp` has the loss of each multi-token prediction layer, not weighted.
    """

    main: float
    load_balancing: float
    tokens_per_expert: NDArray[np.int64]
    mtp: tuple[float, ...] = ()

    @property
    def finite(self) -> bool:
        return math.isfinite(self.main)


class Gradients:
    """The differentiated loss of `model`; calling it leaves a step's gradients in `flat.gradients`.

    The micro-batches of the last step are kept, for `first_bad_value`.

    Each micro-batch's loss is divided by the number of micro-batches; what a micro-batch's own is a mean of,
    `train.normalization` decides by the rule `normalization`.
    """

    def __init__(
        self, model: TrainableModel, flat: FlatParameters, accumulation: int, normalization: str = MICRO_BATCH
    ) -> None:
        self._model, self._flat, self._accumulation, self._normalization = model, flat, accumulation, normalization
        self._batches: list[MicroBatch] = []
        self._tokens: TokenCounts | None = None

        def scaled_loss(input_ids: ms.Tensor, labels: ms.Tensor, *rest: ms.Tensor | None) -> tuple[ms.Tensor, ...]:
            loss_mask, position_ids, attention_mask = rest
            parts = model.loss(input_ids, labels, loss_mask, position_ids, attention_mask, self._tokens)
            return (parts.total / accumulation, *parts)

        weights = list(model.trainable_params())
        self._differentiated: Callable[..., tuple[tuple[ms.Tensor, ...], tuple[ms.Tensor, ...]]]
        self._differentiated = ms.value_and_grad(scaled_loss, None, weights=weights, has_aux=True)

    def __call__(self, batches: Iterable[MicroBatch]) -> StepLoss:
        """The loss of a step from its micro-batches, exactly as many as the accumulation says."""
        if self._normalization == GLOBAL_TOKENS:  # the only rule that needs them all before the first
            batches = tuple(batches)
            self._tokens = mean_counts(batches)
        self._model.start_step()
        self._batches.clear()
        parts: list[LossParts] = []
        for batch in batches:
            self._batches.append(batch)
            take = self._flat.add_gradients if parts else self._flat.set_gradients
            part, gradients = self._backward(batch)
            take(gradients)
            parts.append(part)
        assert len(parts) == self._accumulation
        return StepLoss(
            main=sum(array(part.main).item() for part in parts) / len(parts),
            load_balancing=sum(array(part.load_balancing).item() for part in parts) / len(parts),
            tokens_per_expert=np.sum([array(part.tokens_per_expert) for part in parts], axis=0, dtype=np.int64),
            mtp=tuple(np.mean([array(part.mtp) for part in parts], axis=0, dtype=np.float64).tolist()),
        )

    def first_bad_value(self) -> str:
        """Where the first value of the last step stands that is not finite: its micro-batches are computed again.

        The parameters must be those of that step. One phrase: in which module's output or which parameter's gradient,
        by dotted path, and in which micro-batch.
        """
        parameters = self._model.trainable_params()
        found = bad_parameter(parameters)
        if found is not None:
            return found
        self._model.start_step()
        for number, batch in enumerate(self._batches, 1):
            with watched(self._model) as seen:
                part, gradients = self._backward(batch)
            found = seen() or (None if np.isfinite(array(part.total)) else "in the loss")
            found = found or bad_gradient(parameters, gradients)
            if found is not None:
                samples = ", ".join(map(str, batch.indices.tolist()))
                return f"{found}, micro-batch {number} of {self._accumulation} (samples {samples} of the data set)"
        return "in the sum of the gradients alone: those of each micro-batch are finite"

    def _backward(self, batch: MicroBatch) -> tuple[LossParts, tuple[ms.Tensor, ...]]:
        columns = (batch.input_ids, batch.labels, batch.loss_mask, batch.position_ids, batch.attention_mask)
        tensors = (None if column is None else ms.Tensor.from_numpy(column) for column in columns)
        (_, *parts), gradients = self._differentiated(*tensors)
        return LossParts(*parts), gradients
