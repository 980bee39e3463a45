"""The networks of Qwen3, Qwen3-MoE and Llama: against the float64 oracle, against each other, and what they share."""

from typing import Any

import numpy as np
import pytest

from msrt.models import parameter_count
from msrt.models.gqa.model import GQACausalLM
from msrt.ops.autograd import tensor
from msrt.weights.layout import GroupedRows
from msrt.weights.names import to_hub

from . import float64_oracle as oracle
from .tiny_families import FAMILIES, config, model
from .tiny_model import batch, gradients, parameters

VARIANTS: list[tuple[str, dict[str, Any]]] = [
    ("qwen3", {}),
    ("qwen3", {"attention_bias": True, "num_key_value_heads": 4}),
    ("qwen3", {"tie_word_embeddings": True, "num_key_value_heads": 1, "head_dim": 10}),
    ("llama", {}),
    ("llama", {"attention_bias": True, "head_dim": 4}),
    ("llama", {"position_embedding_type": "yarn", "scaling_factor": 4.0, "max_position_embeddings": 8}),
    ("qwen3_moe", {}),
    ("qwen3_moe", {"norm_topk_prob": False, "mlp_only_layers": (0,), "routed_scaling_factor": 1.5}),
    ("qwen3_moe", {"decoder_sparse_step": 2, "scoring_func": "sigmoid", "n_shared_experts": 1}),
]


def wide(built: GQACausalLM) -> oracle.Weights:
    return {name: value.astype(np.float64) for name, value in parameters(built).items()}


@pytest.mark.parametrize(("family", "changes"), VARIANTS)
def test_logits_and_loss_are_those_of_the_equations(family: str, changes: dict[str, Any]) -> None:
    built = model(family, **changes)
    ids, labels = batch()
    logits, _ = oracle.forward(wide(built), built.config, ids.asnumpy())
    np.testing.assert_allclose(built.logits(ids).asnumpy(), logits, atol=2e-5)
    loss = oracle.total_loss(wide(built), built.config, ids.asnumpy(), labels.asnumpy(), np.ones(ids.shape))
    assert float(built.loss(ids, labels).total) == pytest.approx(loss, abs=1e-5)


@pytest.mark.parametrize(("family", "changes"), VARIANTS)
def test_gradients_are_the_slopes_of_the_float64_loss(family: str, changes: dict[str, Any]) -> None:
    built = model(family, **changes)
    ids, labels = batch(seed=5)
    _, grads = gradients(built, ids, labels)
    weights, random, step = wide(built), np.random.default_rng(2), 1e-6
    for name, grad in grads.items():
        direction = random.standard_normal(grad.shape)
        ahead, behind = (
            oracle.total_loss(
                {**weights, name: weights[name] + sign * step * direction},
                built.config, ids.asnumpy(), labels.asnumpy(), np.ones(ids.shape),
            )
            for sign in (1, -1)
        )  # fmt: skip
        scale = float(np.linalg.norm(grad)) * float(np.linalg.norm(direction)) / np.sqrt(grad.size)
        slope = (ahead - behind) / (2 * step)
        assert float((grad * direction).sum()) == pytest.approx(slope, abs=1e-4 * scale + 1e-6), name


def test_groups_are_heads_with_repeated_keys_and_values() -> None:
    grouped = model("qwen3", num_key_value_heads=2)
    plain = model("qwen3", seed=9, num_key_value_heads=4)
    for (name, parameter), (_, target) in zip(
        grouped.parameters_and_names(), plain.parameters_and_names(), strict=True
    ):
        values = parameter.asnumpy()
        if "linear_qkv" in name:
            q, k, v = GroupedRows(2, (12, 6, 6)).split(values)
            repeated = [np.repeat(x.reshape(2, 6, 12), 2, axis=0).reshape(24, 12) for x in (k, v)]
            values = GroupedRows(4, (6, 6, 6)).join([q, *repeated])
        target.set_data(tensor(values))
    ids, _ = batch()
    np.testing.assert_allclose(plain.logits(ids).asnumpy(), grouped.logits(ids).asnumpy(), atol=1e-5)


