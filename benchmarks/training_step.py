"""Where the time of one training step goes, on the model of the demo with random tokens.

Usage: python benchmarks/training_step.py [STEPS]

Prints the median time of forward and backward, of clipping and of the optimizer, and tokens per second.
"""

import statistics
import sys
import time
from pathlib import Path

import numpy as np

from msmigrate.convert import convert
from msmigrate.options import Options
from msmigrate.pynative.load import load_config
from msmigrate.yaml.document import parse
from msmigrate.yaml.source import read_source

GRAPH = Path(__file__).parents[1] / "examples" / "deepseek_v3_small" / "graph.yaml"


def main(steps: int) -> None:
    """Time `steps` optimizer steps after two that warm up."""
    import mindspore as ms

    from msrt.models import build_model, config_from_model_section
    from msrt.ops.device import prepare
    from msrt.optim.clip import clip_by_global_norm
    from msrt.train.optimizers import flatten, make_optimizer

    text = convert(parse(read_source(str(GRAPH))), Options()).text
    assert text is not None
    config = load_config(text, "pynative.yaml").config
    prepare()
    model = build_model(config_from_model_section(config.model), 0)
    parameters = list(model.trainable_params())
    flat = flatten(parameters, config.optimizer)
    optimizer = make_optimizer(flat, config.optimizer)
    batch, length = config.training.local_batch_size, config.train_dataset.dataloader.config.seq_length
    tokens = np.random.default_rng(0).integers(0, 257, (batch, length + 1)).astype(np.int32)
    ids, labels = ms.Tensor(tokens[:, :-1]), ms.Tensor(tokens[:, 1:])
    mask = ms.Tensor(np.ones((batch, length), np.float32))
    gradient = ms.value_and_grad(lambda: tuple(model.loss(ids, labels, mask)), None, parameters, has_aux=True)
    times: dict[str, list[float]] = {"forward and backward": [], "clip": [], "AdamW": []}
    for _ in range(steps + 2):
        marks = [time.perf_counter()]
        _, found = gradient()
        flat.set_gradients(found)
        marks.append(time.perf_counter())
        clip_by_global_norm(flat.gradients, 1.0)
        marks.append(time.perf_counter())
        optimizer.update(1e-4)
        marks.append(time.perf_counter())
        for name, start, end in zip(times, marks, marks[1:], strict=False):
            times[name].append(end - start)
    medians = {name: statistics.median(found[2:]) for name, found in times.items()}
    total = sum(medians.values())
    for name, median in medians.items():
        print(f"{name:22} {median * 1000:7.1f} ms  {median / total:6.1%}")
    print(f"{'tokens per second':22} {batch * length / total:7.0f}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10)
