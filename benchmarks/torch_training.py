"""The half of training_quality.py that runs under transformers and torch; it imports nothing of this project.

Usage: PYTHON torch_training.py FOLDER

FOLDER holds hf/ (config.json and initial weights), input_ids.npy, labels.npy and loss_mask.npy, each (steps, batch,
seq), and settings.json. Writes torch.json: the loss of each step before its update, and the seconds of all.
"""

import json
import sys
import time
from pathlib import Path

import numpy as np
import torch
from transformers import AutoModelForCausalLM, get_cosine_with_min_lr_schedule_with_warmup


def main(folder: Path) -> None:
    settings = json.loads((folder / "settings.json").read_text())
    columns = [torch.from_numpy(np.load(folder / f"{name}.npy")) for name in ("input_ids", "labels", "loss_mask")]
    model, info = AutoModelForCausalLM.from_pretrained(folder / "hf", dtype=torch.float32, output_loading_info=True)
    misfits = {kind: list(names) for kind, names in info.items() if names}
    if misfits:
        sys.exit(f"transformers reads other weights than were written: {misfits}")
    model.train()
    optimizer = torch.optim.AdamW(
        decay_groups(model, settings["weight_decay"]),
        lr=settings["learning_rate"],
        betas=settings["betas"],
        eps=settings["eps"],
    )
    schedule = get_cosine_with_min_lr_schedule_with_warmup(
        optimizer, settings["warmup_steps"], len(columns[0]), min_lr=settings["lr_end"]
    )
    losses = []
    started = time.perf_counter()
    for ids, labels, mask in zip(*columns, strict=True):
        logits = model(input_ids=ids.long(), use_cache=False).logits
        token_loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten().long(), reduction="none")
        loss = (token_loss * mask.flatten()).sum() / mask.sum()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), settings["max_norm"])
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    seconds = time.perf_counter() - started
    (folder / "torch.json").write_text(json.dumps({"losses": losses, "seconds": seconds}))


def decay_groups(model: torch.nn.Module, weight_decay: float) -> list[dict[str, object]]:
    """Matrices decay, vectors (norms, biases) do not."""
    parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
    return [
        {"params": [parameter for parameter in parameters if parameter.ndim > 1], "weight_decay": weight_decay},
        {"params": [parameter for parameter in parameters if parameter.ndim <= 1], "weight_decay": 0.0},
    ]


if __name__ == "__main__":
    main(Path(sys.argv[1]))
