"""The training samples that the train_dataset section of a pynative.yaml asks for."""

import logging
from collections.abc import Callable, Iterator
from pathlib import Path

from msmigrate.problems import UserError
from msmigrate.pynative.sections import Dataloader, GPTDatasetConfig, TrainDataset
from msrt.data.blend import BlendRule, build_part
from msrt.data.data_path import parse_data_path
from msrt.data.order import SampleOrder
from msrt.data.sample import GPTConfig
from msrt.data.shuffled import shuffled_order
from msrt.data.split import KEY as SPLIT
from msrt.data.split import parse_split
from msrt.data.stream import SampleSource
from msrt.data.token_range import check_tokens

KEY = "train_dataset.dataloader"
LOADER = "BlendedMegatronDatasetDataLoader"
DATASET = "GPTDataset"
PARTS = 3
"""Entries of `sizes`: train, validation, test."""

MAX_SEED = 2**32 - 1
"""The largest seed numpy's RandomState takes."""

log = logging.getLogger(__name__)


def open_train_source(
    train_dataset: TrainDataset,
    *,
    samples: int,
    global_batch_size: int | None = None,
    vocab_size: int | None = None,
    cache_dir: Path | None = None,
    rule: BlendRule = BlendRule.MEGATRON,
) -> SampleSource:
    """The training samples of a run that will consume `samples` of them (steps x global_batch_size).

    With `vocab_size` every token of the corpora is checked to be from 0 to `vocab_size` - 1. When the data has fewer
    samples, a warning with both numbers is logged: the order repeats from sample 0, as in MindFormers. With `cache_dir`
    sample indices and token checks are kept there for later runs. `rule` decides how long a blend of weighted corpora
    is. Raises one `UserError` with every setting that cannot be served, one with every corpus whose tokens do not fit,
    and `UnreadableError` for a corpus that cannot be read.
    """
    loader = train_dataset.dataloader
    faults = [*_faults(loader, samples), *_vocabulary_faults(loader.config, vocab_size)]
    if faults:
        raise UserError("\n".join(faults))
    assert loader.sizes is not None  # a missing one is among the faults
    data_path, split = parse_data_path(loader.config.data_path), parse_split(loader.config.split)
    if vocab_size is not None:
        check_tokens(data_path.prefixes, vocab_size, cache_dir)
    source = build_part(
        data_path, split, "train", loader.sizes[0], gpt_config(loader.config), cache_dir=cache_dir, rule=rule
    )
    if source is None:
        raise UserError(f'{SPLIT} "{loader.config.split}" leaves nothing for training: raise its first number above 0.')
    _check_length(train_dataset, len(source), samples, global_batch_size)
    _warn_of_lost_flags(loader.config)
    _warn_of_unread_parts(loader.sizes)
    return source


def sample_order(
    train_dataset: TrainDataset,
    samples: int,
    *,
    local_batch_size: int,
    accumulation: int,
    data_parallel: int,
    seed: int,
) -> SampleOrder:
    """The order in which a run consumes a source of `samples` samples; `seed` is training.seed.

    With `dataloader.shuffle` it is MindSpore's shuffle (`shuffled_order`), on top of the one that is part of Megatron's
    indices. Raises `UserError` when there are fewer samples than one global batch.
    """
    shuffled = shuffled_order(samples, seed, data_parallel) if train_dataset.dataloader.shuffle else None
    return SampleOrder(samples, local_batch_size, accumulation, data_parallel, shuffled)


def column_names(config: GPTDatasetConfig) -> tuple[str, ...]:
    """The columns a sample has under `config`, in order."""
    columns = ("input_ids", "labels", "loss_mask", "position_ids")
    if config.create_compressed_eod_mask:
        return (*columns, "actual_seq_len")
    return (*columns, "attention_mask") if config.create_attention_mask else columns


def gpt_config(config: GPTDatasetConfig) -> GPTConfig:
    """The sample settings of the dataloader.config section as Megatron's."""
    return GPTConfig(
        seq_length=config.seq_length,
        seed=config.seed,
        eod=config.eod,
        pad=config.pad,
        eod_mask_loss=config.eod_mask_loss,
        reset_position_ids=config.reset_position_ids,
        reset_attention_mask=config.reset_attention_mask,
        create_attention_mask=config.create_attention_mask,
        create_compressed_eod_mask=config.create_compressed_eod_mask,
        eod_pad_length=config.eod_pad_length,
    )


def _faults(loader: Dataloader, samples: int) -> Iterator[str]:
    if loader.type != LOADER:
        found = "missing" if loader.type is None else repr(loader.type)
        yield f"{KEY}.type is {found}; msrt reads {LOADER} only. Make its corpus from texts with msrt make-data."
    if loader.datasets_type != DATASET:
        yield f"{KEY}.datasets_type is {loader.datasets_type!r}; msrt reads {DATASET} only."
    yield from _size_faults(loader.sizes, samples)
    yield from _column_faults(loader)
    yield from _config_faults(loader.config)


