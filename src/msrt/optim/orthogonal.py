"""The nearest orthogonal matrix, nearly: what Muon makes of a matrix's momentum."""

import numpy as np

from msrt.ops.autograd import Array

COEFFICIENTS = (3.4445, -4.7750, 2.0315)
"""Of x, x³ and x⁵: they move singular values from (0, 1] into about [0.7, 1.2] in five steps."""

EPSILON = 1e-7
"""Keeps a matrix of zeros from dividing by zero."""


def orthogonalised(matrix: Array, steps: int) -> Array:
    """`matrix` (rows, columns) float32 with its singular values brought near 1, by `steps` Newton-Schulz iterations.

    X ← a·X + (b·A + c·A²)·X with A = X·Xᵀ, from X = matrix / ‖matrix‖ (Jordan et al., "Muon: An optimizer for hidden
    layers in neural networks", 2024). A tall matrix is turned first, so that A has the smaller side. Products are
    float32; the published runs have them in bfloat16, which their coefficients are chosen to bear.
    """
    turned = matrix.shape[0] > matrix.shape[1]
    x = matrix.T if turned else matrix
    x = x / np.maximum(np.linalg.norm(x), np.float32(EPSILON))
    first, third, fifth = (np.float32(value) for value in COEFFICIENTS)
    for _ in range(steps):
        square = x @ x.T
        x = first * x + (third * square + fifth * (square @ square)) @ x
    result: Array = x.T if turned else x
    return result
