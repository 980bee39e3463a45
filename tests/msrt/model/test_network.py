"""The whole network against the float64 oracle: logits, loss, gradients, and what masks do."""

import numpy as np
import pytest

from msmigrate.problems import UserError
from msrt.models.deepseek_v3.model import DeepSeekV3
from msrt.nn.init import initialise
from msrt.ops.autograd import tensor

from . import float64_oracle as oracle
from . import tiny_model
from .tiny_model import batch, gradients, model, parameters

VARIANTS: list[dict[str, object]] = [
    {},
    {"q_lora_rank": None},
    {"q_lora_rank": None, "qk_layernorm": False, "position_embedding_type": "rope"},
    {"qk_layernorm": False, "n_group": 0, "norm_topk_prob": False},
    {"scoring_func": "softmax", "n_shared_experts": 0},
    {"moe_router_score_function": "sqrtsoftplus", "moe_shared_expert_intermediate_size": 9},
    {"tie_word_embeddings": True, "first_k_dense_replace": 0},
    {"moe_router_enable_expert_bias": False, "num_experts_per_tok": 4},
    {"num_nextn_predict_layers": 1, "mtp_loss_scaling_factor": 0.3},
    {"num_nextn_predict_layers": None, "mtp_loss_scaling_factor": 2.0, "first_k_dense_replace": 2},
    {"num_nextn_predict_layers": 1, "mtp_loss_scaling_factor": 0.3, "tie_word_embeddings": True, "q_lora_rank": None},
]


def wide(built: DeepSeekV3) -> oracle.Weights:
    return {name: value.astype(np.float64) for name, value in parameters(built).items()}


@pytest.mark.parametrize("changes", VARIANTS)
def test_logits_and_loss_are_those_of_the_equations(changes: dict[str, object]) -> None:
    built = model(3, **changes)
    ids, labels = batch()
    logits, _ = oracle.forward(wide(built), built.config, ids.asnumpy())
    np.testing.assert_allclose(built.logits(ids).asnumpy(), logits, atol=2e-5)
    mask = np.random.default_rng(1).integers(0, 2, ids.shape).astype(np.float32)
    loss = oracle.total_loss(wide(built), built.config, ids.asnumpy(), labels.asnumpy(), mask.astype(np.float64))
    parts = built.loss(ids, labels, tensor(mask))
    assert float(parts.total) == pytest.approx(loss, abs=1e-5)
    further = sum(parts.mtp.asnumpy().tolist()) * (built.config.mtp_loss_scaling_factor or 0.0)
    assert float(parts.total) == pytest.approx(float(parts.main) + float(parts.aux) + further, abs=1e-6)


@pytest.mark.parametrize("changes", VARIANTS)
def test_gradients_are_the_slopes_of_the_float64_loss(changes: dict[str, object]) -> None:
    built = model(3, **changes)
    ids, labels = batch(seed=5)
    mask = np.ones(ids.shape)
    _, grads = gradients(built, ids, labels, tensor(mask.astype(np.float32)))
    weights, random = wide(built), np.random.default_rng(2)
    step = 1e-6
    for name, grad in grads.items():
        direction = random.standard_normal(grad.shape)
        losses = [
            oracle.total_loss(
                {**weights, name: weights[name] + sign * step * direction},
                built.config, ids.asnumpy(), labels.asnumpy(), mask,
            )
            for sign in (1, -1)
        ]  # fmt: skip
        slope = (losses[0] - losses[1]) / (2 * step)
        scale = float(np.linalg.norm(grad)) * float(np.linalg.norm(direction)) / np.sqrt(grad.size)
        assert float((grad * direction).sum()) == pytest.approx(slope, abs=1e-4 * scale + 1e-6), name


def test_the_expert_bias_gets_no_gradient() -> None:
    built = model()
    names = {parameter.name for parameter in built.trainable_params()}
    assert "decoder.layers.1.mlp.router.weight" in names
    assert "decoder.layers.1.mlp.expert_bias" not in names


def test_an_attention_mask_hides_other_documents() -> None:
    built = model()
    ids, _ = batch()
    document = np.array([0, 0, 0, 1, 1, 1, 1])
    hidden = np.broadcast_to(document[:, None] != document[None, :], (2, 7, 7))
    expected, _ = oracle.forward(wide(built), built.config, ids.asnumpy(), hidden)
    final = built.trace(ids, attention_mask=tensor(hidden[:, None]))["hidden.final_norm"].astype(np.float32)
    np.testing.assert_allclose(final @ parameters(built)["output_layer.weight"].T, expected, atol=2e-5)
    alone = built.logits(ids[:, 3:], tensor(np.broadcast_to(np.arange(3, 7, dtype=np.int32), (2, 4))))
    np.testing.assert_allclose(alone.asnumpy(), expected[:, 3:], atol=2e-5)


