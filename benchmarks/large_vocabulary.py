"""Peak memory of one training step with a large vocabulary, resident set at its largest (VmHWM; Linux).

Usage: python benchmarks/large_vocabulary.py [--write]

Each case is a process of its own: 2 layers, hidden 512, a vocabulary of 129,280 and 1 × 1,024 tokens, with an output
matrix of its own, with the embedding's, with multi-token prediction, and that in bfloat16. `--write` puts the
table into README.md.
"""

import json
import re
import resource
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np

from msmigrate.pynative import Model
from msmigrate.pynative.sections import Optimizer

SECTION = Model(
    model_type="deepseek_v3", architectures="DeepseekV3ForCausalLM", vocab_size=129280, seq_length=1024,
    hidden_size=512, intermediate_size=1408, num_hidden_layers=2, num_attention_heads=8, q_lora_rank=256,
    kv_lora_rank=128, qk_nope_head_dim=64, qk_rope_head_dim=32, v_head_dim=64, max_position_embeddings=1024,
    first_k_dense_replace=1, n_routed_experts=8, num_experts_per_tok=2, n_shared_experts=1, moe_intermediate_size=256,
    n_group=1, topk_group=1, num_nextn_predict_layers=0, compute_dtype="float32",
)  # fmt: skip
FURTHER = replace(SECTION, num_nextn_predict_layers=1, mtp_loss_scaling_factor=0.3)
CASES = {
    "own output matrix": SECTION,
    "tied to the embedding": replace(SECTION, tie_word_embeddings=True),
    "multi-token prediction": FURTHER,
    "multi-token prediction, compute_dtype bfloat16": replace(FURTHER, compute_dtype="bfloat16"),
    "the same, params_dtype bfloat16": replace(FURTHER, compute_dtype="bfloat16", params_dtype="bfloat16"),
}
README = Path(__file__).with_name("README.md")
ROWS = re.compile(r"(?<=\| case \| parameters \| peak \| loss \|\n\|---\|---\|---\|---\|\n)(?:\|.*\n)*")


def step(model_section: Model) -> dict[str, float]:
    """One step of AdamW in this process: parameters, peak memory in GiB, and the loss."""
    from msrt.data import MicroBatch
    from msrt.models import build_model, config_from_model_section, parameter_count
    from msrt.nn.precision import set_precision
    from msrt.ops.device import prepare
    from msrt.optim.clip import clip_by_global_norm
    from msrt.train.gradients import Gradients
    from msrt.train.optimizers import flatten, make_optimizer

    prepare()
    config = config_from_model_section(model_section)
    model = build_model(config, 0)
    set_precision(model, config.precision)
    flat = flatten(list(model.trainable_params()), Optimizer(), config.precision)
    optimizer = make_optimizer(flat, Optimizer())
    length = config.max_sequence or 0
    tokens = np.random.default_rng(0).integers(0, config.vocab_size, (1, length + 1)).astype(np.int32)
    mask, positions = np.ones((1, length), np.float32), np.arange(length, dtype=np.int32)[None]
    batch = MicroBatch(tokens[:, :-1].copy(), tokens[:, 1:].copy(), mask, positions, None, np.arange(1))
    loss = Gradients(model, flat, 1)([batch])
    clip_by_global_norm(flat.gradients, 1.0)
    optimizer.update(1e-3)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    return {"parameters": parameter_count(config), "peak": peak, "loss": loss.main}


def main(write: bool) -> None:
    """Run every case and print its row."""
    rows = ""
    for name in CASES:
        done = subprocess.run([sys.executable, __file__, "--case", name], capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(done.stderr)
        found = json.loads(done.stdout.splitlines()[-1])
        rows += f"| {name} | {found['parameters'] / 1e6:.0f} M | {found['peak']:.2f} GiB | {found['loss']:.3f} |\n"
    print(rows, end="")
    if write:
        README.write_text(ROWS.sub(rows, README.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    if "--case" in sys.argv:
        print(json.dumps(step(CASES[sys.argv[-1]])))
    else:
        main("--write" in sys.argv)
