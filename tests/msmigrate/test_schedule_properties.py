"""Steps, batches and warm-up against a run played sample by sample, and against what a reader resolves."""

from fractions import Fraction

import pytest
import yaml
from graph_text import converted, edited, output
from hypothesis import given, settings
from hypothesis import strategies as st

from msmigrate.mapping.schedule import warmup_ratio
from msmigrate.options import Options
from msmigrate.yaml.scalars import spell

STEPS = 5000
"""Every pair up to here holds; the exhaustive run takes some 20 s, this file takes a share of it."""


def test_warm_up_steps_survive_the_ratio() -> None:
    broken_by_division = 0
    for steps in range(7, STEPS + 1, 13):
        for warm in range(1, steps + 1):
            ratio = warmup_ratio(steps, warm)
            assert int(steps * ratio) == warm
            assert 0 < ratio <= 1
            broken_by_division += int(steps * (warm / steps)) != warm
    assert broken_by_division > 10_000


@pytest.mark.parametrize(
    ("warm", "steps"), [(29, 100), (57, 100), (58, 100), (3, 5000), (15, 22), (1, 1), (4999, 5000)]
)
def test_the_written_ratio_resolves_to_its_steps(warm: int, steps: int) -> None:
    found = output(edited(("warmup_steps: 5", f"warmup_steps: {warm}")), Options(overrides={"training.steps": steps}))
    ratio = found["lr_scheduler.warmup_ratio"]
    assert isinstance(ratio, (int, float))
    assert int(steps * ratio) == warm


@given(st.integers(1, STEPS).flatmap(lambda steps: st.tuples(st.just(steps), st.integers(1, steps))))
def test_the_spelt_ratio_is_read_back(pair: tuple[int, int]) -> None:
    steps, warm = pair
    read = yaml.safe_load(f"warmup_ratio: {spell(warmup_ratio(steps, warm))}\n")["warmup_ratio"]
    assert int(steps * read) == warm


def batches_of_an_epoch(samples: int, batch: int, repeat: int, *, keep_rest: bool) -> int:
    """Batches counted by handing out one sample at a time; `repeat` goes through the finished batches again."""
    count, waiting = 0, 0
    for _ in range(samples):
        waiting += 1
        if waiting == batch:
            count, waiting = count + 1, 0
    if waiting and keep_rest:
        count += 1
    return sum(count for _ in range(repeat))


def sunk_steps(per_epoch: int, epochs: int, sink: int) -> int:
    """Steps that fill whole sinks, counted step by step over all epochs."""
    full, waiting = 0, 0
    for _ in range(per_epoch * epochs):
        waiting += 1
        if waiting == sink:
            full, waiting = full + 1, 0
    return full * sink


RUNS = st.fixed_dictionaries({
    "epochs": st.integers(1, 4), "batch": st.integers(1, 5), "accumulation": st.integers(1, 3),
    "dp": st.sampled_from([1, 2, 4]), "stages": st.sampled_from([1, 1, 2]), "micro": st.integers(1, 4),
    "samples": st.integers(20, 400), "repeat": st.integers(1, 3), "drop": st.booleans(), "blended": st.booleans(),
    "sink_mode": st.booleans(), "sink": st.sampled_from([-1, 1, 1, 2, 3, 7]), "stop": st.sampled_from([0, 0, 5, 60]),
})  # fmt: skip


def graph_of(run: dict[str, int]) -> str:
    """The small graph file with the numbers of a run."""
    loader = "BlendedMegatronDatasetDataLoader" if run["blended"] else "HFDataLoader"
    return edited(
        ("  epochs: 2\n", f"  epochs: {run['epochs']}\n  sink_mode: {bool(run['sink_mode'])}\n"
         f"  sink_size: {run['sink']}\n" + (f"  stop_step: {run['stop']}\n" if run["stop"] else "")),
        ("batch_size: 2", f"batch_size: {run['batch']}"), ("warmup_steps: 5", "warmup_steps: 0"),
        ("gradient_accumulation_steps: 3", f"gradient_accumulation_steps: {run['accumulation']}"),
        ("type: BlendedMegatronDatasetDataLoader", f"type: {loader}"),
        ("    sizes: [600, 0, 0]\n", f"    num_samples: {run['samples']}\n"),
        ("  drop_remainder: True\n", f"  drop_remainder: {bool(run['drop'])}\n  repeat: {run['repeat']}\n"),
        ("data_parallel: 2", f"data_parallel: {run['dp']}"), ("pipeline_stage: 1", f"pipeline_stage: {run['stages']}"),
        ("micro_batch_num: 1", f"micro_batch_num: {run['micro']}"),
    )  # fmt: skip


@settings(max_examples=40, deadline=None)
@given(RUNS)
def test_a_run_played_sample_by_sample(run: dict[str, int]) -> None:
    per_rank = run["batch"] * (run["micro"] if run["stages"] > 1 else run["accumulation"])
    gathered = sum(per_rank for _ in range(run["dp"]))
    blended = bool(run["blended"])
    per_epoch = batches_of_an_epoch(
        run["samples"], gathered, 1 if blended else run["repeat"], keep_rest=not blended and not run["drop"]
    )
    steps = per_epoch * run["epochs"]
    sink = run["sink"] if run["sink_mode"] else -1
    if sink > 0:
        steps = sunk_steps(per_epoch, run["epochs"], sink)
        if float(Fraction(per_epoch, sink)) * run["epochs"] < Fraction(steps, sink):
            steps -= sink  # graph mode divides in floating point and loses a sink where the quotient falls short
    conversion = converted(graph_of(run))
    if steps == 0:
        assert conversion.text is None
        assert any("the run has 0 steps" in entry.outcome.why for entry in conversion.refusals)
        return
    assert conversion.text is not None
    training = yaml.safe_load(conversion.text)["training"]
    assert (training["global_batch_size"], training["local_batch_size"]) == (gathered, run["batch"])
    assert training["steps"] == (min(steps, run["stop"]) if run["stop"] else steps)


def test_a_sink_that_floating_point_loses() -> None:
    text = edited(("epochs: 2", "epochs: 49\n  sink_size: 49"), ("sizes: [600, 0, 0]", "sizes: [12, 0, 0]"))
    assert sunk_steps(1, 49, 49) == 49
    assert 1 / 49 * 49 < 1
    assert any("the run has 0 steps" in entry.outcome.why for entry in converted(text).refusals)
