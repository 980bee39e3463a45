"""Runs of a tiny model that save and resume, through the command, in the working folder."""

import json
import re
from pathlib import Path

from typer.testing import CliRunner, Result

from msrt.commands import app

TINY = """\
checkpoint: {enable_save: True, save_path: saved, save_interleaved_steps: 2}
training: {steps: 6, local_batch_size: 1, global_batch_size: 2, seed: 1, deterministic: True}
lr_scheduler: {type: LinearWithWarmUpLR, learning_rate: 5.0e-3, warmup_ratio: 0.5}
train_dataset:
  dataloader:
    type: BlendedMegatronDatasetDataLoader
    sizes: [12, 0, 0]
    shuffle: True
    config:
      split: "1, 0, 0"
      seq_length: 8
      create_attention_mask: False
      eod: 256
      data_path: ["1", "corpus"]
    column_names: ["input_ids", "labels", "loss_mask", "position_ids"]
model:
  model_type: deepseek_v3
  architectures: DeepseekV3ForCausalLM
  vocab_size: 257
  seq_length: 8
  hidden_size: 16
  intermediate_size: 16
  num_hidden_layers: 2
  num_attention_heads: 2
  max_position_embeddings: 8
  q_lora_rank: 8
  kv_lora_rank: 8
  qk_rope_head_dim: 4
  qk_nope_head_dim: 4
  v_head_dim: 4
  compute_dtype: float32
  num_nextn_predict_layers: 0
  position_embedding_type: rope
  first_k_dense_replace: 1
  n_routed_experts: 4
  num_experts_per_tok: 2
  n_shared_experts: 1
  n_group: 1
  topk_group: 1
  moe_intermediate_size: 8
  moe_router_enable_expert_bias: True
  moe_router_bias_update_rate: 0.01
  moe_router_load_balancing_type: global_aux_loss
  moe_aux_loss_coeff: 0.01
"""

OF_TIME = ("step_time_ms", "tokens_per_s")


def prepare(folder: Path) -> None:
    """tiny.yaml and its corpus."""
    (folder / "tiny.yaml").write_text(TINY)
    (folder / "text.txt").write_text("to be, or not to be, that is the question. " * 12)
    assert invoke("make-data", "text.txt", "-o", "corpus", "--append-eod").exit_code == 0


def invoke(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments))


def arguments(output: str, *settings: str, resume: str | None = None) -> list[str]:
    """The command line of a run into the folder `output`."""
    given = [part for setting in settings for part in ("--set", setting)]
    return ["train", "tiny.yaml", "--output", output, *given, *([] if resume is None else ["--resume", resume])]


def train(output: str, *settings: str, resume: str | None = None, status: int = 0) -> Result:
    result = invoke(*arguments(output, *settings, resume=resume))
    assert result.exit_code == status, result.stderr
    assert "Traceback" not in result.stderr
    return result


def metrics(output: str) -> dict[int, dict[str, object]]:
    """A run's numbers by step, without those that depend on the clock."""
    rows = [json.loads(line) for line in Path(output, "metrics.jsonl").read_text().splitlines()]
    return {row["step"]: {name: value for name, value in row.items() if name not in OF_TIME} for row in rows}


def saved_steps(root: str) -> list[int]:
    found = (re.fullmatch(r"iteration_(\d{8})", path.name) for path in Path(root).iterdir())
    return sorted(int(match[1]) for match in found if match is not None)


def tensor_digests(root: str, step: int) -> dict[str, str]:
    """The SHA-256 of each safetensors file of a checkpoint."""
    metadata = json.loads(Path(root, f"iteration_{step:08d}", "metadata.json").read_text())
    return {name: file["sha256"] for name, file in metadata["files"].items() if name.endswith(".safetensors")}
