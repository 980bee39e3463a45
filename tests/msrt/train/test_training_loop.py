import math
from collections.abc import Iterator
from dataclasses import replace

import pytest
from fake_model import COUNTS, Bigram, batch, endless, numbers

from msmigrate.problems import UserError
from msrt.data import MicroBatch
from msrt.optim.adamw import AdamW
from msrt.optim.flat import FlatParameters
from msrt.train.gradients import Gradients
from msrt.train.loop import DivergedError, Run, train
from msrt.train.metrics import StepMetrics
from msrt.train.skipping import SkipRule


def make_run(
    steps: int, accumulation: int = 1, model: Bigram | None = None, batches: Iterator[MicroBatch] | None = None
) -> Run:
    model = model or Bigram()
    flat = FlatParameters(model.trainable_params(), [True])
    return Run(
        numbers=numbers(steps, accumulation),
        model=model,
        batches=batches or endless(),
        gradients=Gradients(model, flat, accumulation),
        optimizer=AdamW(flat, betas=(0.9, 0.95), eps=1e-8, weight_decay=0.1),
        rate=lambda t: 0.01 * t,
        max_norm=1.0,
        skip=SkipRule(enabled=False, limit=0),
    )


def trained(run: Run) -> list[StepMetrics]:
    seen: list[StepMetrics] = []
    train(run, seen.append)
    return seen


def repeat(*batches: MicroBatch) -> Iterator[MicroBatch]:
    while True:
        yield from batches


def bad() -> MicroBatch:
    return batch(1, mask_value=math.nan)


def test_each_step_is_reported_with_its_numbers() -> None:
    seen = trained(make_run(steps=3, accumulation=2))
    assert [metrics.step for metrics in seen] == [1, 2, 3]
    assert [metrics.lr for metrics in seen] == pytest.approx([0.0, 0.01, 0.02])
    assert [metrics.consumed_samples for metrics in seen] == [4, 8, 12]
    assert [metrics.tokens for metrics in seen] == [16, 16, 16]
    assert seen[0].tokens_per_expert == (2 * COUNTS).tolist()
    assert seen[0].tokens_per_s == pytest.approx(16 / seen[0].step_time_ms * 1e3)


def test_the_loss_falls_on_data_that_repeats() -> None:
    run = make_run(steps=30, batches=repeat(batch(1)))
    losses = [metrics.loss for metrics in trained(run)]
    assert losses[0] == losses[1]  # the first rate is 0
    assert losses[-1] < 0.5 * losses[0]


def test_the_gradient_norm_is_reported_before_clipping() -> None:
    tight = replace(make_run(steps=1), max_norm=1e-3)
    assert trained(tight)[0].grad_norm == trained(make_run(steps=1))[0].grad_norm > 1e-2


def test_the_expert_bias_hears_of_every_step_once() -> None:
    model = Bigram()
    trained(make_run(steps=3, accumulation=2, model=model))
    assert [counts.tolist() for counts in model.told] == [(2 * COUNTS).tolist()] * 3


def test_a_model_without_experts_has_no_expert_metrics() -> None:
    (metrics,) = trained(make_run(steps=1, model=Bigram(experts=False)))
    assert metrics.tokens_per_expert is None
    assert metrics.load_balancing_loss is None


def test_equal_runs_are_bit_identical() -> None:
    def deterministic_part(seen: list[StepMetrics]) -> list[StepMetrics]:
        return [replace(metrics, step_time_ms=0.0, tokens_per_s=0.0) for metrics in seen]

    first, second = trained(make_run(steps=10, accumulation=2)), trained(make_run(steps=10, accumulation=2))
    assert deterministic_part(first) == deterministic_part(second)


def test_a_loss_that_is_not_finite_stops_the_run_with_advice() -> None:
    run = make_run(steps=5, batches=repeat(batch(1), batch(2), bad()))
    weights = run.optimizer.flat.values
    with pytest.raises(UserError) as caught:
        trained(run)
    message = str(caught.value)
    assert message.startswith("Stopped at step 3 of 5: loss nan, gradient norm nan, learning rate 0.02.")
    assert "samples from number 4 on" in message
    # The bigram table is no cell: only its loss can be told of.
    found = "in the loss, micro-batch 1 of 1 (samples 0, 1 of the data set)"
    assert f"On rank 0 the first value that is not finite is {found}." in message
    assert caught.value.status == 1
    assert all(math.isfinite(value) for value in weights)


def test_skipped_steps_change_nothing_but_are_reported() -> None:
    model = Bigram()
    run = replace(make_run(steps=4, model=model, batches=repeat(bad(), batch(1))), skip=SkipRule(True, 1))
    seen = trained(run)
    assert [math.isfinite(metrics.loss) for metrics in seen] == [False, True, False, True]
    assert [metrics.lr for metrics in seen] == pytest.approx([0.0, 0.0, 0.01, 0.01])
    assert run.optimizer.updates == len(model.told) == 2


def test_too_many_skipped_steps_in_a_row_stop_the_run() -> None:
    run = replace(make_run(steps=9, batches=repeat(batch(1), bad(), bad(), bad())), skip=SkipRule(True, 2))
    with pytest.raises(UserError, match=r"Stopped at step 4 of 9: .* after 2 skipped updates in a row"):
        trained(run)


def test_advice_is_not_what_the_config_has_already() -> None:
    run = replace(make_run(steps=9, batches=repeat(bad())), skip=SkipRule(True, 2))
    with pytest.raises(DivergedError) as caught:
        trained(run)
    assert "use_skip_step_on_nan" not in str(caught.value)
    assert "A training.max_consecutive_skipped_steps above 2" in str(caught.value)
    with pytest.raises(DivergedError, match=r"training\.use_skip_step_on_nan: true"):
        trained(make_run(steps=9, batches=repeat(bad())))


def test_no_limit_of_skipped_steps() -> None:
    run = replace(make_run(steps=9, batches=repeat(bad())), skip=SkipRule(True, 0))
    assert len(trained(run)) == 9
