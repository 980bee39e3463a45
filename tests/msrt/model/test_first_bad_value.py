"""What a stopped run says of the first value that is not finite."""

from collections.abc import Callable

import mindspore as ms
import numpy as np
import pytest

from msrt.data import MicroBatch
from msrt.models.deepseek_v3.model import DeepSeekV3
from msrt.ops.autograd import tensor
from msrt.optim.flat import FlatParameters
from msrt.train.culprit import bad_gradient
from msrt.train.gradients import Gradients

from .tiny_model import model

SEQ = 7


def micro_batch(number: int) -> MicroBatch:
    tokens = np.random.default_rng(number).integers(1, 19, (1, SEQ + 1)).astype(np.int32)
    positions = np.arange(SEQ, dtype=np.int32)[None]
    return MicroBatch(
        tokens[:, :-1].copy(), tokens[:, 1:].copy(), np.ones((1, SEQ), np.float32), positions, None,
        np.array([10 + number]),
    )  # fmt: skip


def computed(spoil: Callable[[DeepSeekV3], None], batches: list[MicroBatch]) -> tuple[str, bool]:
    """What is told of the first bad value in a step of a model after `spoil`, and whether its loss was finite."""
    built = model()
    spoil(built)
    flat = FlatParameters(list(built.trainable_params()), [True] * len(built.trainable_params()))
    gradients = Gradients(built, flat, len(batches))
    with np.errstate(all="ignore"):
        loss = gradients(batches)
        return gradients.first_bad_value(), loss.finite


def scaled(name: str, factor: float) -> Callable[[DeepSeekV3], None]:
    def spoil(built: DeepSeekV3) -> None:
        parameter = dict(built.parameters_and_names())[name]
        parameter.set_data(tensor(parameter.asnumpy() * np.float32(factor)))

    return spoil


def test_the_module_whose_output_overflows_is_named() -> None:
    # Products of 1e30 and 1e30 leave float32's range in the gated activation, before the second map is reached.
    told, finite = computed(scaled("decoder.layers.0.mlp.linear_fc1.weight", 1e30), [micro_batch(0)])
    assert told == "in the input of decoder.layers.0.mlp.linear_fc2, micro-batch 1 of 1 (samples 10 of the data set)"
    assert not finite


def test_the_micro_batch_that_spoils_the_loss_is_named() -> None:
    dirty = micro_batch(1)
    dirty.loss_mask[0, 3] = np.nan
    told, finite = computed(lambda built: None, [micro_batch(0), dirty])
    assert told == "in the input of output_layer, micro-batch 2 of 2 (samples 11 of the data set)"
    assert not finite


def test_a_parameter_that_is_bad_itself_is_named() -> None:
    name = "decoder.layers.1.self_attention.linear_proj.weight"
    assert computed(scaled(name, np.nan), [micro_batch(0)])[0] == f"in {name} itself, before the pass"


def test_a_gradient_is_named_by_the_parameter_nearest_to_the_loss() -> None:
    parameters = [ms.Parameter(tensor(np.ones(2, np.float32)), name=name) for name in ("first", "second", "third")]
    gradients = [tensor(np.array(values, np.float32)) for values in ([np.nan, 0], [np.inf, 0], [1, 2])]
    assert bad_gradient(parameters, gradients) == "in the gradient of second"
    assert bad_gradient(parameters[2:], gradients[2:]) is None


def test_a_finite_step_has_no_bad_value_but_in_the_sum() -> None:
    told, finite = computed(lambda built: None, [micro_batch(0)])
    assert finite
    assert told == "in the sum of the gradients alone: those of each micro-batch are finite"


@pytest.mark.parametrize("watching", [False, True])
def test_watching_leaves_no_hooks_behind(watching: bool) -> None:
    built = model()
    flat = FlatParameters(list(built.trainable_params()), [True] * len(built.trainable_params()))
    gradients = Gradients(built, flat, 1)
    first = gradients([micro_batch(0)])
    if watching:
        gradients.first_bad_value()
    assert gradients([micro_batch(0)]).main == first.main
    assert all(not cell._forward_hook and not cell._forward_pre_hook for _, cell in built.cells_and_names())
