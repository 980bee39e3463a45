"""Names of parameters and modules against those of MindFormers' own DeepSeek-V3 in PyNative mode."""

import json
from pathlib import Path
from typing import Any

import pytest

from msmigrate.pynative.model import Model
from msrt.models import build_model, config_from_model_section
from msrt.ops.device import prepare

prepare()

SECTION = Model(
    model_type="deepseek_v3", vocab_size=19, hidden_size=12, intermediate_size=10, num_hidden_layers=2,
    num_attention_heads=3, q_lora_rank=7, kv_lora_rank=5, qk_nope_head_dim=4, qk_rope_head_dim=6, v_head_dim=5,
    qk_layernorm=True, first_k_dense_replace=1, n_routed_experts=4, num_experts_per_tok=2, n_group=0,
    moe_intermediate_size=6, num_nextn_predict_layers=1, mtp_loss_scaling_factor=0.3,
)  # fmt: skip
"""A dense layer, one with experts, and one of multi-token prediction."""


@pytest.mark.parametrize("release", ["2.0.0", "2.1.0"])
def test_names_are_mindformers(shared: Path, release: str) -> None:
    theirs = json.loads((shared / "reference/module-paths.json").read_text())[release]
    built: Any = build_model(config_from_model_section(SECTION), seed=1)
    ours = {name for name, _ in built.parameters_and_names()}
    # The counts that MindFormers keeps in a buffer are an answer of `loss` here.
    assert ours == {item["name"] for item in theirs["parameters"] if not item["name"].endswith("tokens_per_expert")}
    for layer, known in enumerate((theirs["dense_layer"], theirs["moe_layer"])):
        modules = {name for name, _ in built.decoder.layers[layer].cells_and_names() if name}
        assert modules <= set(known)
        assert {"self_attention.core_attention", "input_layernorm", "mlp", "self_attention.linear_proj"} <= modules
