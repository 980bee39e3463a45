import mindspore as ms
import numpy as np
import pytest
from numpy.typing import NDArray

from msrt.optim.adamw import AdamW
from msrt.optim.flat import FlatParameters
from msrt.optim.muon import Muon, MuonSpec
from msrt.optim.orthogonal import COEFFICIENTS, orthogonalised
from msrt.weights.layout import InterleavedRows, Layout, Same, StackedExperts

ms.runtime.launch_blocking()

Vector = NDArray[np.float64]
RANDOM = np.random.default_rng(4)


def odd_polynomial(values: Vector, steps: int) -> Vector:
    a, b, c = COEFFICIENTS
    for _ in range(steps):
        values = a * values + b * values**3 + c * values**5
    return values


def reference(matrix: Vector, steps: int) -> Vector:
    """The same by singular values in float64: Newton-Schulz leaves the singular vectors alone."""
    left, values, right = np.linalg.svd(matrix, full_matrices=False)
    moved: Vector = (left * odd_polynomial(values / np.linalg.norm(values), steps)) @ right
    return moved


@pytest.mark.parametrize("shape", [(6, 6), (3, 8), (8, 3), (1, 5)])
def test_the_iteration_moves_singular_values_alone(shape: tuple[int, int]) -> None:
    matrix = RANDOM.standard_normal(shape).astype(np.float32)
    found = orthogonalised(matrix, 5)
    np.testing.assert_allclose(found, reference(matrix.astype(np.float64), 5), atol=2e-5)
    values = np.linalg.svd(found, compute_uv=False)
    assert np.all((values > 0.3) & (values < 1.3))


def test_no_direction_is_no_step() -> None:
    assert not orthogonalised(np.zeros((3, 4), np.float32), 5).any()


def parameter(values: Vector, name: str) -> ms.Parameter:
    return ms.Parameter(ms.Tensor(values.astype(np.float32)), name=name)


def matrices(layout: Layout, whole: Vector) -> list[Vector]:
    return [np.asarray(part, np.float64) for part in layout.split(whole)]


def stepped(layout: Layout, values: Vector, gradients: list[Vector], rates: list[float], nesterov: bool) -> Vector:
    """The published rule in float64, matrix by matrix: decay 0.1, momentum 0.9, scale 0.2 · √max(rows, columns)."""
    parts, moving = matrices(layout, values), [np.zeros_like(part) for part in matrices(layout, values)]
    for gradient, rate in zip(gradients, rates, strict=True):
        for place, part in enumerate(matrices(layout, gradient)):
            moving[place] = 0.9 * moving[place] + part
            ahead = part + 0.9 * moving[place] if nesterov else moving[place]
            step = reference(ahead, 5) * 0.2 * np.sqrt(max(ahead.shape))
            parts[place] = parts[place] * (1 - rate * 0.1) - rate * step
    joined: Vector = layout.join(parts)
    return joined


@pytest.mark.parametrize("nesterov", [True, False])
@pytest.mark.parametrize(
    ("layout", "shape"), [(Same(), (4, 6)), (InterleavedRows(), (6, 5)), (StackedExperts(2), (3, 4, 10))]
)
def test_updates_follow_the_published_rule(layout: Layout, shape: tuple[int, ...], nesterov: bool) -> None:
    start, rates = RANDOM.standard_normal(shape), [1e-2, 3e-2, 2e-2]
    gradients = [RANDOM.standard_normal(shape) for _ in rates]
    norm = parameter(np.ones(3), "norm")
    flat = FlatParameters([parameter(start, "weight"), norm], [True, False], [True, False])
    rest = AdamW(flat, betas=(0.9, 0.95), eps=1e-8, weight_decay=0.1)
    optimizer = Muon(flat, rest, MuonSpec(0.1, momentum=0.9, nesterov=nesterov), {"weight": layout})
    for rate, gradient in zip(rates, gradients, strict=True):
        flat.set_gradients([ms.Tensor(gradient.astype(np.float32)), ms.Tensor(np.ones(3, np.float32))])
        optimizer.update(rate)
    (segment,) = flat.apart
    found = flat.values[segment.start : segment.stop].reshape(shape)
    np.testing.assert_allclose(found, stepped(layout, start, gradients, rates, nesterov), atol=3e-6)
    # The others are AdamW's: a gradient that stays the same moves them by the rate.
    np.testing.assert_allclose(norm.asnumpy(), 1 - sum(rates), rtol=1e-5)
    assert optimizer.updates == 3


def test_a_matrix_that_does_not_decay_keeps_its_values_without_gradient() -> None:
    weights = [parameter(np.ones((2, 3)), name) for name in ("kept", "decayed")]
    flat = FlatParameters([*weights, parameter(np.ones(2), "norm")], [False, True, False], [True, True, False])
    Muon(flat, AdamW(flat, betas=(0.9, 0.95), eps=1e-8, weight_decay=0.5), MuonSpec(0.5), {}).update(0.1)
    assert weights[0].asnumpy().tolist() == [[1.0] * 3] * 2
    np.testing.assert_allclose(weights[1].asnumpy(), 0.95, rtol=1e-6)
