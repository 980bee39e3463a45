"""Multi-token prediction: what it counts, what it shares with the main model, and its weights."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

from msmigrate.problems import UserError
from msrt.models.batch import shifted_left
from msrt.models.deepseek_v3.model import DeepSeekV3
from msrt.nn.init import initialise
from msrt.ops.autograd import array, tensor
from msrt.weights.hf import import_hf
from msrt.weights.names import to_hub

from .tiny_model import batch, config, gradients, model, parameters

MTP: dict[str, Any] = {"num_nextn_predict_layers": 1, "mtp_loss_scaling_factor": 0.3}


def test_columns_move_one_position() -> None:
    assert shifted_left(tensor(np.array([[1, 2, 3], [4, 5, 6]], np.int32))).asnumpy().tolist() == [[2, 3, 0], [5, 6, 0]]
    moved = shifted_left(tensor(np.array([[0.5]], np.float32)))
    assert (moved.asnumpy().tolist(), moved.asnumpy().dtype) == ([[0.0]], np.float32)


def test_parameters_have_mindformers_names() -> None:
    ours = {name.removeprefix("mtp.layers.0.") for name in parameters(model(**MTP)) if name.startswith("mtp.")}
    layer = {name.removeprefix("decoder.layers.1.") for name in parameters(model()) if "layers.1." in name}
    assert ours == {
        "enorm.weight", "hnorm.weight", "eh_proj.weight", "final_layernorm.weight",
        *(f"transformer_layer.{name}" for name in layer),
    }  # fmt: skip


def test_norms_start_at_one() -> None:
    built = DeepSeekV3(config(**MTP))
    initialise(built, seed=1, std=0.01)
    for name in ("enorm", "hnorm", "final_layernorm"):
        assert (parameters(built)[f"mtp.layers.0.{name}.weight"] == 1).all()


def test_the_main_model_does_not_feel_it() -> None:
    with_it, without = model(**MTP), model()
    for name, parameter in without.parameters_and_names():
        parameter.set_data(tensor(parameters(with_it)[name]))
    ids, labels = batch()
    assert (with_it.logits(ids).asnumpy() == without.logits(ids).asnumpy()).all()
    assert with_it.trace(ids).keys() == without.trace(ids).keys()
    one, other = with_it.loss(ids, labels), without.loss(ids, labels)
    assert float(one.main) == float(other.main)
    assert (one.mtp.shape, other.mtp.shape) == ((1,), (0,))


def test_the_first_label_and_what_the_mask_hides_do_not_count() -> None:
    built = model(**MTP)
    ids, labels = batch()
    whole = built.loss(ids, labels)
    changed = labels.asnumpy().copy()
    changed[:, 0] = (changed[:, 0] + 1) % 19
    other = built.loss(ids, tensor(changed))
    assert float(other.mtp[0]) == float(whole.mtp[0])
    assert float(other.main) != float(whole.main)
    mask, ignored = np.ones(labels.shape, np.float32), labels.asnumpy().copy()
    mask[1, 3:], ignored[1, 3:] = 0, -100
    by_mask, by_label = built.loss(ids, labels, tensor(mask)), built.loss(ids, tensor(ignored))
    assert float(by_mask.mtp[0]) == pytest.approx(float(by_label.mtp[0]), abs=1e-6)
    assert float(by_mask.mtp[0]) != pytest.approx(float(whole.mtp[0]), abs=1e-3)


def test_a_batch_without_counted_tokens_has_loss_zero_and_no_gradient() -> None:
    built = model(**MTP, moe_aux_loss_coeff=0.0)
    ids, labels = batch()
    loss, grads = gradients(built, ids, labels, tensor(np.zeros(ids.shape, np.float32)))
    assert loss == 0.0
    assert all(not grad.any() for grad in grads.values())


def test_a_weight_of_zero_leaves_its_layer_untrained() -> None:
    _, grads = gradients(model(**{**MTP, "mtp_loss_scaling_factor": 0.0}, moe_aux_loss_coeff=0.0), *batch())
    assert not any(grad.any() for name, grad in grads.items() if name.startswith("mtp."))
    assert grads["decoder.layers.0.mlp.linear_fc1.weight"].any()


def test_its_experts_are_balanced_and_biased_like_all_others() -> None:
    built = model(**MTP, moe_router_bias_update_rate=0.25, moe_router_load_balancing_type="global_aux_loss")
    first, second = batch(seed=1), batch(seed=2)
    parts = built.loss(*first)
    assert parts.tokens_per_expert.shape == (2, 8)
    assert parts.tokens_per_expert.asnumpy().sum(axis=1).tolist() == [28, 28]
    assert float(parts.aux) == pytest.approx(2 * 0.1 * float(parts.load_balancing), rel=1e-6)
    after_first = float(built.loss(*second).aux)
    built.start_step()
    assert float(built.loss(*second).aux) != pytest.approx(after_first, rel=1e-6)
    before = parameters(built)["mtp.layers.0.transformer_layer.mlp.expert_bias"].copy()
    built.update_expert_bias(np.array([[4] * 8, [0, 8, 4, 4, 4, 4, 5, 3]]))
    moved = parameters(built)["mtp.layers.0.transformer_layer.mlp.expert_bias"] - before
    np.testing.assert_allclose(moved, [0.25, -0.25, 0, 0, 0, 0, -0.25, 0.25], atol=1e-7)


def exported(built: DeepSeekV3) -> dict[str, Any]:
    values = to_hub(built.name_table(), parameters(built))
    return {name: np.ascontiguousarray(value) for name, value in values.items()}


def load(built: DeepSeekV3, source: Path) -> None:
    import_hf(dict(built.parameters_and_names()), built.name_table(), source)


@pytest.mark.parametrize("changes", [{}, {"tie_word_embeddings": True}, {"first_k_dense_replace": 2}])
def test_weights_come_back_with_and_without_the_shared_copies(changes: dict[str, Any], tmp_path: Path) -> None:
    built, other = model(3, **MTP, **changes), model(9, **MTP, **changes)
    tensors = exported(built)
    assert {"model.layers.2.eh_proj.weight", "model.layers.2.shared_head.norm.weight"} < tensors.keys()
    for copies in ({}, shared_copies(built)):
        save_file({**tensors, **copies}, tmp_path / "model.safetensors")
        load(other, tmp_path)
        for name, value in parameters(built).items():
            np.testing.assert_array_equal(parameters(other)[name], value, err_msg=name)


def shared_copies(built: DeepSeekV3) -> dict[str, Any]:
    ours = parameters(built)
    embedding = ours["embedding.word_embeddings.weight"]
    head = ours.get("output_layer.weight", embedding)
    again = {} if "output_layer.weight" in ours else {"lm_head.weight": head.copy()}
    return {
        "model.layers.2.embed_tokens.weight": embedding, "model.layers.2.shared_head.head.weight": head.copy(),
        **again,
    }  # fmt: skip


def test_a_copy_that_is_none_is_refused(tmp_path: Path) -> None:
    built = model(**MTP)
    copies = shared_copies(built)
    copies["model.layers.2.shared_head.head.weight"][0, 0] += 1
    save_file({**exported(built), **copies}, tmp_path / "model.safetensors")
    with pytest.raises(UserError, match=r"layers\.2\.shared_head\.head\.weight in .* differs from lm_head\.weight"):
        load(built, tmp_path)


def test_a_model_without_it_leaves_its_weights_alone(tmp_path: Path) -> None:
    source, plain = model(3, **MTP), model(9)
    save_file({**exported(source), **shared_copies(source)}, tmp_path / "model.safetensors")
    load(plain, tmp_path)
    for name, value in parameters(plain).items():
        np.testing.assert_array_equal(value, parameters(source)[name], err_msg=name)
    save_file(
        {**exported(source), "model.layers.3.eh_proj.weight": np.zeros(1, np.float32)}, tmp_path / "b.safetensors"
    )
    with pytest.raises(UserError, match=r"1 tensor is unexpected: model\.layers\.3\.eh_proj\.weight"):
        load(plain, tmp_path / "b.safetensors")


def test_two_runs_and_a_recomputed_layer_give_the_same_bits() -> None:
    built = model(**MTP)
    loss, grads = gradients(built, *batch())
    assert built.mtp is not None
    built.mtp.layers[0].recompute()
    again, recomputed = gradients(built, *batch())
    assert loss == again
    for name, grad in grads.items():
        np.testing.assert_array_equal(recomputed[name], grad, err_msg=name)
    assert array(built.loss(*batch()).mtp).dtype == np.float32
