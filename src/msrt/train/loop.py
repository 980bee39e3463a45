"""The training loop."""

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice

from msmigrate.problems import UserError
from msrt.config.resolve import Resolved
from msrt.data import MicroBatch
from msrt.models.api import TrainableModel
from msrt.optim.api import Optimizer
from msrt.optim.clip import clip_by_global_norm
from msrt.train.gradients import Gradients, StepLoss
from msrt.train.metrics import StepMetrics
from msrt.train.skipping import SkipRule


@dataclass(frozen=True, slots=True)
class Run:
    """Everything the loop works with; `rate` gives the learning rate of a 0-based update."""

    numbers: Resolved
    model: TrainableModel
    batches: Iterator[MicroBatch]
    gradients: Gradients
    optimizer: Optimizer
    rate: Callable[[int], float]
    max_norm: float
    skip: SkipRule
    rank: int = 0
    done: int = 0
    """Steps that were done before, when the run goes on from a checkpoint."""


class DivergedError(UserError):
    """A loss or gradient norm that is not finite; the steps before it have been reported."""


def train(run: Run, report: Callable[[StepMetrics], None]) -> None:
    """Train for all steps that the run has left and report each one when it is done.

    Raises `DivergedError` when a loss or gradient norm is not finite, unless the skip rule lets the step pass
    without an update.
    """
    for step in range(run.done + 1, run.numbers.steps + 1):
        started = time.perf_counter()
        micro_batches = islice(run.batches, run.numbers.gradient_accumulation_steps)
        loss = run.gradients(micro_batches)
        rate = run.rate(run.optimizer.updates)
        norm = clip_by_global_norm(run.optimizer.flat.gradients, run.max_norm)
        if loss.finite and math.isfinite(norm):
            run.skip.updated()
            run.optimizer.update(rate)
            run.model.update_expert_bias(loss.tokens_per_expert)
        elif not run.skip.may_pass():
            raise DivergedError(_diverged(step, loss, rate, norm, run))
        report(_metrics(run.numbers, step, loss, rate, norm, time.perf_counter() - started))


def _metrics(numbers: Resolved, step: int, loss: StepLoss, rate: float, norm: float, seconds: float) -> StepMetrics:
    counts = loss.tokens_per_expert
    return StepMetrics(
        step=step,
        loss=loss.main,
        lr=rate,
        grad_norm=norm,
        consumed_samples=step * numbers.global_batch_size,
        tokens=numbers.tokens_per_step,
        step_time_ms=seconds * 1e3,
        tokens_per_s=numbers.tokens_per_step / seconds,
        load_balancing_loss=loss.load_balancing if counts.size else None,
        tokens_per_expert=counts.tolist() if counts.size else None,
        mtp_1_loss=loss.mtp[0] if loss.mtp else None,
    )


def _diverged(step: int, loss: StepLoss, rate: float, norm: float, run: Run) -> str:
    skipped = f", after {run.skip.in_a_row} skipped updates in a row" if run.skip.in_a_row else ""
    return (
        f"Stopped at step {step} of {run.numbers.steps}: loss {loss.main:g}, gradient norm {norm:g}, learning rate "
        f"{rate:g}{skipped}. On rank {run.rank} the first value that is not finite is "
        f"{run.gradients.first_bad_value()}. Try a lower lr_scheduler.learning_rate, a longer warm-up than "
        f"{run.numbers.warmup_steps} steps or a lower training.max_norm than {run.max_norm:g}, and look at the samples "
        f"from number {(step - 1) * run.numbers.global_batch_size} on. {_pass_over(run.skip)}"
    )


def _pass_over(rule: SkipRule) -> str:
    if rule.enabled:
        return f"A training.max_consecutive_skipped_steps above {rule.limit} passes over more such steps in a row."
    return "training.use_skip_step_on_nan: true passes over such steps."
