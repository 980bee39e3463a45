"""DeepSeek-V3 against transformers' numbers, its losses and biases against megatron-core's."""

import json
from pathlib import Path

import mindspore as ms
import numpy as np
import pytest
from numpy.typing import NDArray
from safetensors.numpy import load_file

from msrt.models.deepseek_v3.config import DeepSeekV3Config
from msrt.models.deepseek_v3.model import DeepSeekV3
from msrt.nn.balance import BalanceSpec, balance
from msrt.nn.moe import updated_bias
from msrt.nn.rotary import RotarySpec, Yarn, transformers_amplitude, yarn_mscale
from msrt.nn.router import RouterSpec, Routing, choose_experts, score
from msrt.ops.autograd import array, tensor
from msrt.ops.cross_entropy import cross_entropy
from msrt.ops.device import prepare
from msrt.weights.hf import import_hf
from msrt.weights.names import to_hub

# Tolerances of the golden READMEs.
HIDDEN, LOSS, GRADIENT = 2e-5, 5e-6, 1e-5

MODELS = ["deepseek_v3_yarn_qlora", "deepseek_v3_noqlora"]
Arrays = dict[str, NDArray[np.generic]]

prepare()


def loaded(folder: Path, config_name: str = "config.json") -> DeepSeekV3:
    built = DeepSeekV3(DeepSeekV3Config.from_hf(json.loads((folder / config_name).read_text())))
    import_hf(dict(built.parameters_and_names()), built.name_table(), folder / "model.safetensors")
    return built


@pytest.mark.parametrize("name", MODELS)
def test_both_spellings_of_the_config_are_one_model(shared: Path, name: str) -> None:
    folder = shared / "golden" / name
    spelled = [json.loads((folder / f"config{style}.json").read_text()) for style in ("", ".hub_style")]
    assert DeepSeekV3Config.from_hf(spelled[0]) == DeepSeekV3Config.from_hf(spelled[1])


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
    for key, values in built.trace(ids).items():
        seen = values.astype(np.float64)
        if key.endswith("topk_indices"):
            np.testing.assert_array_equal(seen, golden[key], err_msg=key)
        else:
            np.testing.assert_allclose(seen, golden[key], atol=HIDDEN, err_msg=key)
    masked = built.loss(ids, labels, tensor(golden["loss_mask"]))
    assert float(masked.total) == pytest.approx(float(golden["loss_masked"]), abs=LOSS)
    counts = [golden[f"router.{layer}.tokens_per_expert"] for layer in built.config.moe_layers]
    np.testing.assert_array_equal(masked.tokens_per_expert.asnumpy(), counts)


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
    mapped = to_hub(built.name_table(), ours)
    assert mapped.keys() == expected.keys()
    for key, grad in expected.items():
        np.testing.assert_allclose(mapped[key], grad, rtol=0, atol=GRADIENT * float(np.abs(grad).max()), err_msg=key)


def test_yarn(shared: Path) -> None:
    cases = json.loads((shared / "golden/yarn/info.json").read_text())["cases"]
    golden = np.load(shared / "golden/yarn/golden.npz")
    for name, case in cases.items():
        yarn = Yarn(case["factor"], case["original_max_position"], case["beta_fast"], case["beta_slow"])
        spec = RotarySpec(case["dim"], case["base"], yarn)
        np.testing.assert_allclose(
            spec.inverse_frequencies(), golden[f"{name}.inv_freq_transformers"], rtol=1e-6, err_msg=name
        )
        amplitude = transformers_amplitude(case["factor"], case["mscale"], case["mscale_all_dim"])
        assert amplitude == pytest.approx(case["cos_sin_factor_transformers"], rel=1e-6)
        growth = yarn_mscale(case["factor"], case["mscale_all_dim"])
        scale = growth**2 / case["qk_head_dim"] ** 0.5
        assert scale == pytest.approx(case["softmax_scale_transformers"], rel=1e-6)


def test_mindformers_yarn(shared: Path) -> None:
    for name, case in json.loads((shared / "reference/runtime-goldens.json").read_text())["yarn"].items():
        if "args" not in case:
            continue
        args = case["args"]
        factor = args["scaling_factor"]
        yarn = Yarn(factor, args["original_max_position_embeddings"], args["beta_fast"], args["beta_slow"])
        spec = RotarySpec(args["kv_channels"], args["rotary_base"], yarn)
        np.testing.assert_allclose(spec.inverse_frequencies(), case["freqs"], rtol=1e-6, err_msg=name)
        growth = yarn_mscale(factor, args["mscale"])
        assert growth / yarn_mscale(factor, args["mscale_all_dim"]) == pytest.approx(case["rope_mscale"], rel=1e-6)
        assert growth**2 / 192**0.5 == pytest.approx(case["softmax_scale_for_192"], rel=1e-6)


MOE_CASES = ["sigmoid_top4_groups", "sigmoid_top2_nogroups", "softmax_top2", "sigmoid_batch1"]


@pytest.mark.parametrize("name", MOE_CASES)
def test_balance_losses_and_routing(shared: Path, name: str) -> None:
    info = json.loads((shared / "golden/moe_losses/info.json").read_text())["cases"][name]
    golden = np.load(shared / "golden/moe_losses/golden.npz")
    case = {key.removeprefix(name + "."): golden[key] for key in golden.files if key.startswith(name + ".")}
    seq, batch, k = info["seq_length"], info["batch"], info["topk"]
    # The fixture's rows are sequence-major, the model's batch-major.
    order = np.arange(seq * batch).reshape(seq, batch).T.reshape(-1)
    for kind in ("seq_aux_loss", "aux_loss"):
        spec = BalanceSpec(kind, info["coeff"], info["score"], k)

        def loss(logits: ms.Tensor, spec: BalanceSpec = spec) -> ms.Tensor:
            scores = score(logits, spec.score_function)
            routing = Routing(logits, scores, scores, scores)
            return balance(routing, batch, spec, np.zeros(info["experts"], np.float32)).loss * spec.coefficient

        value, grad = ms.value_and_grad(loss)(tensor(case["logits"][order]))
        assert float(value) == pytest.approx(float(case[kind]), rel=1e-5)
        expected = case[f"{kind}_grad_logits"][order]
        np.testing.assert_allclose(array(grad), expected, rtol=0, atol=1e-5 * np.abs(expected).max())
    moved = updated_bias(case["expert_bias"], case["tokens_per_expert"], info["bias_rate"])
    np.testing.assert_allclose(moved, case["expert_bias_updated"], atol=1e-7)
    if info["groups"] and k // info["group_topk"] != 2:
        return  # megatron-core sums the k / group_topk best experts of a group, MindFormers and transformers always two
    router = RouterSpec(
        info["experts"], k, info["groups"] or 0, info["group_topk"] or 0, info["score"], True, info["scaling"] or 1.0
    )
    choice = array(score(tensor(case["logits"]), info["score"])) + case["expert_bias"]
    chosen = choose_experts(choice, router)
    expected_map = case["routing_map"]
    np.testing.assert_array_equal(np.flatnonzero(expected_map).reshape(-1, k) % info["experts"], chosen)


def test_bias_over_several_steps(shared: Path) -> None:
    golden = np.load(shared / "golden/moe_losses/golden.npz")
    bias = np.zeros(4, np.float32)
    for tokens, expected in zip(golden["bias_rounds.tokens"], golden["bias_rounds.bias"], strict=True):
        bias = updated_bias(bias, tokens, 0.001)
        np.testing.assert_allclose(bias, expected, atol=1e-7)
