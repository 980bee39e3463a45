"""The config.json that is made for weights that came without one: transformers must compute the same model from it."""

import json
from typing import Any

import pytest

from msmigrate.pynative import Model
from msrt.exchange.hf_files import config_json, made_config
from msrt.exchange.same_model import other_arithmetic
from msrt.models import config_from_hf, config_from_model_section

GROUPED: dict[str, Any] = {
    "vocab_size": 19,
    "hidden_size": 12,
    "intermediate_size": 10,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 6,
    "max_position_embeddings": 16,
    "rope_theta": 100.0,
    "rms_norm_eps": 1e-3,
}
EXPERTS: dict[str, Any] = {
    "n_routed_experts": 8,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 6,
    "norm_topk_prob": True,
    "moe_aux_loss_coeff": 0.0,
}
LATENT: dict[str, Any] = {
    **EXPERTS,
    "vocab_size": 19,
    "hidden_size": 12,
    "intermediate_size": 10,
    "num_hidden_layers": 2,
    "num_attention_heads": 3,
    "q_lora_rank": None,
    "kv_lora_rank": 5,
    "qk_nope_head_dim": 4,
    "qk_rope_head_dim": 6,
    "v_head_dim": 5,
    "qk_layernorm": True,
    "max_position_embeddings": 8,
    "position_embedding_type": "yarn",
    "scaling_factor": 4.0,
    "mscale": 0.7,
    "mscale_all_dim": 0.7,
    "first_k_dense_replace": 1,
    "n_group": 4,
    "topk_group": 2,
    "routed_scaling_factor": 1.5,
    "num_nextn_predict_layers": 0,
    "untie_embeddings_and_output_weights": False,
}


@pytest.mark.parametrize(
    ("family", "values"),
    [("qwen3", GROUPED), ("qwen3_moe", {**GROUPED, **EXPERTS}), ("llama", GROUPED), ("deepseek_v3", LATENT)],
)
def test_every_family_is_computed_alike(family: str, values: dict[str, Any]) -> None:
    section = Model(model_type=family, architectures="SomeForCausalLM", **values)
    made = json.loads(config_json(made_config(section, "bfloat16")))
    assert made["architectures"] == ["SomeForCausalLM"]
    assert made["torch_dtype"] == "bfloat16"
    assert other_arithmetic(config_from_model_section(section), config_from_hf(made)) == []


def test_what_cannot_be_said_to_transformers_is_listed() -> None:
    section = Model(model_type="deepseek_v3", architectures="X", **{**LATENT, "mscale": 1.0, "rms_norm_eps": 1e-4})
    made = made_config(section, "float32")
    lines = other_arithmetic(config_from_model_section(section), config_from_hf(made))
    assert [line.split(":")[0] for line in lines] == [
        "rotary.angle_scale", "rotary.amplitude", "attention.softmax_scale", "attention.latent_norm_eps",
    ]  # fmt: skip
    plain = config_from_hf({**made, "rope_scaling": None})
    assert any(line.endswith(".factor: None / 4.0") for line in other_arithmetic(plain, config_from_hf(made)))
    assert lines[-1] == "attention.latent_norm_eps: 0.0001 / 1e-06"
