"""Gradient clipping by global norm."""

import math

import numpy as np
from numpy.typing import NDArray

CHUNK = 1 << 16
"""Elements summed in float32 before the sums are added in float64: fast, and exact to about 1e-6."""

EPSILON = 1e-6


def global_norm(gradients: NDArray[np.float32]) -> float:
    """The Euclidean norm of a flat (n,) float32 vector; inf or nan when it holds such a value."""
    total = 0.0
    for start in range(0, len(gradients), CHUNK):
        chunk = gradients[start : start + CHUNK]
        total += float(np.dot(chunk, chunk))
    return math.sqrt(total)


def clip_by_global_norm(gradients: NDArray[np.float32], max_norm: float) -> float:
    """Scale the flat gradients in place by max_norm / (norm + 1e-6) when that is below 1; the norm before that.

    The rule of MindFormers 2.x and PyTorch's clip_grad_norm_. A norm that is not finite leaves the gradients alone.
    """
    norm = global_norm(gradients)
    factor = max_norm / (norm + EPSILON)
    if factor < 1 and math.isfinite(norm):
        gradients *= np.float32(factor)
    return norm
