import mindspore as ms
import numpy as np
import pytest
from numpy.typing import NDArray

from msrt.optim.adamw import AdamW
from msrt.optim.flat import FlatParameters

ms.runtime.launch_blocking()

Vector = NDArray[np.float64]


def parameter(values: object, name: str) -> ms.Parameter:
    return ms.Parameter(ms.Tensor(np.asarray(values, np.float32)), name=name)


def matrix_and_vector() -> list[ms.Parameter]:
    return [parameter([1.0, -1.0], "norm"), parameter([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], "weight")]


def test_decayed_parameters_come_first_and_each_starts_at_a_cache_line() -> None:
    flat = FlatParameters(matrix_and_vector(), [False, True])
    assert [(segment.name, segment.start, segment.stop) for segment in flat.segments] == [
        ("weight", 0, 6),
        ("norm", 16, 18),
    ]
    assert flat.decayed == 6
    np.testing.assert_array_equal(flat.values[:6], [1, 2, 3, 4, 5, 6])
    np.testing.assert_array_equal(flat.values[16:18], [1, -1])


def test_the_model_sees_a_change_of_the_vector() -> None:
    parameters = matrix_and_vector()
    flat = FlatParameters(parameters, [False, True])
    flat.values[17] = 7.0
    np.testing.assert_array_equal(parameters[0].asnumpy(), [1.0, 7.0])
    np.testing.assert_array_equal((parameters[1] * 1).asnumpy(), [[1, 2, 3], [4, 5, 6]])


def test_gradients_are_set_or_added_in_the_given_order() -> None:
    flat = FlatParameters(matrix_and_vector(), [False, True])
    gradients = [ms.Tensor(np.full(2, 0.5, np.float32)), ms.Tensor(np.ones((2, 3), np.float32))]
    flat.set_gradients(gradients)
    flat.add_gradients(gradients)
    np.testing.assert_array_equal(flat.gradients[:6], np.full(6, 2.0))
    np.testing.assert_array_equal(flat.gradients[16:18], [1.0, 1.0])
    flat.set_gradients(gradients)
    np.testing.assert_array_equal(flat.gradients[:6], np.ones(6))
    assert gradients[1].asnumpy().sum() == 6  # not written to


def reference(
    values: Vector, gradients: list[Vector], rates: list[float], decay: float, betas: tuple[float, float], eps: float
) -> Vector:
    """Algorithm 2 of arXiv 1711.05101 in float64, written with bias-corrected moments."""
    p, m, v = values, np.zeros_like(values), np.zeros_like(values)
    for t, (g, rate) in enumerate(zip(gradients, rates, strict=True), 1):
        p = p * (1 - rate * decay)
        m = betas[0] * m + (1 - betas[0]) * g
        v = betas[1] * v + (1 - betas[1]) * g**2
        p = p - rate * (m / (1 - betas[0] ** t)) / (np.sqrt(v / (1 - betas[1] ** t)) + eps)
    return p


@pytest.mark.parametrize("eps", [1e-8, 1e-1])
def test_updates_follow_the_papers_formula(eps: float) -> None:
    random = np.random.default_rng(1)
    start = [random.standard_normal(2), random.standard_normal((2, 3))]
    flat = FlatParameters([parameter(start[0], "norm"), parameter(start[1], "weight")], [False, True])
    optimizer = AdamW(flat, betas=(0.9, 0.95), eps=eps, weight_decay=0.1)
    rates = [1e-2, 3e-2, 2e-2, 1e-2]
    steps = [[random.standard_normal(2), random.standard_normal((2, 3))] for _ in rates]
    for rate, gradients in zip(rates, steps, strict=True):
        flat.set_gradients([ms.Tensor(gradient.astype(np.float32)) for gradient in gradients])
        optimizer.update(rate)
    assert optimizer.updates == 4
    for position, decay, part in ((0, 0.0, flat.values[16:18]), (1, 0.1, flat.values[:6].reshape(2, 3))):
        gradients = [gradient[position] for gradient in steps]
        expected = reference(start[position], gradients, rates, decay, (0.9, 0.95), eps)
        np.testing.assert_allclose(part, expected, rtol=2e-6, atol=1e-7)


def test_the_first_update_has_the_size_of_the_rate() -> None:
    # m / (1 - b1) = g and v / (1 - b2) = g²: whatever g is, the step is rate * sign(g).
    flat = FlatParameters([parameter([1.0, 1.0], "norm")], [False])
    flat.add_gradients([ms.Tensor(np.array([1e-3, -50.0], np.float32))])
    AdamW(flat, betas=(0.9, 0.999), eps=1e-12, weight_decay=0.1).update(0.25)
    np.testing.assert_allclose(flat.values[:2], [0.75, 1.25], rtol=1e-6)


def test_a_rate_of_zero_changes_moments_only() -> None:
    flat = FlatParameters(matrix_and_vector(), [False, True])
    before = flat.values.copy()
    flat.gradients.fill(1.0)
    optimizer = AdamW(flat, betas=(0.9, 0.95), eps=1e-8, weight_decay=0.1)
    optimizer.update(0.0)
    np.testing.assert_array_equal(flat.values, before)
    np.testing.assert_allclose(optimizer.first, 0.1, rtol=1e-6)
    np.testing.assert_allclose(optimizer.second, 0.05, rtol=1e-6)


def test_a_bfloat16_parameter_is_trained_through_its_master_copy() -> None:
    # 1 - 0.001 rounds to 1 in bfloat16 (8 bits); without the master copy four such updates would leave 1.
    weight = parameter([1.0 + 2**-12, 2.0], "weight")
    flat = FlatParameters([weight], [False], held=["bfloat16"])
    np.testing.assert_array_equal(flat.values[:2], [1.0, 2.0])  # the copy is of what the parameter holds
    optimizer = AdamW(flat, betas=(0.9, 0.95), eps=1e-8, weight_decay=0.0)
    for _ in range(4):
        flat.set_gradients([ms.Tensor(np.ones(2, np.float32))])
        optimizer.update(1e-3)
    np.testing.assert_allclose(flat.values[:2], [0.996, 1.996], rtol=1e-5)
    np.testing.assert_array_equal(weight.asnumpy(), [0.99609375, 1.9921875])
