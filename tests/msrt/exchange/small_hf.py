"""A small DeepSeek-V3 as a Hugging Face folder, and the pynative.yaml that describes the same model."""

import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from typer.testing import CliRunner, Result

from msrt.commands import app
from msrt.models import config_from_hf, empty_model
from msrt.models.registry import ModelConfig
from msrt.ops.autograd import array
from msrt.ops.device import prepare
from msrt.weights.safetensors import STORED, read_header
from msrt.weights.safetensors_file import TensorSpec, write_safetensors

CONFIG: dict[str, Any] = {
    "architectures": ["DeepseekV3ForCausalLM"],
    "model_type": "deepseek_v3",
    "vocab_size": 257,
    "hidden_size": 16,
    "intermediate_size": 24,
    "num_hidden_layers": 2,
    "num_nextn_predict_layers": 0,
    "num_attention_heads": 2,
    "q_lora_rank": 6,
    "kv_lora_rank": 5,
    "qk_nope_head_dim": 4,
    "qk_rope_head_dim": 4,
    "v_head_dim": 6,
    "max_position_embeddings": 64,
    "rms_norm_eps": 1e-6,
    "rope_theta": 10000.0,
    "rope_scaling": {
        "type": "yarn",
        "factor": 4.0,
        "original_max_position_embeddings": 16,
        "beta_fast": 32,
        "beta_slow": 1,
        "mscale": 1.0,
        "mscale_all_dim": 1.0,
    },
    "first_k_dense_replace": 1,
    "n_routed_experts": 4,
    "num_experts_per_tok": 2,
    "n_shared_experts": 1,
    "n_group": 1,
    "topk_group": 1,
    "moe_intermediate_size": 8,
    "routed_scaling_factor": 1.5,
    "eos_token_id": 256,
}

YAML = """\
checkpoint: {enable_save: False}
training: {steps: 1, local_batch_size: 1, global_batch_size: 1}
lr_scheduler: {type: ConstantWarmUpLR, learning_rate: 1.0e-3, warmup_ratio: 0}
train_dataset:
  dataloader:
    type: BlendedMegatronDatasetDataLoader
    sizes: [1, 0, 0]
    config: {split: "1, 0, 0", seq_length: 32, eod: 256, create_attention_mask: False, data_path: ["1", "corpus"]}
    column_names: ["input_ids", "labels", "loss_mask", "position_ids"]
model:
  model_type: deepseek_v3
  architectures: DeepseekV3ForCausalLM
  vocab_size: 257
  seq_length: 32
  hidden_size: 16
  intermediate_size: 24
  num_hidden_layers: 2
  num_nextn_predict_layers: 0
  num_attention_heads: 2
  q_lora_rank: 6
  kv_lora_rank: 5
  qk_nope_head_dim: 4
  qk_rope_head_dim: 4
  v_head_dim: 6
  qk_layernorm: True
  max_position_embeddings: 16
  position_embedding_type: yarn
  rotary_scaling_factor: 4.0
  mscale: 1.0
  mscale_all_dim: 1.0
  first_k_dense_replace: 1
  n_routed_experts: 4
  num_experts_per_tok: 2
  n_shared_experts: 1
  n_group: 1
  topk_group: 1
  moe_intermediate_size: 8
  routed_scaling_factor: 1.5
  moe_aux_loss_coeff: 0.0
  compute_dtype: float32
"""

Tensors = dict[str, NDArray[Any]]


def hf_folder(folder: Path, dtype: str = "F32", **changes: Any) -> Path:
    """A folder with config.json and random weights of a type, bfloat16 as its bits."""
    prepare()
    config = {**CONFIG, **changes}
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(config, indent=1))
    write(folder / "model.safetensors", {name: (dtype, bits(value, dtype)) for name, value in weights(config).items()})
    return folder


def weights(config: dict[str, Any]) -> Tensors:
    """Random float32 values for every tensor of the model of a config.json."""
    return weights_of(config_from_hf(config))


def weights_of(config: ModelConfig) -> Tensors:
    """Random float32 values for every Hugging Face tensor of a model."""
    model: Any = empty_model(config)
    parameters = dict(model.parameters_and_names())
    random = np.random.default_rng(7)
    return {
        name: (random.standard_normal(part.shape) / 3 + ("norm" in name)).astype(np.float32)
        for row in model.name_table()
        for binding in row.bindings()
        for name, part in zip(binding.hub, binding.layout.split(array(parameters[binding.ours])), strict=True)
    }


def bits(value: NDArray[np.float32], dtype: str) -> NDArray[Any]:
    """Float32 values as a type stores them."""
    if dtype == "BF16":
        return (value.view(np.uint32) >> 16).astype(np.uint16)
    return value.astype(STORED[dtype])


def write(path: Path, tensors: dict[str, tuple[str, NDArray[Any]]]) -> None:
    """A safetensors file of (type, stored values) by name."""
    specs = [TensorSpec(name, dtype, value.shape) for name, (dtype, value) in tensors.items()]
    path.unlink(missing_ok=True)
    write_safetensors(path, specs, [value for _, value in tensors.values()])


def stored(folder: Path) -> dict[str, tuple[str, tuple[int, ...], bytes]]:
    """Type, shape and bytes of every tensor in a folder's safetensors files."""
    return {
        name: (item.dtype, item.shape, item.raw().tobytes())
        for file in sorted(folder.glob("*.safetensors"))
        for name, item in read_header(file).items()
    }


def invoke(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def done(*arguments: object) -> Result:
    """A command that must succeed."""
    result = invoke(*arguments)
    assert result.exit_code == 0, result.output
    return result
