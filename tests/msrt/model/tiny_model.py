"""Small DeepSeek-V3 models, token batches, and short ways to their parameters and gradients."""

from dataclasses import replace

import mindspore as ms
import numpy as np
from numpy.typing import NDArray

from msmigrate.pynative.model import Model as Section
from msrt.models.deepseek_v3.config import DeepSeekV3Config
from msrt.models.deepseek_v3.model import DeepSeekV3
from msrt.nn.init import initialise
from msrt.ops.autograd import tensor
from msrt.ops.device import prepare

prepare()

SECTION = Section(
    model_type="deepseek_v3",
    architectures="DeepseekV3ForCausalLM",
    vocab_size=19,
    seq_length=16,
    hidden_size=12,
    intermediate_size=10,
    num_hidden_layers=2,
    num_attention_heads=3,
    q_lora_rank=7,
    kv_lora_rank=5,
    qk_nope_head_dim=4,
    qk_rope_head_dim=6,
    v_head_dim=5,
    qk_layernorm=True,
    max_position_embeddings=8,
    position_embedding_type="yarn",
    rotary_scaling_factor=4.0,
    mscale=1.0,
    mscale_all_dim=0.5,
    first_k_dense_replace=1,
    n_routed_experts=8,
    num_experts_per_tok=2,
    n_shared_experts=1,
    moe_intermediate_size=6,
    n_group=4,
    topk_group=2,
    routed_scaling_factor=1.5,
    moe_aux_loss_coeff=0.1,
    moe_router_load_balancing_type="seq_aux_loss",
    num_nextn_predict_layers=0,
    compute_dtype="float32",
)


def config(**changes: object) -> DeepSeekV3Config:
    """The config of `SECTION` with some keys changed."""
    return DeepSeekV3Config.from_model_section(replace(SECTION, **changes))  # type: ignore[arg-type]  # any key


def model(seed: int = 3, **changes: object) -> DeepSeekV3:
    """A model with large random weights, norms around 1, and an expert bias that matters."""
    built = DeepSeekV3(config(**changes))
    initialise(built, seed=seed, std=0.4)
    random = np.random.default_rng(seed)
    for name, parameter in built.parameters_and_names():
        if name.endswith(("layernorm.weight", "expert_bias")):
            moved = parameter.asnumpy() + 0.2 * random.standard_normal(parameter.shape)
            parameter.set_data(tensor(moved.astype(np.float32)))
    return built


def parameters(built: DeepSeekV3) -> dict[str, NDArray[np.float32]]:
    return {name: parameter.asnumpy() for name, parameter in built.parameters_and_names()}


def batch(seed: int = 0, rows: int = 2, seq: int = 7, vocab: int = 19) -> tuple[ms.Tensor, ms.Tensor]:
    """Random inputs and labels, (rows, seq) int32."""
    tokens = np.random.default_rng(seed).integers(0, vocab, (rows, seq + 1)).astype(np.int32)
    return tensor(tokens[:, :-1]), tensor(tokens[:, 1:])


def gradients(built: DeepSeekV3, *columns: ms.Tensor | None) -> tuple[float, dict[str, NDArray[np.float32]]]:
    """The total loss and its gradient by parameter name."""
    trained = list(built.trainable_params())
    parts, grads = ms.value_and_grad(lambda: tuple(built.loss(*columns)), None, trained, has_aux=True)()
    return float(parts[0]), {p.name: g.asnumpy() for p, g in zip(trained, grads, strict=True)}
