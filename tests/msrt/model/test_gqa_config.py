"""What Qwen3, Qwen3-MoE and Llama make of a config.json and of a model section."""

import math
from typing import Any

import numpy as np
import pytest

from msmigrate.problems import UserError
from msrt.models import config_from_hf, keys_without_effect
from msrt.models.gqa.config import GQAConfig
from msrt.nn.rotary import Llama3, RotarySpec, Yarn

from .tiny_families import FAMILIES, config, section


def from_hf(family: str, **changes: Any) -> GQAConfig:
    values: dict[str, Any] = {
        "model_type": family, "vocab_size": 19, "hidden_size": 12, "intermediate_size": 10, "num_hidden_layers": 4,
        "num_attention_heads": 3, "num_key_value_heads": 1, "head_dim": 8, "max_position_embeddings": 64,
        "rope_theta": 100.0, "num_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 6,
    }  # fmt: skip
    read = config_from_hf({**values, **changes})
    assert isinstance(read, GQAConfig)
    return read


REFUSED_SECTIONS: list[tuple[str, dict[str, Any], str]] = [
    ("qwen3", {"num_key_value_heads": 3}, r"num_key_value_heads is 3, which does not divide the 4 .*: 4 = 3 × 1 \+ 1"),
    ("qwen3", {"head_dim": 5}, "head_dim is 5; lanes rotate in pairs"),
    ("llama", {"head_dim": None, "num_attention_heads": 5, "num_key_value_heads": 5}, "5, which does not divide .*12"),
    ("llama", {"qk_layernorm": True}, "qk_layernorm is true; llama has no norms"),
    ("llama", {"hidden_act": "gelu"}, "hidden_act is 'gelu'"),
    ("qwen3", {"multi_latent_attention": True}, "multi_latent_attention is true; qwen3 has no MLA"),
    ("qwen3", {"num_nextn_predict_layers": 1}, "num_nextn_predict_layers is 1; qwen3 has no multi-token prediction"),
    ("qwen3", {"position_embedding_type": "learned_absolute"}, "'learned_absolute'; computed here are 'rope' and"),
    ("qwen3", {"position_embedding_type": "yarn"}, "no factor, which the type 'yarn' needs"),
    ("qwen3", {"rope_scaling": {"type": "dynamic", "factor": 2.0}}, "the type 'dynamic'"),
    ("qwen3", {"attention_dropout": 0.1}, "attention_dropout is 0.1; dropout"),
    ("qwen3_moe", {"num_experts_per_tok": 9}, "9 but there are only 8 experts"),
    ("qwen3_moe", {"moe_router_load_balancing_type": None}, "its default"),
    ("qwen3_moe", {"mlp_only_layers": (1,), "first_k_dense_replace": 1}, r"layers \[0\], .* to \[1\]: keep one"),
]


