"""16-bit types: rounding, where it happens, and what it must not change."""

import math
from typing import Any, get_args

import mindspore as ms
import numpy as np
import pytest
from numpy.typing import NDArray

from msmigrate.pynative.sections import Optimizer
from msrt.config.resolve import Resolved
from msrt.data import MicroBatch
from msrt.models.deepseek_v3.model import DeepSeekV3
from msrt.nn.precision import held_type, set_precision
from msrt.ops.autograd import array, tensor
from msrt.ops.precision import BLOCK, Dtype, Precision, cast, rounded
from msrt.optim.flat import FlatParameters
from msrt.train.gradients import Gradients
from msrt.train.loop import DivergedError, Run, train
from msrt.train.metrics import StepMetrics
from msrt.train.optimizers import flatten, make_optimizer
from msrt.train.skipping import SkipRule

from .tiny_families import model as family_model
from .tiny_model import batch as tokens
from .tiny_model import config, gradients, model

Array = NDArray[np.float32]
SIXTEEN: list[Dtype] = ["bfloat16", "float16"]
STEP: dict[Dtype, float] = {"bfloat16": 2**-8, "float16": 2**-11}
"""Half the distance of two neighbours just above 1."""


def nearest_bfloat16(value: float) -> float:
    """By search among the three candidates around a float64 value, the even one of two that are equally near."""
    if value == 0 or not math.isfinite(value):
        return value
    unit = 2.0 ** (max(math.floor(math.log2(abs(value))), -126) - 7)
    near = math.floor(value / unit)
    return min((near, near + 1), key=lambda count: (abs(value - count * unit), count % 2)) * unit


def test_bfloat16_is_to_nearest_and_ties_are_even() -> None:
    random = np.random.default_rng(0)
    values = np.concatenate([
        random.standard_normal(500) * 10.0 ** random.integers(-30, 30, 500),
        [0.0, 1 + 2**-8, 1 + 3 * 2**-8, -1 - 2**-8, 1 + 2**-8 + 2**-20, 255.5, 1e-40, 3.3e38],
    ]).astype(np.float32)  # fmt: skip
    expected = np.array([nearest_bfloat16(float(value)) for value in values])
    np.testing.assert_array_equal(rounded(values, "bfloat16"), expected)


def test_what_is_no_number_stays_none_and_what_is_too_large_is_infinite() -> None:
    bits = [0x7FFFFFFF, 0xFFFFFFFF, 0x7F800001, 0x7FC00000, 0x7F800000, 0xFF800000, 0x7F7FFFFF]
    values = np.array(bits, np.uint32).view(np.float32)
    found = rounded(values, "bfloat16")
    assert np.isnan(found[:4]).all()
    np.testing.assert_array_equal(found[4:], [np.inf, -np.inf, np.inf])
    np.testing.assert_array_equal(
        rounded(np.array([65519, 65520, -1e9], np.float32), "float16"), [65504, np.inf, -np.inf]
    )


@pytest.mark.parametrize("dtype", get_args(Dtype))
def test_rounding_is_a_copy_and_done_once(dtype: Dtype) -> None:
    values = np.random.default_rng(1).standard_normal(BLOCK + 3).astype(np.float32)
    before = values.copy()
    once = rounded(values, dtype)
    np.testing.assert_array_equal(values, before)
    np.testing.assert_array_equal(rounded(once, dtype), once)
    assert float(np.abs(once / values - 1).max()) <= STEP.get(dtype, 0.0)
    assert (dtype == "float32") == np.array_equal(once, values)


@pytest.mark.parametrize("dtype", SIXTEEN)
def test_a_casts_gradient_is_rounded_as_well(dtype: Dtype) -> None:
    value, weight = np.array([1.0 + 2**-13], np.float32), np.array([1 / 3], np.float32)
    found = ms.grad(lambda x: (cast(x, dtype) * tensor(weight)).sum())(tensor(value))
    np.testing.assert_array_equal(found.asnumpy(), rounded(weight, dtype))
    assert array(cast(tensor(value), dtype))[0] == 1.0


def test_float32_is_the_same_tensor() -> None:
    x = tensor(np.ones(2, np.float32))
    assert cast(x, "float32") is x


def distance(one: Array, other: Array) -> float:
    return float(np.linalg.norm(one - other) / np.linalg.norm(other))


@pytest.mark.parametrize("dtype", SIXTEEN)
@pytest.mark.parametrize("family", ["deepseek_v3", "qwen3_moe"])
def test_gradients_are_a_few_roundings_from_float32(family: str, dtype: Dtype) -> None:
    """Errors of some roundings, each of 2⁻⁹ (2⁻¹²) at the mean: not none, and not those of a wrong term."""

    def flat(dtype: Dtype) -> tuple[float, Array]:
        # One choice of experts for both: a token that changes its expert is no rounding.
        changes: dict[str, Any] = {"num_experts_per_tok": 8, "n_group": 1, "topk_group": 1}
        built = model(**changes) if family == "deepseek_v3" else family_model(family, num_experts_per_tok=8)
        set_precision(built, Precision(compute=dtype))
        loss, found = gradients(built, *tokens())
        return loss, np.concatenate([gradient.reshape(-1) for gradient in found.values()])

    (exact_loss, exact), (loss, found) = flat("float32"), flat(dtype)
    assert 0 < abs(loss / exact_loss - 1) < 4 * STEP[dtype]
    assert STEP[dtype] / 2 < distance(found, exact) < 12 * STEP[dtype]


