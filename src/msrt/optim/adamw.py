"""AdamW with decoupled weight decay on a flat vector (Loshchilov and Hutter, arXiv 1711.05101, algorithm 2)."""

import math

import mindspore as ms
import numpy as np
from mindspore import ops

from msrt.optim.flat import FlatParameters, Slot, Vector


class AdamW:
    """Moments `first` and `second`, (n,) float32 each, of the joint parameters in `flat`; `updates` counts the steps.

    Needs synchronous dispatch (msrt.ops.device.prepare): numpy and MindSpore work on the same storage.

    One update with rate lr and gradient g, in update t = 1, 2, …:
    p ← p (1 - lr · weight_decay) for decayed parameters; m ← β₁ m + (1 - β₁) g; v ← β₂ v + (1 - β₂) g²;
    p ← p - lr / (1 - β₁ᵗ) · m / (√(v / (1 - β₂ᵗ)) + eps).
    """

    def __init__(self, flat: FlatParameters, *, betas: tuple[float, float], eps: float, weight_decay: float) -> None:
        self.flat, self.eps, self.weight_decay = flat, eps, weight_decay
        # The kernel takes 1 - β of a float32 β; with another β in the bias correction, v is off by 1e-5 at β₂ 0.999.
        self.betas = float(np.float32(betas[0])), float(np.float32(betas[1]))
        self.first: Vector = np.zeros(flat.joint, np.float32)
        self.second: Vector = np.zeros(flat.joint, np.float32)
        self.updates = 0
        self._fused = ops.Adam()
        self._states = [
            _shared(vector, name)
            for vector, name in ((flat.values[: flat.joint], "flat"), (self.first, "adam_m"), (self.second, "adam_v"))
        ]

    @property
    def slots(self) -> tuple[Slot, ...]:
        """The two moments."""
        segments = self.flat.segments[: len(self.flat.segments) - len(self.flat.apart)]
        return (Slot("adam_m", self.first, segments), Slot("adam_v", self.second, segments))

    def go_on_from(self, updates: int) -> None:
        """Count on from `updates`, which the bias corrections depend on."""
        self.updates = updates

    def update(self, learning_rate: float) -> None:
        """Apply the gradients in `flat.gradients` with the rate of this step, in place."""
        self.updates += 1
        flat = self.flat
        if self.weight_decay:
            flat.values[: flat.decayed] *= np.float32(1 - learning_rate * self.weight_decay)
        # MindSpore's kernel corrects the bias in float32 and adds eps to the uncorrected root. With both powers 0 it
        # corrects nothing; the corrections, made here in float64, go into the rate and eps and give the formula above.
        beta1, beta2 = self.betas
        root = math.sqrt(1 - beta2**self.updates)
        rate = learning_rate * root / (1 - beta1**self.updates)
        powers = (_scalar(0.0), _scalar(0.0))
        coefficients = tuple(_scalar(value) for value in (rate, beta1, beta2, self.eps * root))
        self._fused(*self._states, *powers, *coefficients, ms.Tensor.from_numpy(flat.gradients[: flat.joint]))
        flat.publish()


def _scalar(value: float) -> ms.Tensor:
    return ms.Tensor(value, ms.float32)


def _shared(vector: Vector, name: str) -> ms.Parameter:
    # A Parameter made from an array copies it; set_data shares its storage.
    parameter = ms.Parameter(ms.Tensor(np.zeros(1, np.float32)), name=name, requires_grad=False)
    parameter.set_data(ms.Tensor.from_numpy(vector), slice_shape=True)
    return parameter