@pytest.mark.parametrize(("family", "changes", "message"), REFUSED_SECTIONS)
def test_refused_sections(family: str, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        config(family, **changes)


REFUSED_FILES: list[tuple[str, dict[str, Any], str]] = [
    ("qwen3", {"use_sliding_window": True}, "use_sliding_window: true; only false"),
    ("qwen3", {"layer_types": ["full_attention", "sliding_attention"]}, "layer_types: .*every layer is full_attention"),
    ("qwen3", {"layer_types": "sliding"}, "layer_types"),
    ("llama", {"mlp_bias": True}, "mlp_bias: true; only false"),
    ("llama", {"partial_rotary_factor": 0.5}, "partial_rotary_factor: 0.5"),
    ("llama", {"rope_parameters": {"rope_type": "default", "partial_rotary_factor": 0.5}}, "rotated whole"),
    ("llama", {"rope_scaling": {"rope_type": "longrope"}}, "computed here are default, linear, llama3, yarn"),
    ("llama", {"rope_scaling": {"type": "yarn", "factor": 2.0, "truncate": False}}, "truncate: false"),
    ("llama", {"quantization_config": {}}, "quantization_config"),
    ("llama", {"head_dim": "8"}, "head_dim is '8'; it must be an integer or null"),
    ("qwen3_moe", {"num_experts": None}, "num_experts is missing; it must be an integer"),
    ("qwen3_moe", {"mlp_only_layers": 3}, "mlp_only_layers is 3; it must be a list of layer numbers"),
]


@pytest.mark.parametrize(("family", "changes", "message"), REFUSED_FILES)
def test_refused_files(family: str, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        from_hf(family, **changes)


@pytest.mark.parametrize("family", FAMILIES)
def test_both_spellings_of_the_rotary_settings_are_one_model(family: str) -> None:
    scaling = {"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 16}
    parameters = {"rope_type": "yarn", "rope_theta": 100.0, "factor": 4.0, "original_max_position_embeddings": 16}
    hub, five = from_hf(family, rope_scaling=scaling), from_hf(family, rope_theta=1.0, rope_parameters=parameters)
    assert hub == five
    assert hub.rotary == RotarySpec(8, 100.0, Yarn(4.0, 16), amplitude=0.1 * math.log(4) + 1)
    flat = config(family, position_embedding_type="yarn", scaling_factor=4.0, original_max_position_embeddings=8)
    assert flat.rotary == RotarySpec(6, 100.0, Yarn(4.0, 8), amplitude=0.1 * math.log(4) + 1)


def test_llama_3_keeps_fast_lanes_divides_slow_ones_and_blends_between() -> None:
    scaling = {
        "rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
        "original_max_position_embeddings": 8192,
    }  # fmt: skip
    rotary = from_hf("llama", head_dim=128, rope_theta=5e5, rope_scaling=scaling).rotary
    assert rotary.stretch == Llama3(8.0, 8192, 1.0, 4.0)
    plain = RotarySpec(128, 5e5).inverse_frequencies().astype(np.float64)
    turns = 8192 * plain / (2 * math.pi)
    blend = (turns - 1) / 3
    expected = np.where(turns > 4, plain, np.where(turns < 1, plain / 8, (1 - blend) * plain / 8 + blend * plain))
    np.testing.assert_allclose(rotary.inverse_frequencies(), expected, rtol=1e-6)
    assert ((turns > 1) & (turns < 4)).sum() > 3


def test_linear_positions_are_divided() -> None:
    rotary = from_hf("llama", rope_scaling={"type": "linear", "factor": 4.0}).rotary
    cos, _ = (table.asnumpy() for table in rotary.tables(np.array([[8]])))
    plain, _ = (table.asnumpy() for table in RotarySpec(8, 100.0).tables(np.array([[2]])))
    np.testing.assert_allclose(cos, plain, atol=1e-6)


def test_sizes_that_a_file_leaves_out() -> None:
    llama = config_from_hf({"model_type": "llama", "hidden_size": 40, "num_attention_heads": 10})
    assert isinstance(llama, GQAConfig)
    spec = llama.attention
    assert (spec.num_key_value_heads, spec.head_dim, spec.qk_norm_eps, spec.qkv_bias) == (10, 4, None, False)
    assert from_hf("llama", head_dim=None, num_key_value_heads=None).attention.head_dim == 4
    assert config("qwen3", head_dim=None).attention.head_dim == 128
    moe = config("qwen3_moe", n_routed_experts=None).moe
    assert moe is not None
    assert moe.router.num_experts == 128


@pytest.mark.parametrize("family", FAMILIES)
def test_a_section_and_a_file_of_one_shape_are_one_network(family: str) -> None:
    words = {
        "hidden_size": 12, "num_hidden_layers": 4, "num_attention_heads": 3, "num_key_value_heads": 1, "head_dim": 8,
        "max_position_embeddings": 64, "rms_norm_eps": 1e-6, "norm_topk_prob": None, "moe_aux_loss_coeff": None,
    }  # fmt: skip
    ours, file = config(family, **words), from_hf(family)
    assert (ours.attention, ours.rotary, ours.moe, ours.moe_layers) == (
        file.attention, file.rotary, file.moe, file.moe_layers,
    )  # fmt: skip
    assert ours.rms_norm_eps == file.rms_norm_eps


def test_a_bias_reaches_the_output_projection_in_one_and_not_in_the_other() -> None:
    file, ours = from_hf("llama", attention_bias=True).attention, config("llama", attention_bias=True).attention
    assert (file.qkv_bias, file.proj_bias) == (True, True)
    assert (ours.qkv_bias, ours.proj_bias) == (True, False)


@pytest.mark.parametrize(
    ("changes", "layers"),
    [
        ({}, (0, 1, 2, 3)),
        ({"decoder_sparse_step": 2}, (1, 3)),
        ({"mlp_only_layers": [0, 3]}, (1, 2)),
        ({"decoder_sparse_step": 2, "mlp_only_layers": [1]}, (3,)),
        ({"mlp_only_layers": None, "decoder_sparse_step": 5}, ()),
    ],
)
def test_layers_with_experts(changes: dict[str, Any], layers: tuple[int, ...]) -> None:
    assert from_hf("qwen3_moe", **changes).moe_layers == layers
    dense = changes.get("mlp_only_layers")
    ours = {**changes, "mlp_only_layers": None if dense is None else tuple(dense)}
    assert config("qwen3_moe", num_hidden_layers=4, **ours).moe_layers == layers


def test_layers_with_experts_in_mindformers_words() -> None:
    assert config("qwen3_moe", num_hidden_layers=4, first_k_dense_replace=3).moe_layers == (3,)
    assert config("qwen3_moe", num_hidden_layers=4, moe_layer_freq=2).moe_layers == (0, 2)


def test_the_router_of_qwen3_moe_is_a_softmax_without_bias() -> None:
    for read in (from_hf("qwen3_moe", norm_topk_prob=True), config("qwen3_moe")):
        assert read.moe is not None
        assert (read.moe.router.score_function, read.moe.router.norm_topk_prob) == ("softmax", True)
        assert not read.moe.expert_bias
    default = from_hf("qwen3_moe").moe
    assert default is not None
    assert not default.router.norm_topk_prob
    assert default.balance is None


def test_keys_of_other_families_are_named() -> None:
    assert keys_without_effect(section("qwen3")) == {}
    given = section("qwen3", q_lora_rank=3, n_routed_experts=8, mscale=2.0, qk_layernorm=True)
    named = keys_without_effect(given)
    assert named.keys() == {"q_lora_rank", "n_routed_experts", "mscale", "qk_layernorm"}
    assert all(reason.endswith(".") for reason in named.values())
    assert "n_routed_experts" not in keys_without_effect(section("qwen3_moe"))
