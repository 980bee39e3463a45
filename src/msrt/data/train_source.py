"""The training samples that the train_dataset section of a pynative.yaml asks for."""

import logging
from collections.abc import Callable, Iterator
from pathlib import Path

from msmigrate.problems import UserError
from msmigrate.pynative.sections import Dataloader, GPTDatasetConfig, TrainDataset
from msrt.data.blend import build_part
from msrt.data.data_path import parse_data_path
from msrt.data.sample import GPTConfig
from msrt.data.split import parse_split
from msrt.data.stream import SampleSource

LOADER = "BlendedMegatronDatasetDataLoader"
DATASET = "GPTDataset"
PARTS = 3
"""Entries of `sizes`: train, validation, test."""

MAX_SEED = 2**32 - 1
"""The largest seed numpy's RandomState takes."""

log = logging.getLogger(__name__)


def open_train_source(train_dataset: TrainDataset, *, samples: int, cache_dir: Path | None = None) -> SampleSource:
    """The training samples of a run that will consume `samples` of them (steps x global_batch_size).

    When the data has fewer, a warning with both numbers is logged: the order repeats from sample 0, as in MindFormers.
    With `cache_dir` the sample indices are kept there for later runs. Raises one `UserError` with every setting that
    cannot be served, and `UnreadableError` for a corpus that cannot be read.
    """
    loader = train_dataset.dataloader
    faults = list(_faults(loader, samples))
    if faults:
        raise UserError(" ".join(faults))
    assert loader.sizes is not None  # a missing one is among the faults
    data_path, split = parse_data_path(loader.config.data_path), parse_split(loader.config.split)
    source = build_part(data_path, split, "train", loader.sizes[0], gpt_config(loader.config), cache_dir=cache_dir)
    if source is None:
        raise UserError(f'split "{loader.config.split}" leaves nothing for training: raise its first number above 0.')
    _check_length(train_dataset, len(source), samples)
    _warn_of_lost_flags(loader.config)
    return source


def column_names(config: GPTDatasetConfig) -> tuple[str, ...]:
    """The columns a sample has under `config`, in order."""
    columns = ("input_ids", "labels", "loss_mask", "position_ids")
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
    )


def _faults(loader: Dataloader, samples: int) -> Iterator[str]:
    if loader.type != LOADER:
        yield f"dataloader.type is {loader.type!r}; msrt reads {LOADER} only."
    if loader.datasets_type != DATASET:
        yield f"dataloader.datasets_type is {loader.datasets_type!r}; msrt reads {DATASET} only."
    if loader.shuffle:
        yield (
            "dataloader.shuffle is true, which msrt does not have; write false: "
            f"{DATASET} already shuffles its samples with dataloader.config.seed."
        )
    yield from _size_faults(loader.sizes, samples)
    yield from _column_faults(loader)
    yield from _config_faults(loader.config)


def _size_faults(sizes: tuple[int, ...] | None, samples: int) -> Iterator[str]:
    if sizes is None:
        yield f"dataloader.sizes is missing; this run consumes {samples} training samples: write [{samples}, 0, 0]."
        return
    if len(sizes) != PARTS:
        yield f"dataloader.sizes has {len(sizes)} entries; it needs {PARTS}: samples for train, validation and test."
    if sizes and sizes[0] < 1:
        yield f"dataloader.sizes asks for {sizes[0]} training samples; its first entry must be 1 or more."


def _column_faults(loader: Dataloader) -> Iterator[str]:
    if loader.config.create_compressed_eod_mask:
        yield (
            "dataloader.config.create_compressed_eod_mask is true, which msrt does not have; write false, and "
            "create_attention_mask true if documents must not see each other."
        )
        return
    expected = column_names(loader.config)
    if loader.column_names != expected:
        mask = str(loader.config.create_attention_mask).lower()
        yield (
            f"dataloader.column_names is {list(loader.column_names)}, but with create_attention_mask {mask} a sample "
            f"has the columns {list(expected)}, in this order."
        )


def _config_faults(config: GPTDatasetConfig) -> Iterator[str]:
    if config.seed > MAX_SEED:
        yield f"dataloader.config.seed is {config.seed}; it must be from 0 to {MAX_SEED}."
    parsers: tuple[tuple[Callable[[object], object], object], ...] = (
        (parse_split, config.split),
        (parse_data_path, config.data_path),
    )
    for parse, value in parsers:
        try:
            parse(value)
        except UserError as error:
            yield str(error)


def _check_length(train_dataset: TrainDataset, available: int, needed: int) -> None:
    if needed <= available:
        return
    if not train_dataset.drop_remainder:
        raise UserError(
            f"The run consumes {needed} training samples and the data has {available}; with drop_remainder false each "
            "pass over them can end with an incomplete global batch, which msrt cannot train. Write drop_remainder: "
            f"true, or raise dataloader.sizes[0] to {needed}."
        )
    log.warning(
        "The run consumes %d training samples and the data has %d: they are read %.2f times, always in the same order. "
        "With dataloader.sizes[0] at %d every pass over the corpus would be shuffled anew.",
        needed,
        available,
        needed / available,
        needed,
    )


def _warn_of_lost_flags(config: GPTDatasetConfig) -> None:
    if config.reset_attention_mask and not config.create_attention_mask:
        log.warning(
            "dataloader.config.reset_attention_mask has no effect without create_attention_mask: "
            "tokens see the documents before their own."
        )
    flags = ("eod_mask_loss", "reset_position_ids", "reset_attention_mask")
    given = [flag for flag in flags if getattr(config, flag)]
    if config.eod < 0 and given:
        log.warning("dataloader.config.eod is %d, which no token is: %s has no effect.", config.eod, ", ".join(given))
