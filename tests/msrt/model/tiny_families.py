"""Small models of the families with grouped-query attention."""

from dataclasses import replace
from typing import Any

import numpy as np

from msmigrate.pynative.model import Model as Section
from msrt.models import build_model, config_from_model_section
from msrt.models.gqa.config import GQAConfig
from msrt.models.gqa.model import GQACausalLM
from msrt.ops.autograd import tensor
from msrt.ops.device import prepare

prepare()

FAMILIES = ("qwen3", "qwen3_moe", "llama")

DENSE = Section(
    vocab_size=19,
    seq_length=16,
    hidden_size=12,
    intermediate_size=10,
    num_hidden_layers=2,
    num_attention_heads=4,
    num_key_value_heads=2,
    head_dim=6,
    max_position_embeddings=16,
    rope_theta=100.0,
    rms_norm_eps=1e-3,
    compute_dtype="float32",
)
EXPERTS = replace(
    DENSE,
    n_routed_experts=8,
    num_experts_per_tok=2,
    moe_intermediate_size=6,
    norm_topk_prob=True,
    moe_aux_loss_coeff=0.1,
    moe_router_load_balancing_type="seq_aux_loss",
)


def section(family: str, **changes: Any) -> Section:
    """The model section of a small model of `family`, with some keys changed."""
    return replace(EXPERTS if family == "qwen3_moe" else DENSE, model_type=family, **changes)


def config(family: str, **changes: Any) -> GQAConfig:
    read = config_from_model_section(section(family, **changes))
    assert isinstance(read, GQAConfig)
    return read


def model(family: str, seed: int = 3, **changes: Any) -> GQACausalLM:
    """A model with large random weights, and norms and biases that matter."""
    built = build_model(replace(config(family, **changes), initializer_range=0.4), seed)
    assert isinstance(built, GQACausalLM)
    random = np.random.default_rng(seed)
    for name, parameter in built.parameters_and_names():
        if name.endswith(("layernorm.weight", "bias")):
            moved = parameter.asnumpy() + 0.2 * random.standard_normal(parameter.shape)
            parameter.set_data(tensor(moved.astype(np.float32)))
    return built