def test_ignored_labels_and_masked_tokens_do_not_count() -> None:
    built = model(moe_aux_loss_coeff=0.0)
    ids, labels = batch()
    ignored = labels.asnumpy().copy()
    ignored[0, :3] = -100
    mask = np.ones(ids.shape, np.float32)
    mask[0, :3] = 0
    by_label = built.loss(ids, tensor(ignored))
    by_mask = built.loss(ids, labels, tensor(mask))
    assert float(by_label.total) == pytest.approx(float(by_mask.total), abs=1e-6)
    assert float(by_label.aux) == 0.0


def test_a_batch_without_counted_tokens_has_loss_zero_and_no_gradient() -> None:
    built = model(moe_aux_loss_coeff=0.0)
    ids, labels = batch()
    loss, grads = gradients(built, ids, labels, tensor(np.zeros(ids.shape, np.float32)))
    assert loss == 0.0
    assert all(not grad.any() for grad in grads.values())


def test_chunks_of_the_loss_do_not_change_it(monkeypatch: pytest.MonkeyPatch) -> None:
    built = model()
    whole, grads = gradients(built, *batch())
    monkeypatch.setattr("msrt.ops.cross_entropy.CHUNK_ELEMENTS", 3 * 19)
    cut, cut_grads = gradients(built, *batch())
    assert cut == pytest.approx(whole, abs=1e-6)
    for name, grad in grads.items():
        np.testing.assert_allclose(cut_grads[name], grad, atol=1e-6)


def test_two_runs_and_recomputed_layers_give_the_same_bits() -> None:
    built = model()
    loss, grads = gradients(built, *batch())
    again, _ = gradients(built, *batch())
    router = built.decoder.layers[1].mlp.router
    runs: list[int] = []
    router.register_forward_pre_hook(lambda cell, inputs: runs.append(1))
    for layer in built.decoder.layers:
        layer.recompute()
    recomputed, recomputed_grads = gradients(built, *batch())
    assert len(runs) == 2
    assert loss == again == recomputed
    for name, grad in grads.items():
        np.testing.assert_array_equal(recomputed_grads[name], grad, err_msg=name)


def test_trace_names_what_the_probe_writes() -> None:
    built = model()
    ids, labels = batch()
    seen = built.trace(ids)
    assert set(seen) == {
        "hidden.embed", "hidden.0", "hidden.1", "hidden.final_norm",
        "router.1.logits", "router.1.topk_indices", "router.1.topk_weights",
    }  # fmt: skip
    indices, weights = seen["router.1.topk_indices"], seen["router.1.topk_weights"]
    assert indices.shape == weights.shape == (14, 2)
    assert (np.diff(indices.astype(np.int64), axis=1) > 0).all()
    np.testing.assert_allclose(weights.sum(1), 1.5, rtol=1e-6)
    counts = built.loss(ids, labels).tokens_per_expert.asnumpy()
    np.testing.assert_array_equal(counts, [np.bincount(indices.reshape(-1), minlength=8)])


def test_tokens_outside_the_vocabulary_and_long_samples_are_refused() -> None:
    built = model()
    ids, labels = batch()
    outside = ids.asnumpy().copy()
    outside[1, 2] = 19
    with pytest.raises(UserError, match=r"input_ids holds the token 19; model\.vocab_size 19 has the tokens 0 to 18"):
        built.loss(tensor(outside), labels)
    with pytest.raises(UserError, match="labels holds the token -7"):
        built.loss(ids, tensor(np.full(ids.shape, -7, np.int32)))
    with pytest.raises(UserError, match=r"A sample has 17 tokens; model\.seq_length is 16"):
        built.logits(batch(seq=17)[0])


def test_the_bias_moves_by_the_sign_of_the_load() -> None:
    built = model(moe_router_bias_update_rate=0.25)
    before = parameters(built)["decoder.layers.1.mlp.expert_bias"].copy()
    built.update_expert_bias(np.array([[0, 8, 4, 4, 4, 4, 5, 3]]))
    after = parameters(built)["decoder.layers.1.mlp.expert_bias"]
    np.testing.assert_allclose(after - before, [0.25, -0.25, 0, 0, 0, 0, -0.25, 0.25], atol=1e-7)


def test_initial_weights_depend_on_the_seed_and_the_name_alone() -> None:
    small, large, other = (DeepSeekV3(tiny_model.config(num_hidden_layers=layers)) for layers in (2, 3, 2))
    for built, seed in ((small, 7), (large, 7), (other, 8)):
        initialise(built, seed=seed, std=0.01)
    values = parameters(small)
    for name, value in values.items():
        np.testing.assert_array_equal(parameters(large)[name], value)
        assert value.ndim == 1 or not np.array_equal(parameters(other)[name], value)
    assert values["decoder.layers.1.mlp.experts.weight1"].std() == pytest.approx(0.01, rel=0.05)
    assert (values["decoder.layers.0.self_attention.q_layernorm.weight"] == 1).all()
    assert not values["decoder.layers.1.mlp.expert_bias"].any()


def test_no_two_matrices_start_alike() -> None:
    built = DeepSeekV3(tiny_model.config())
    initialise(built, seed=7, std=0.01)
    matrices = [value.reshape(-1)[:16].tobytes() for value in parameters(built).values() if value.ndim > 1]
    assert len(set(matrices)) == len(matrices)
