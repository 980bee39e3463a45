"""Whether msrt learns as much from the same tokens as transformers with torch does.

Usage: python benchmarks/training_quality.py --torch-python PYTHON [--family deepseek_v3|qwen3_moe] [--steps N]

PYTHON is the interpreter of an environment of its own with torch, transformers, numpy and safetensors. A small model
is trained here on the demo's text; its initial weights (a Hugging Face folder) and its batches go to torch_training.py,
which trains the same model with transformers. Both use AdamW with the same decay groups, clipping and schedule, float32
and no auxiliary loss. The figure is the ratio of the mean losses of the last ten steps; status 1 when it is off by more
than 1 % or the first losses differ. The row of the family in benchmarks/README.md is written anew.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from msmigrate.options import ExpertMesh
from msrt.config.checked import Checked, check_config

HERE = Path(__file__).parent
TOPICS = HERE.parent / "examples" / "deepseek_v3_small" / "write_topics.py"
HEADING = "## Training quality"
LAST = 10
TOLERANCE = 0.01
FIRST_TOLERANCE = 1e-5
"""The first losses come from the same weights and tokens: only rounding may differ."""

RUN = """\
checkpoint: {{enable_save: False}}
training: {{steps: {steps}, local_batch_size: 4, global_batch_size: 4, seed: 42, max_norm: 1.0}}
optimizer: {{type: AdamW, betas: [0.9, 0.95], eps: 1.0e-8, weight_decay: 0.1}}
lr_scheduler:
  {{type: CosineWithWarmUpLR, learning_rate: 3.0e-3, lr_end: 3.0e-4, warmup_steps: {warmup}, warmup_ratio: null}}
train_dataset:
  dataloader:
    type: BlendedMegatronDatasetDataLoader
    sizes: [{samples}, 0, 0]
    config:
      split: "1, 0, 0"
      seq_length: 256
      create_attention_mask: False
      eod: 256
      data_path: ["1", "{corpus}"]
    column_names: ["input_ids", "labels", "loss_mask", "position_ids"]
model:
  vocab_size: 257
  seq_length: 256
  hidden_size: 256
  intermediate_size: 704
  num_hidden_layers: 4
  num_attention_heads: 4
  max_position_embeddings: 256
  rope_theta: 10000
  rms_norm_eps: 1.0e-6
  initializer_range: 0.02
  compute_dtype: float32
  n_routed_experts: 8
  num_experts_per_tok: 2
  moe_intermediate_size: 192
  norm_topk_prob: True
  moe_aux_loss_coeff: 0.0
  moe_router_load_balancing_type: seq_aux_loss
"""
FAMILIES = {
    "deepseek_v3": """\
  model_type: deepseek_v3
  architectures: DeepseekV3ForCausalLM
  q_lora_rank: 96
  kv_lora_rank: 64
  qk_rope_head_dim: 32
  qk_nope_head_dim: 32
  v_head_dim: 64
  qk_layernorm: True
  position_embedding_type: rope
  rotary_scaling_factor: 1.0
  first_k_dense_replace: 1
  n_shared_experts: 1
  n_group: 4
  topk_group: 2
  routed_scaling_factor: 1.0
  scoring_func: sigmoid
  moe_router_bias_update_rate: 0.0
  num_nextn_predict_layers: 0
""",
    "qwen3_moe": """\
  model_type: qwen3_moe
  architectures: Qwen3MoeForCausalLM
  num_key_value_heads: 2
  head_dim: 64
