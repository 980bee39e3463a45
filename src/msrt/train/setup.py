"""From a config and its numbers to everything the loop works with."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path

import mindspore as ms

from msmigrate.pynative import Model, Use, specs_of
from msmigrate.pynative.sections import Optimizer
from msrt.config.checked import Checked
from msrt.config.problem import about_file
from msrt.config.schedule import learning_rate
from msrt.data import Prefetcher, micro_batches, open_train_source
from msrt.models import build_model, config_from_model_section, keys_without_effect, parameter_count
from msrt.ops.device import precision_note, prepare
from msrt.optim.adamw import AdamW
from msrt.optim.decay import decays
from msrt.optim.flat import FlatParameters
from msrt.train.gradients import Gradients
from msrt.train.loop import Run
from msrt.train.memory import available_memory, refuse_too_large
from msrt.train.skipping import SkipRule


@contextmanager
def set_up(checked: Checked, index_cache: Path, note: Callable[[str], None]) -> Iterator[Run]:
    """A run ready for its first step; the data thread stops at the end of the block.

    Data is opened before the model is built: a wrong path is found before that takes time and memory. `note` takes
    sentences that the user should read. Raises `UserError` for settings that data or model cannot serve, and
    for a model that is too large for the machine.
    """
    config, numbers, training = checked.config, checked.numbers, checked.config.training
    prepare(deterministic=training.deterministic)
    ms.set_seed(training.seed)
    samples = training.steps * training.global_batch_size
    with about_file(checked.name):
        shape = config_from_model_section(config.model)
        refuse_too_large(parameter_count(shape), available_memory())
        source = open_train_source(
            config.train_dataset, samples=samples, vocab_size=shape.vocab_size, cache_dir=index_cache
        )
    for sentence in (_without_effect(config.model), precision_note(_dtypes(config.model))):
        if sentence is not None:
            note(sentence)
    batches = micro_batches(
        source,
        local_batch_size=training.local_batch_size,
        accumulation=numbers.gradient_accumulation_steps,
        data_parallel=numbers.data_parallel,
    )
    model = build_model(shape, training.seed)
    flat = flatten(list(model.trainable_params()), config.optimizer)
    with Prefetcher(batches, config.train_dataset.prefetch_size) as ahead:
        yield Run(
            numbers=numbers,
            model=model,
            batches=ahead,
            gradients=Gradients(model, flat, numbers.gradient_accumulation_steps),
            optimizer=adamw(flat, config.optimizer),
            rate=learning_rate(config.lr_scheduler, training.steps),
            max_norm=training.max_norm,
            skip=SkipRule(training.use_skip_step_on_nan, training.max_consecutive_skipped_steps),
        )


def flatten(parameters: list[ms.Parameter], optimizer: Optimizer) -> FlatParameters:
    """The parameters as one vector, those that decay first."""
    include, exclude = optimizer.weight_decay_include, optimizer.weight_decay_exclude
    flags = [decays(item.name, item.shape, include=include, exclude=exclude) for item in parameters]
    return FlatParameters(parameters, flags)


def adamw(flat: FlatParameters, optimizer: Optimizer) -> AdamW:
    """The optimizer that the optimizer section describes."""
    first, second = optimizer.betas
    return AdamW(flat, betas=(first, second), eps=optimizer.eps, weight_decay=optimizer.weight_decay)


def _without_effect(model: Model) -> str | None:
    """One sentence on keys that are used by other families only; those that none uses have had their note."""
    specs = specs_of(Model)
    reasons = {key: why for key, why in keys_without_effect(model).items() if specs[key].key.use is Use.USED}
    if not reasons:
        return None
    return f"without effect in {model.model_type}: " + " ".join(f"model.{key} ({why})" for key, why in reasons.items())


def _dtypes(model: Model) -> dict[str, str]:
    """The precision settings of the model section that matter here, by dotted path."""
    names = [item.name for item in fields(Model) if item.name.endswith("_dtype")]
    values = {f"model.{name}": getattr(model, name) for name in names}
    return {path: value for path, value in values.items() if value is not None}
