"""From a config and its numbers to everything the loop works with."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import mindspore as ms

from msmigrate.pynative import Model, Use, specs_of
from msrt.config.checked import Checked
from msrt.config.problem import about_file
from msrt.config.schedule import learning_rate
from msrt.data import micro_batches_ahead, open_train_source, sample_order
from msrt.models import build_model, config_from_model_section, empty_model, keys_without_effect, parameter_count
from msrt.nn.precision import set_precision
from msrt.ops.device import prepare
from msrt.train.gradients import Gradients
from msrt.train.loop import Run
from msrt.train.memory import available_memory, refuse_too_large
from msrt.train.optimizers import flatten, make_optimizer
from msrt.train.restore import restore
from msrt.train.resume import Start
from msrt.train.skipping import SkipRule


@contextmanager
def set_up(
    checked: Checked, index_cache: Path, note: Callable[[str], None], start: Start | None = None
) -> Iterator[Run]:
    """A run ready for its first step; the data thread stops at the end of the block.

    Data is opened before the model is built: a wrong path is found before that takes time and memory. `note` takes
    sentences that the user should read. `start` None begins with random weights. Raises `UserError` for settings that
    data or model cannot serve, for a model that is too large for the machine, and for weights that do not fit it.
    """
    config, numbers, training = checked.config, checked.numbers, checked.config.training
    prepare(deterministic=training.deterministic)
    ms.set_seed(training.seed)
    samples = training.steps * training.global_batch_size
    with about_file(checked.name):
        shape = config_from_model_section(config.model)
        refuse_too_large(parameter_count(shape), available_memory(), config.optimizer.type)
        source = open_train_source(
            config.train_dataset,
            samples=samples,
            global_batch_size=training.global_batch_size,
            vocab_size=shape.vocab_size,
            cache_dir=index_cache,
        )
    for sentence in (_without_effect(config.model), shape.precision.note(), *shape.remarks):
        if sentence is not None:
            note(sentence)
    data = config.train_dataset
    order = sample_order(
        data,
        len(source),
        local_batch_size=training.local_batch_size,
        accumulation=numbers.gradient_accumulation_steps,
        data_parallel=numbers.data_parallel,
        seed=training.seed,
    )
    model = build_model(shape, training.seed) if start is None else empty_model(shape)
    set_precision(model, shape.precision)
    flat = flatten(list(model.trainable_params()), config.optimizer, shape.precision)
    optimizer = make_optimizer(flat, config.optimizer, model.name_table())
    if start is not None:
        restore(start, model, optimizer)
    done = 0 if start is None else start.steps_done(numbers)
    progress = None if start is None else start.progress
    with micro_batches_ahead(
        source,
        order.micro_batches(rank=0, first_step=done),
        prefetch_size=data.prefetch_size,
        workers=data.num_parallel_workers,
        processes=data.dataloader.python_multiprocessing,
    ) as ahead:
        yield Run(
            numbers=numbers,
            model=model,
            batches=ahead,
            gradients=Gradients(model, flat, numbers.gradient_accumulation_steps, training.loss_normalization),
            optimizer=optimizer,
            rate=_later(
                learning_rate(config.lr_scheduler, training.steps), 0 if progress is None else done - progress.step
            ),
            max_norm=training.max_norm,
            skip=SkipRule(
                training.use_skip_step_on_nan,
                training.max_consecutive_skipped_steps,
                0 if progress is None else progress.skipped_in_a_row,
            ),
            done=done,
        )


def _later(rate: Callable[[int], float], steps: int) -> Callable[[int], float]:
    """The schedule moved on by `steps`, by which another batch size has changed the count of steps done."""
    return lambda t: rate(max(0, t + steps))


def _without_effect(model: Model) -> str | None:
    """One sentence on keys that are used by other families only; those that none uses have had their note."""
    specs = specs_of(Model)
    reasons = {key: why for key, why in keys_without_effect(model).items() if specs[key].key.use is Use.USED}
    if not reasons:
        return None
    return f"without effect in {model.model_type}: " + " ".join(f"model.{key} ({why})" for key, why in reasons.items())
