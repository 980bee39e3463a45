"""Every family against transformers' numbers: forward pass, gradients, and three steps of AdamW."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import mindspore as ms
import numpy as np
import pytest
from numpy.typing import NDArray
from safetensors.numpy import load_file

from msrt.models import build_model, config_from_hf, parameter_count
from msrt.ops.autograd import tensor
from msrt.ops.cross_entropy import cross_entropy
from msrt.ops.device import prepare
from msrt.optim.adamw import AdamW
from msrt.optim.clip import global_norm
from msrt.optim.flat import FlatParameters
from msrt.weights.hf import import_hf
from msrt.weights.names import to_hub

# Tolerances of the golden READMEs.
HIDDEN, LOSS, GRADIENT = 2e-5, 5e-6, 1e-5
MOVED, MOVED_FAR, SHARE = 5e-6, 6e-3, 1e-3
NOISE = 1e-6
"""Gradients whose sign is rounding noise: the READMEs have up to 7e-7 between equally correct kernels."""

MODELS = ["qwen3", "qwen3_moe", "llama", "deepseek_v3_yarn_qlora", "deepseek_v3_noqlora"]
Arrays = dict[str, NDArray[Any]]

prepare()


def config_of(folder: Path, style: str = "") -> Any:
    return config_from_hf(json.loads((folder / f"config{style}.json").read_text()))


def loaded(folder: Path) -> Any:
    built: Any = build_model(config_of(folder), seed=1)
    import_hf(dict(built.parameters_and_names()), built.name_table(), folder / "model.safetensors")
    return built


def by_hub(built: Any, values: Mapping[str, NDArray[np.float32]]) -> Arrays:
    return dict(to_hub(built.name_table(), values))


@pytest.mark.parametrize("name", MODELS)
def test_both_spellings_of_the_config_are_one_model(shared: Path, name: str) -> None:
    folder = shared / "golden" / name
    assert config_of(folder) == config_of(folder, ".hub_style")
    counted = json.loads((folder / "info.json").read_text())["parameters"]
    biases = sum(item.size for key, item in load_file(folder / "model.safetensors").items() if "correction_bias" in key)
    assert parameter_count(config_of(folder)) == counted - biases


@pytest.mark.parametrize("name", MODELS)
def test_forward(shared: Path, name: str) -> None:
    folder = shared / "golden" / name
    built, golden = loaded(folder), load_file(folder / "golden.safetensors")
    ids, labels = tensor(golden["input_ids"]), tensor(golden["labels"])
    np.testing.assert_allclose(built.config.rotary.inverse_frequencies(), golden["rope.inv_freq"], rtol=1e-6)
    assert built.config.rotary.amplitude == pytest.approx(float(golden["rope.cos_sin_factor"]), rel=1e-6)
    assert built.config.attention.softmax_scale == pytest.approx(float(golden["attn.softmax_scale"]), rel=1e-6)
    logits = built.logits(ids)
    np.testing.assert_allclose(logits.asnumpy(), golden["logits"], atol=HIDDEN)
    token_loss = cross_entropy(logits.reshape((-1, logits.shape[-1])), labels.reshape((-1,)))
    np.testing.assert_allclose(token_loss.asnumpy(), golden["token_loss"].reshape(-1), atol=HIDDEN)
    seen = built.trace(ids)
    assert {f"hidden.{layer}" for layer in range(built.config.num_hidden_layers)} < seen.keys()
    assert {f"router.{layer}.logits" for layer in built.config.moe_layers} <= seen.keys()
    for key, values in seen.items():
        if key.endswith("topk_indices"):
            np.testing.assert_array_equal(values, golden[key], err_msg=key)
        else:
            np.testing.assert_allclose(values, golden[key], atol=HIDDEN, err_msg=key)
    masked = built.loss(ids, labels, tensor(golden["loss_mask"]))
    assert float(masked.total) == pytest.approx(float(golden["loss_masked"]), abs=LOSS)
    counts = [golden[f"router.{layer}.tokens_per_expert"] for layer in built.config.moe_layers]
    assert masked.tokens_per_expert.asnumpy().tolist() == [count.tolist() for count in counts]


@pytest.mark.parametrize("name", MODELS)
def test_loss_and_gradients(shared: Path, name: str) -> None:
    folder = shared / "golden" / name
    built, golden = loaded(folder), load_file(folder / "golden.safetensors")
    ids, labels = tensor(golden["input_ids"]), tensor(golden["labels"])
    trained = list(built.trainable_params())
    parts, grads = ms.value_and_grad(lambda: tuple(built.loss(ids, labels)), None, trained, has_aux=True)()
    assert float(parts[0]) == pytest.approx(float(golden["loss"]), abs=LOSS)
    ours = {parameter.name: grad.asnumpy() for parameter, grad in zip(trained, grads, strict=True)}
    expected = load_file(folder / "grads.safetensors")
    mapped = by_hub(built, ours)
    assert mapped.keys() == expected.keys()
    for key, grad in expected.items():
        np.testing.assert_allclose(mapped[key], grad, rtol=0, atol=GRADIENT * float(np.abs(grad).max()), err_msg=key)


def settled(built: Any, gradients: list[ms.Tensor], reference: Arrays) -> list[ms.Tensor]:
    """The gradients, with the reference's where they are rounding noise: Adam's first step goes by their sign."""
    names = [parameter.name for parameter in built.trainable_params()]
    values = {name: gradient.asnumpy() for name, gradient in zip(names, gradients, strict=True)}
    for binding in (binding for row in built.name_table() for binding in row.bindings()):
        if binding.ours in values:
            whole = binding.layout.join([reference[name] for name in binding.hub])
            values[binding.ours] = np.where(np.abs(whole) < NOISE, whole, values[binding.ours])
    return [tensor(values[name]) for name in names]


@pytest.mark.parametrize("decay_all", [True, False])
@pytest.mark.parametrize("name", MODELS)
def test_three_steps_of_adamw(shared: Path, name: str, decay_all: bool) -> None:
    folder = shared / "golden" / name
    built, golden = loaded(folder), load_file(folder / "golden.safetensors")
    trained = list(built.trainable_params())
    flat = FlatParameters(trained, [decay_all or len(item.shape) > 1 for item in trained])
    optimizer = AdamW(flat, betas=(0.9, 0.95), eps=1e-8, weight_decay=0.01)
    compute = ms.value_and_grad(lambda *columns: tuple(built.loss(*columns)), None, trained, has_aux=True)
    for step in range(3):
        parts, grads = compute(tensor(golden["steps.input_ids"][step]), tensor(golden["steps.labels"][step]))
        flat.set_gradients(settled(built, grads, load_file(folder / "grads.safetensors")) if step == 0 else grads)
        if decay_all:
            assert float(parts[0]) == pytest.approx(float(golden["step_losses"][step]), abs=LOSS)
            assert global_norm(flat.gradients) == pytest.approx(float(golden["step_grad_norms"][step]), rel=GRADIENT)
        optimizer.update(1e-3)
    suffix = "" if decay_all else "_1d_without_decay"
    expected = load_file(folder / f"params_after_3_steps{suffix}.safetensors")
    mapped = by_hub(built, {item.name: item.asnumpy() for item in trained})
    assert all("correction_bias" in key for key in expected.keys() - mapped.keys())
    moved = np.concatenate([np.abs(mapped[key] - expected[key]).ravel() for key in mapped.keys() & expected.keys()])
    assert (moved > MOVED).mean() <= SHARE
    assert moved.max() <= MOVED_FAR