def test_an_attention_mask_hides_other_documents() -> None:
    built = model("qwen3")
    ids, _ = batch()
    document = np.array([0, 0, 0, 1, 1, 1, 1])
    hidden = np.broadcast_to(document[:, None] != document[None, :], (2, 7, 7))
    expected, _ = oracle.forward(wide(built), built.config, ids.asnumpy(), hidden)
    final = built.trace(ids, attention_mask=tensor(hidden[:, None]))["hidden.final_norm"].astype(np.float32)
    np.testing.assert_allclose(final @ parameters(built)["output_layer.weight"].T, expected, atol=2e-5)


def test_rows_of_a_group_stand_together() -> None:
    q, k, v = (np.array(rows, np.float32)[:, None] for rows in ([1, 2, 3, 4], [5, 6], [7, 8]))
    layout = GroupedRows(2, (2, 1, 1))
    whole = layout.join([q, k, v])
    assert whole.ravel().tolist() == [1, 2, 5, 7, 3, 4, 6, 8]
    for part, given in zip(layout.split(whole), (q, k, v), strict=True):
        np.testing.assert_array_equal(part, given)
    np.testing.assert_array_equal(layout.join([q[:, 0], k[:, 0], v[:, 0]]), whole[:, 0])


@pytest.mark.parametrize("family", FAMILIES)
def test_tied_embeddings_have_one_matrix(family: str) -> None:
    built = model(family, tie_word_embeddings=True)
    assert config(family, untie_embeddings_and_output_weights=False).tie_word_embeddings
    names = parameters(built)
    assert "output_layer.weight" not in names
    assert "lm_head.weight" not in to_hub(built.name_table(), names)
    _, grads = gradients(built, *batch())
    assert np.abs(grads["embedding.word_embeddings.weight"]).sum(axis=1).all()


@pytest.mark.parametrize(("family", "changes"), VARIANTS)
def test_parameters_are_counted_and_named(family: str, changes: dict[str, Any]) -> None:
    built = model(family, **changes)
    assert parameter_count(built.config) == sum(item.size for item in built.trainable_params())
    ours = parameters(built)
    bindings = [binding for row in built.name_table() for binding in row.bindings()]
    assert sorted(binding.ours for binding in bindings) == sorted(ours)
    hub = to_hub(built.name_table(), ours)
    assert sum(part.size for part in hub.values()) == sum(value.size for value in ours.values())
    for binding in bindings:
        joined = binding.layout.join([hub[name] for name in binding.hub])
        np.testing.assert_array_equal(joined, ours[binding.ours], err_msg=binding.ours)


def test_hub_names_are_those_of_the_families() -> None:
    names = {name.removeprefix("model.layers.1.") for name in to_hub(*named("qwen3")) if "layers.1." in name}
    assert {"self_attn.q_norm.weight", "self_attn.k_norm.weight", "self_attn.v_proj.weight"} < names
    assert {"mlp.gate_proj.weight", "input_layernorm.weight", "post_attention_layernorm.weight"} < names
    assert not any("norm" in name for name in to_hub(*named("llama")) if "self_attn" in name)
    experts = to_hub(*named("qwen3_moe"))
    assert {"model.layers.0.mlp.gate.weight", "model.layers.0.mlp.experts.7.up_proj.weight"} < experts.keys()
    assert not any("correction_bias" in name for name in experts)
    assert to_hub(*named("llama", attention_bias=True))["model.layers.0.self_attn.k_proj.bias"].shape == (12,)


def named(family: str, **changes: Any) -> tuple[Any, Any]:
    built = model(family, **changes)
    return built.name_table(), parameters(built)


def test_a_dense_model_has_nothing_to_balance() -> None:
    built = model("qwen3")
    built.start_step()
    parts = built.loss(*batch())
    assert parts.tokens_per_expert.shape == (0, 0)
    assert float(parts.load_balancing) == float(parts.aux) == 0.0
    before = {name: value.copy() for name, value in parameters(built).items()}
    built.update_expert_bias(parts.tokens_per_expert.asnumpy())
    for name, value in parameters(built).items():
        np.testing.assert_array_equal(value, before[name])
