from dataclasses import replace
from pathlib import Path

import mindspore as ms
import numpy as np
import pytest

from msmigrate.pynative.sections import Optimizer
from msrt.optim.adamw import AdamW
from msrt.optim.muon import Muon
from msrt.train.metrics import StepMetrics
from msrt.train.optimizers import flatten, make_optimizer
from msrt.train.run import Outcome

STEP = StepMetrics(
    step=1, loss=6.0, lr=0.0, grad_norm=1.0, consumed_samples=4, tokens=100, step_time_ms=900.0, tokens_per_s=111.1
)


def parameters() -> list[ms.Parameter]:
    shapes = {"norm.weight": (3,), "linear.weight": (2, 3), "embedding.weight": (4, 3)}
    return [parameter(name, shape) for name, shape in shapes.items()]


def parameter(name: str, shape: tuple[int, ...]) -> ms.Parameter:
    return ms.Parameter(ms.Tensor(np.ones(shape, np.float32)), name=name)


@pytest.mark.parametrize(
    ("optimizer", "decayed"),
    [
        (Optimizer(), {"linear.weight", "embedding.weight"}),
        (Optimizer(weight_decay_exclude=("embedding*",)), {"linear.weight"}),
        (Optimizer(weight_decay_include=("norm",)), {"norm.weight", "linear.weight", "embedding.weight"}),
    ],
)
def test_the_optimizer_section_decides_what_decays(optimizer: Optimizer, decayed: set[str]) -> None:
    flat = flatten(parameters(), optimizer)
    assert {segment.name for segment in flat.segments if segment.start < flat.decayed} == decayed


def test_the_optimizer_section_gives_the_coefficients() -> None:
    section = Optimizer(betas=(0.5, 0.75), eps=1e-3, weight_decay=0.25)
    optimizer = make_optimizer(flatten(parameters(), section), section)
    assert isinstance(optimizer, AdamW)
    assert (optimizer.betas, optimizer.eps, optimizer.weight_decay) == ((0.5, 0.75), 1e-3, 0.25)


def test_muon_takes_matrices_but_those_of_tokens() -> None:
    section = Optimizer(type="Muon", momentum=0.5, betas=(0.5, 0.75), adamw_eps=1e-3, weight_decay=0.25)
    flat = flatten(
        [*parameters(), parameter("word_embeddings.weight", (4, 3)), parameter("experts.weight1", (2, 2, 2))], section
    )
    assert {segment.name for segment in flat.apart} == {"linear.weight", "embedding.weight", "experts.weight1"}
    optimizer = make_optimizer(flat, section)
    assert isinstance(optimizer, Muon)
    assert (optimizer.rest.betas, optimizer.rest.eps, optimizer.rest.weight_decay) == ((0.5, 0.75), 1e-3, 0.25)
    assert (optimizer.spec.momentum, optimizer.spec.weight_decay) == (0.5, 0.25)


def test_the_summary_leaves_the_first_steps_time_out() -> None:
    outcome = Outcome()
    outcome.add(STEP)
    assert "speed  111 tokens/s" in outcome.summary(None, Path("out"))
    for step in (2, 3):
        outcome.add(replace(STEP, step=step, loss=6.0 - step, step_time_ms=100.0, consumed_samples=4 * step))
    assert outcome.summary(5.5, Path("out")) == (
        "steps  3, 12 samples\nloss   6.0000 -> 3.0000 (ln(vocab_size) = 5.5000)\nspeed  1,000 tokens/s\nfiles  out"
    )