def _size_faults(sizes: tuple[int, ...] | None, samples: int) -> Iterator[str]:
    if sizes is None:
        yield f"{KEY}.sizes is missing; this run consumes {samples} training samples: write [{samples}, 0, 0]."
        return
    if len(sizes) != PARTS:
        entries = "1 entry" if len(sizes) == 1 else f"{len(sizes)} entries"
        yield f"{KEY}.sizes has {entries}; it needs {PARTS}: samples for train, validation and test."
    if sizes and sizes[0] < 1:
        yield f"{KEY}.sizes asks for {sizes[0]} training samples; its first entry must be 1 or more."


def _column_faults(loader: Dataloader) -> Iterator[str]:
    expected = column_names(loader.config)
    if loader.column_names == expected:
        return
    # The default may be written out, too; this sentence is true of both.
    found = (
        "is missing or stops after labels"
        if loader.column_names == Dataloader().column_names
        else f"is {_listed(loader.column_names)}"
    )
    flag = "create_compressed_eod_mask" if loader.config.create_compressed_eod_mask else "create_attention_mask"
    value = str(getattr(loader.config, flag)).lower()
    yield (
        f"{KEY}.column_names {found}; write column_names: {_listed(expected)}, in this order: these are the columns of "
        f"a sample with {flag} {value}."
    )


def _listed(names: tuple[str, ...]) -> str:
    return f"[{', '.join(names)}]"


def _config_faults(config: GPTDatasetConfig) -> Iterator[str]:
    if config.seed > MAX_SEED:
        yield f"{KEY}.config.seed is {config.seed}; it must be from 0 to {MAX_SEED}."
    parsers: tuple[tuple[Callable[[object], object], object], ...] = (
        (parse_split, config.split),
        (parse_data_path, config.data_path),
    )
    for parse, value in parsers:
        try:
            parse(value)
        except UserError as error:
            yield str(error)


def _vocabulary_faults(config: GPTDatasetConfig, vocab_size: int | None) -> Iterator[str]:
    """Ids that no token can have, so that what they are for would silently not happen."""
    if vocab_size is None:
        return
    tokens = f"model.vocab_size {vocab_size} has the tokens 0 to {vocab_size - 1}"
    flags = _flags_of_eod(config)
    if config.eod >= vocab_size and flags:
        yield f"{KEY}.config.eod is {config.eod}, but {tokens}: {', '.join(flags)} could never apply."
    if config.pad >= vocab_size:
        yield f"{KEY}.config.pad is {config.pad}, but {tokens}: no padding could be masked. Write -1 for no padding."


def _flags_of_eod(config: GPTDatasetConfig) -> list[str]:
    """The flags in use that act at each end of document."""
    flags = ("eod_mask_loss", "reset_position_ids", "reset_attention_mask", "create_compressed_eod_mask")
    return [flag for flag in flags if getattr(config, flag)]


def _check_length(train_dataset: TrainDataset, available: int, needed: int, batch: int | None) -> None:
    if batch is not None and available < batch:
        raise UserError(
            f"The training data has {available} samples, and one step needs training.global_batch_size {batch}: raise "
            f"{KEY}.sizes[0], use more data, or lower training.global_batch_size."
        )
    if needed <= available:
        return
    whole_batches = batch is not None and available % batch == 0
    if not train_dataset.drop_remainder and not whole_batches:
        raise UserError(
            f"The run consumes {needed} training samples and the data has {available}; with drop_remainder false each "
            "pass over them can end with an incomplete global batch, whose micro-batches would be short or empty. Set "
            f"train_dataset.drop_remainder to true, or {KEY}.sizes[0] to {needed}."
        )
    log.warning(
        "The run consumes %d training samples and the data has %d: they are read %.2f times, always in the same order. "
        "With %s.sizes[0] at %d every pass over the corpus would be shuffled anew.",
        needed,
        available,
        needed / available,
        KEY,
        needed,
    )


def _warn_of_lost_flags(config: GPTDatasetConfig) -> None:
    if config.reset_attention_mask and not (config.create_attention_mask or config.create_compressed_eod_mask):
        log.warning(
            "%s.config.reset_attention_mask has no effect without create_attention_mask: "
            "tokens see the documents before their own.",
            KEY,
        )
    given = _flags_of_eod(config)
    if config.eod < 0 and given:
        log.warning(
            "%s.config.eod is %d; tokens are 0 or more: %s will never apply.", KEY, config.eod, ", ".join(given)
        )


def _warn_of_unread_parts(sizes: tuple[int, ...]) -> None:
    if any(sizes[1:]):
        log.warning(
            "%s.sizes asks for %d validation and %d test samples; msrt trains only and reads none of them.",
            KEY,
            *sizes[1:],
        )