""",
}


def main(torch_python: str, family: str, steps: int, folder: Path) -> bool:
    """Train both, print and record the ratio; whether it is within the tolerance."""
    ours, seconds = train_here(checked_config(family, steps, folder), folder)
    subprocess.run([torch_python, str(HERE / "torch_training.py"), str(folder)], check=True)
    torch = json.loads((folder / "torch.json").read_text())
    theirs: list[float] = torch["losses"]
    start = abs(ours[0] / theirs[0] - 1)
    mean, other = (sum(losses[-LAST:]) / LAST for losses in (ours, theirs))
    ratio = mean / other
    print(f"{family}: {steps} steps of 1,024 tokens, first losses {ours[0]:.6f} and {theirs[0]:.6f}")
    print(f"mean loss of the last {LAST} steps: msrt {mean:.4f}, torch {other:.4f}, ratio {ratio:.4f}")
    print(f"seconds: msrt {seconds:.0f}, torch {torch['seconds']:.0f}")
    record(family, f"| {family} | {steps} | {ours[0]:.4f} | {mean:.4f} | {other:.4f} | {ratio:.4f} |")
    return start <= FIRST_TOLERANCE and abs(ratio - 1) <= TOLERANCE


def checked_config(family: str, steps: int, folder: Path) -> Checked:
    """The run's config, with the corpus it reads."""
    from msrt.data import make_data

    subprocess.run([sys.executable, str(TOPICS), str(folder / "topics.jsonl")], check=True, stdout=subprocess.DEVNULL)
    made = make_data([folder / "topics.jsonl"], folder / "topics", append_eod=True)
    assert made.tokens > steps * 4 * 256, (
        f"the text has {made.tokens} tokens, too few for {steps} steps without repeats"
    )
    text = RUN.format(steps=steps, warmup=max(1, steps // 10), samples=4 * steps, corpus=folder / "topics")
    (folder / "pynative.yaml").write_text(text + FAMILIES[family])
    return check_config(str(folder / "pynative.yaml"), [], 1, ExpertMesh.PRODUCT)


def train_here(checked: Checked, folder: Path) -> tuple[list[float], float]:
    """The loss of each step and the seconds of all; initial weights, batches and settings are left in `folder`."""
    from msrt.data import MicroBatch
    from msrt.train.loop import train
    from msrt.train.metrics import StepMetrics
    from msrt.train.setup import set_up

    done: list[StepMetrics] = []
    seen: list[MicroBatch] = []

    def kept(batches: Iterator[MicroBatch]) -> Iterator[MicroBatch]:
        for batch in batches:
            seen.append(batch)
            yield batch

    with set_up(checked, folder / "index-cache", print) as run:
        write_hf_folder(run.model, checked, folder / "hf")
        train(replace(run, batches=kept(run.batches)), done.append)
    for column in ("input_ids", "labels", "loss_mask"):
        np.save(folder / f"{column}.npy", np.stack([getattr(batch, column) for batch in seen]))
    config = checked.config
    settings = {
        "learning_rate": config.lr_scheduler.learning_rate,
        "lr_end": config.lr_scheduler.lr_end,
        "warmup_steps": checked.numbers.warmup_steps,
        "betas": config.optimizer.betas,
        "eps": config.optimizer.eps,
        "weight_decay": config.optimizer.weight_decay,
        "max_norm": config.training.max_norm,
    }
    (folder / "settings.json").write_text(json.dumps(settings))
    return [step.loss for step in done], sum(step.step_time_ms for step in done) / 1000


def write_hf_folder(model: Any, checked: Checked, folder: Path) -> None:
    """The model's weights as transformers reads them."""
    from safetensors.numpy import save_file

    from msrt.exchange.hf_files import config_json, made_config
    from msrt.exchange.same_model import other_arithmetic
    from msrt.models import config_from_hf, config_from_model_section
    from msrt.ops.autograd import array
    from msrt.weights.hf import ONE_FILE

    section = checked.config.model
    values = made_config(section, "float32")
    differences = other_arithmetic(config_from_model_section(section), config_from_hf(values))
    assert not differences, f"transformers would compute another model: {differences}"
    cells = dict(model.parameters_and_names())
    tensors = {}
    for row in model.name_table():
        for binding in row.bindings():
            parts = binding.layout.split(array(cells[binding.ours]))
            tensors.update({name: np.ascontiguousarray(part) for name, part in zip(binding.hub, parts, strict=True)})
    folder.mkdir()
    save_file(tensors, folder / ONE_FILE, {"format": "pt"})
    (folder / "config.json").write_bytes(config_json(values))


def record(family: str, row: str) -> None:
    """Put the row of the family into the table of benchmarks/README.md."""
    readme = HERE / "README.md"
    before, heading, after = readme.read_text(encoding="utf-8").partition(HEADING)
    assert heading, f"{readme} has no heading {HEADING}"
    lines = [line for line in after.splitlines() if not line.startswith(f"| {family} |")]
    table = next(number for number, line in enumerate(lines) if line.startswith("|---"))
    lines.insert(table + 1, row)
    readme.write_text(before + heading + "\n".join(lines) + "\n", encoding="utf-8")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--torch-python", required=True, metavar="PYTHON")
    parser.add_argument("--family", choices=list(FAMILIES), default="deepseek_v3")
    parser.add_argument("--steps", type=int, default=120)
    return parser.parse_args()


if __name__ == "__main__":
    given = _arguments()
    with tempfile.TemporaryDirectory() as work:
        sys.exit(0 if main(given.torch_python, given.family, given.steps, Path(work)) else 1)
