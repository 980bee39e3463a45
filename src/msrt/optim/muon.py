"""Muon: matrices by orthogonalised momentum, everything else by AdamW."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

import numpy as np

from msrt.ops.autograd import Array
from msrt.optim.adamw import AdamW
from msrt.optim.flat import FlatParameters, Segment, Slot, Vector
from msrt.optim.orthogonal import orthogonalised
from msrt.weights.layout import Layout, Same

BY_ADAMW = ("*word_embeddings*", "*output_layer*")
"""Matrices whose rows are tokens: AdamW updates them."""


@dataclass(frozen=True, slots=True)
class MuonSpec:
    """The coefficients of `Muon` apart from those of its AdamW; the defaults are MindFormers'."""

    weight_decay: float
    momentum: float = 0.95
    nesterov: bool = True
    steps: int = 5
    """Newton-Schulz iterations."""
    matched_adamw_rms: float = 0.2


class Muon:
    """`velocity` (n,) float32 for the parameters that stand apart in `flat`; `rest` is the AdamW of the joint ones.

    One update with rate lr and gradient g of a matrix: m ← momentum · m + g; d = g + momentum · m (nesterov) or m;
    W ← W (1 - lr · weight_decay) for a decayed one; W ← W - lr · matched_adamw_rms · √max(rows, columns) · O with
    O = `orthogonalised(d)`. The scale gives an update the root mean square that AdamW's have, so that one learning rate
    and one weight decay serve both (Liu et al., "Muon is scalable for LLM training", arXiv 2502.16982, section 2.2).

    A parameter that holds several matrices is updated matrix by matrix, each with its own scale: gate and up, query
    and key-value latents, every expert, as `layouts` cuts it (by name; others are one matrix). That is how a Hugging
    Face checkpoint keeps them apart. MindFormers cuts MLA's up-projections finer, and rescales queries and keys when
    attention logits exceed 100, which is not done here.
    """

    def __init__(self, flat: FlatParameters, rest: AdamW, spec: MuonSpec, layouts: Mapping[str, Layout]) -> None:
        self.flat, self.rest, self.spec, self._layouts = flat, rest, spec, layouts
        self.velocity: Vector = np.zeros(flat.size - flat.joint, np.float32)

    @property
    def updates(self) -> int:
        """Updates done."""
        return self.rest.updates

    @property
    def slots(self) -> tuple[Slot, ...]:
        """The moments of its AdamW, and the momentum of its own parameters."""
        return (*self.rest.slots, Slot("muon_m", self.velocity, self.flat.apart, self.flat.joint))

    def go_on_from(self, updates: int) -> None:
        """Count on from `updates`."""
        self.rest.go_on_from(updates)

    def update(self, learning_rate: float) -> None:
        """Apply the gradients in `flat.gradients` with the rate of this step, in place."""
        for segment in self.flat.apart:
            self._update_matrix(segment, learning_rate)
        self.rest.update(learning_rate)

    def _update_matrix(self, segment: Segment, learning_rate: float) -> None:
        spec, flat, span = self.spec, self.flat, slice(segment.start, segment.stop)
        values, gradient = flat.values[span], flat.gradients[span]
        velocity = self.velocity[segment.start - flat.joint : segment.stop - flat.joint]
        velocity *= np.float32(spec.momentum)
        velocity += gradient
        direction = gradient + np.float32(spec.momentum) * velocity if spec.nesterov else velocity
        layout = self._layouts.get(segment.name, Same())
        steps = [self._step(part) for part in layout.split(direction.reshape(segment.shape))]
        if segment.decays:
            values *= np.float32(1 - learning_rate * spec.weight_decay)
        values -= np.float32(learning_rate) * layout.join(steps).reshape(-1)

    def _step(self, direction: Array) -> Array:
        """What a rate of 1 takes off a matrix that moves in `direction`."""
        scale = self.spec.matched_adamw_rms * math.sqrt(max(direction.shape))
        return orthogonalised(direction, self.spec.steps) * np.float32(scale)


def by_muon(name: str, shape: Sequence[int]) -> bool:
    """Whether Muon updates a parameter: matrices and stacks of them but those of `BY_ADAMW`, as MindFormers has it."""
    return len(shape) > 1 and not any(fnmatchcase(name, pattern) for pattern in BY_ADAMW)