def micro_batch(number: int = 0) -> MicroBatch:
    ids, labels = tokens(number)
    positions = np.tile(np.arange(ids.shape[1], dtype=np.int32), (2, 1))
    return MicroBatch(array(ids), array(labels), np.ones(ids.shape, np.float32), positions, None, np.arange(2))


def make(precision: Precision, **changes: Any) -> tuple[DeepSeekV3, FlatParameters, Gradients]:
    built = model(**changes)
    set_precision(built, precision)
    flat = flatten(list(built.trainable_params()), Optimizer(), precision)
    return built, flat, Gradients(built, flat, 1)


@pytest.mark.parametrize("dtype", SIXTEEN)
@pytest.mark.parametrize("tied", [False, True])
def test_gradients_do_not_depend_on_how_the_master_copy_is_kept(dtype: Dtype, tied: bool) -> None:
    changes: dict[str, Any] = {
        "tie_word_embeddings": tied,
        "num_nextn_predict_layers": 1,
        "mtp_loss_scaling_factor": 0.3,
    }
    wide_model, wide, of_wide = make(Precision(compute=dtype), **changes)
    narrow_model, narrow, of_narrow = make(Precision(params=dtype, compute=dtype), **changes)
    assert not np.array_equal(wide.values, narrow.values)
    wide.values[:] = narrow.values
    for step in range(3):
        losses = of_wide([micro_batch(step)]), of_narrow([micro_batch(step)])
        assert losses[0].main == losses[1].main
        np.testing.assert_array_equal(wide.gradients, narrow.gradients)
        for flat in (wide, narrow):
            flat.values -= np.float32(1e-3) * flat.gradients
            flat.publish()
        np.testing.assert_array_equal(wide.values, narrow.values)
    held = {item.name: item.asnumpy() for item in narrow_model.trainable_params()}
    assert all(
        np.array_equal(held[name], rounded(held[name], dtype))
        for name in held
        if held_type(name, held[name].shape, Precision(params=dtype)) == dtype
    )
    assert any(not np.array_equal(item.asnumpy(), held[item.name]) for item in wide_model.trainable_params())


def test_matrices_hold_16_bits_but_the_routers() -> None:
    precision = Precision(params="bfloat16")
    names = {name: held_type(name, value.shape, precision) for name, value in model().parameters_and_names()}
    assert {name for name, dtype in names.items() if dtype == "float32"} == {
        name for name in names if name.endswith(("norm.weight", "router.weight", "expert_bias"))
    }


def test_the_config_sections_types_are_read() -> None:
    types = {
        "params_dtype": "bfloat16", "compute_dtype": "float16", "layernorm_compute_dtype": "bfloat16",
        "softmax_compute_dtype": "float16", "rotary_dtype": "bfloat16", "moe_router_dtype": "float16",
    }  # fmt: skip
    assert config(**types).precision == Precision("bfloat16", "float16", "bfloat16", "float16", "bfloat16", "float16")
    assert config().precision == Precision()


@pytest.mark.parametrize(
    "precision",
    [
        Precision(compute="bfloat16"),
        Precision(norm="bfloat16"),
        Precision(softmax="bfloat16"),
        Precision(rotary="bfloat16"),
        Precision(router="bfloat16"),
    ],
)
def test_each_parts_type_matters_alone(precision: Precision) -> None:
    plain = gradients(model(), *tokens())[0]
    built = model()
    set_precision(built, precision)
    loss = gradients(built, *tokens())[0]
    assert loss != plain
    assert loss == pytest.approx(plain, rel=0.1)


def test_the_note_says_what_each_part_computes_in() -> None:
    assert Precision().note() is None
    note = Precision(compute="bfloat16").note()
    assert note is not None
    assert note.startswith("precision: bfloat16: matrix products, attention and the residual stream; float32: stored")
    assert "softmax, rotary positions, router, loss, sums and optimizer. 16-bit values are rounded as such" in note


def run_of(precision: Precision, steps: int, factor: float = 1.0) -> Run:
    built, flat, computed = make(precision)
    flat.values[:] = flat.values * np.float32(factor)
    flat.publish()
    return Run(
        numbers=Resolved(1, 1, 1, 1, 1, 1, "product", 1, 2, 2, 7, 14, steps, 0),
        model=built,
        batches=iter([micro_batch()] * steps),
        gradients=computed,
        optimizer=make_optimizer(flat, Optimizer()),
        rate=lambda step: 1e-2,
        max_norm=1.0,
        skip=SkipRule(enabled=False, limit=0),
    )


@pytest.mark.parametrize("dtype", SIXTEEN)
def test_a_model_trains_in_16_bits_as_it_does_in_32(dtype: Dtype) -> None:
    curves: dict[str, list[float]] = {}
    for precision in (Precision(), Precision(params=dtype, compute=dtype)):
        seen: list[StepMetrics] = []
        train(run_of(precision, 25), seen.append)
        curves[precision.compute] = [metrics.loss for metrics in seen]
    assert curves[dtype][-1] < 0.3 * curves[dtype][0]
    assert curves[dtype][-1] == pytest.approx(curves["float32"][-1], rel=0.3)


def test_float16_overflows_into_the_stop_that_names_the_module() -> None:
    run = run_of(Precision(compute="float16"), 1, factor=300.0)
    named = r"On rank 0 the first value that is not finite is in the (in|out)put of \S+, micro-batch 1 of 1"
    with np.errstate(all="ignore"), pytest.raises(DivergedError, match=named):
        train(run, lambda metrics: None)
    train(run_of(Precision(compute="bfloat16"), 1, factor=300.0), lambda metrics: None)
