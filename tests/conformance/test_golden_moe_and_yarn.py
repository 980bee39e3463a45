"""YaRN against transformers' and MindFormers' numbers, experts' losses and biases and MTP against megatron-core's."""

import json
from pathlib import Path

import mindspore as ms
import numpy as np
import pytest

from msrt.models.batch import masked_labels, shifted_left
from msrt.nn.balance import BalanceSpec, balance
from msrt.nn.moe import updated_bias
from msrt.nn.rotary import RotarySpec, Yarn, transformers_amplitude, yarn_mscale
from msrt.nn.router import RouterSpec, Routing, choose_experts, score
from msrt.ops.autograd import array, tensor
from msrt.ops.cross_entropy import cross_entropy
from msrt.ops.device import prepare

prepare()


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


def test_the_loss_two_tokens_ahead(shared: Path) -> None:
    info = json.loads((shared / "golden/moe_losses/info.json").read_text())["cases"]["mtp1"]
    golden = np.load(shared / "golden/moe_losses/golden.npz")
    labels, mask = (tensor(golden[f"mtp1.{name}"]) for name in ("labels", "loss_mask"))
    after, counted = shifted_left(labels), shifted_left(mask)
    for column, name in ((after, "labels_rolled"), (counted, "mask_rolled")):
        np.testing.assert_array_equal(column.asnumpy(), golden[f"mtp1.0.{name}"])
    targets, shares = masked_labels(after, counted, info["vocab"])

    def loss(logits: ms.Tensor) -> ms.Tensor:
        scale = info["mtp_loss_scaling_factor"] / info["layers"]
        return (cross_entropy(logits.reshape((-1, info["vocab"])), targets) * shares).sum() * scale

    value, grad = ms.value_and_grad(loss)(tensor(golden["mtp1.0.logits"]))
    assert float(value) == pytest.approx(float(golden["mtp1.total_added"]), rel=1e-6)
    np.testing.assert_allclose(grad.asnumpy(), golden["mtp1.0.grad_logits"], rtol=0, atol=1e-7)
