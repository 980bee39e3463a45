"""Rotary positions: frequencies, plain or stretched for longer sequences, and the tables of a batch's angles.

YaRN is Peng et al., 2023. Transformers and MindFormers agree on its frequencies and differ in three places, each a
value of `RotarySpec` or of the softmax scale: see `transformers_amplitude`, `mindformers_angle_scale`, `yarn_mscale`.
"""

import math
from dataclasses import dataclass

import numpy as np
from mindspore import Tensor, nn

from msrt.ops.autograd import Array, Ints, tensor
from msrt.ops.precision import FLOAT32, cast
from msrt.ops.rotary import PairLayout, rotate


@dataclass(frozen=True)
class Yarn:
    """How frequencies are stretched: those that turn more than `beta_fast` times in `original_length` positions are
    kept, those that turn less than `beta_slow` times are divided by `factor`, those between are blended."""

    factor: float
    original_length: int
    beta_fast: float = 32.0
    beta_slow: float = 1.0

    def stretched(self, frequencies: Array, theta: float) -> Array:
        """The plain `frequencies` (dim / 2,) of base `theta`, each kept, divided or blended."""
        ramp = self._ramp(2 * frequencies.size, theta)
        blended: Array = frequencies / np.float32(self.factor) * ramp + frequencies * (1 - ramp)
        return blended

    def _ramp(self, dim: int, theta: float) -> Array:
        """Share of the divided frequency for each pair of lanes: 0 fast, 1 slow (YaRN, section 3.2)."""

        def lane(rotations: float) -> float:
            periods = self.original_length / (rotations * 2 * math.pi)
            return dim * math.log(periods) / (2 * math.log(theta))

        low = max(math.floor(lane(self.beta_fast)), 0)
        high: float = min(math.ceil(lane(self.beta_slow)), dim - 1)
        if low == high:
            high += 0.001
        ramp: Array = np.clip((np.arange(dim // 2, dtype=np.float32) - low) / np.float32(high - low), 0, 1)
        return ramp


@dataclass(frozen=True)
class Llama3:
    """Llama 3.1's stretching: as YaRN's, blended by how often a frequency turns in `original_length` positions, from
    `low_freq_factor` times (divided by `factor`) to `high_freq_factor` times (kept)."""

    factor: float
    original_length: int
    low_freq_factor: float
    high_freq_factor: float

    def stretched(self, frequencies: Array, theta: float) -> Array:
        """The plain `frequencies` (dim / 2,), each kept, divided or blended; the base does not matter."""
        turns = np.float32(self.original_length / (2 * math.pi)) * frequencies
        low, high = np.float32(self.low_freq_factor), np.float32(self.high_freq_factor)
        kept: Array = np.clip((turns - low) / (high - low), 0, 1)
        blended: Array = frequencies / np.float32(self.factor) * (1 - kept) + frequencies * kept
        return blended


@dataclass(frozen=True)
class RotarySpec:
    """The angles of `dim` rotated lanes: position · frequency · `angle_scale`; cos and sin are times `amplitude`."""

    dim: int
    theta: float
    stretch: Yarn | Llama3 | None = None
    angle_scale: float = 1.0
    amplitude: float = 1.0

    def inverse_frequencies(self) -> Array:
        """Radians per position of each pair of lanes: (dim / 2,) float32."""
        exponents = np.arange(0, self.dim, 2, dtype=np.float32) / np.float32(self.dim)
        plain: Array = np.float32(1) / np.power(np.float32(self.theta), exponents)
        return plain if self.stretch is None else self.stretch.stretched(plain, self.theta)

    def tables(self, position_ids: Ints) -> tuple[Tensor, Tensor]:
        """cos and sin for `position_ids` (batch, seq): two tensors (batch, seq, dim / 2) float32."""
        angles = position_ids.astype(np.float32)[..., None] * self.inverse_frequencies() * np.float32(self.angle_scale)
        amplitude = np.float32(self.amplitude)
        return tensor(np.cos(angles) * amplitude), tensor(np.sin(angles) * amplitude)


def yarn_mscale(factor: float, mscale: float) -> float:
    """0.1 · mscale · ln(factor) + 1, or 1 for a factor up to 1 (YaRN, eq. 22, generalised by DeepSeek-V2)."""
    return 0.1 * mscale * math.log(factor) + 1.0 if factor > 1 else 1.0


def transformers_amplitude(factor: float, mscale: float | None, mscale_all_dim: float | None) -> float:
    """The factor that transformers puts on cos and sin; a missing or zero mscale means the plain one."""
    if mscale and mscale_all_dim:
        return yarn_mscale(factor, mscale) / yarn_mscale(factor, mscale_all_dim)
    return yarn_mscale(factor, 1.0)


def mindformers_angle_scale(factor: float, mscale: float, mscale_all_dim: float) -> float:
    """The same ratio as MindFormers uses it: on the angle, not on cos and sin."""
    return yarn_mscale(factor, mscale) / yarn_mscale(factor, mscale_all_dim)


class RotaryEmbedding(nn.Cell):
    """Turns the last lanes of queries or keys by the angles given; `layout` says which lanes are a pair."""

    precision = FLOAT32

    def __init__(self, layout: PairLayout) -> None:
        super().__init__()
        self.layout = layout

    def construct(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        """(batch, seq, heads, lanes), with cos and sin (batch, seq, dim / 2): the same shape."""
        dtype = self.precision.rotary
        turned = rotate(cast(x, dtype), cast(cos, dtype), cast(sin, dtype), self.layout)
        return cast(turned, self.precision.compute)
