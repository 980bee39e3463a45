"""Rows of the manual's section 8: the training data."""

from msmigrate.mapping.back import settings as back
from msmigrate.mapping.back.context import always
from msmigrate.mapping.context import Context
from msmigrate.mapping.outcome import Effect, Fate, Outcome, carried, dropped, refused, written
from msmigrate.mapping.rows import Row, derived, goes, judged, leaf_value, renamed, same
from msmigrate.pynative import Config, specs_of
from msmigrate.yaml.nodes import Leaf

_GRAPH = "train_dataset.data_loader"
_PYNATIVE = "train_dataset.dataloader"
READERS_DATA_SEED = 1234
LOADERS = ("BlendedMegatronDatasetDataLoader", "HFDataLoader", "MindDataset", "OrderedIndexDataLoader")
"""Loaders that PyNative mode has."""


def _loader(context: Context, row: Row, leaf: Leaf) -> Outcome:
    kind = leaf_value(leaf)
    if kind in LOADERS:
        if kind != LOADERS[0]:
            context.note(f"{kind} is carried for MindFormers; msrt reads Megatron data only (msrt make-data makes it)")
        return row.carry(leaf)
    return refused(
        f"data loader {kind} has no PyNative counterpart; there are {', '.join(LOADERS)}",
        pynative=row.pynative,
        advice="make a Megatron data set of it (msrt make-data)",
        final=True,
    )


def _no_loader(context: Context) -> Outcome:
    return refused(
        "the file gives no train_dataset.data_loader.type: the data is chosen elsewhere",
        pynative=f"{_PYNATIVE}.type",
        advice="name it with --set train_dataset.dataloader.type=…",
        final=True,
    )


def _seed(context: Context, row: Row, leaf: Leaf) -> Outcome:
    if leaf_value(leaf) in (READERS_DATA_SEED, None):
        return dropped("1234 is the readers' default seed of the sample order")
    return row.carry(leaf)


def _eod_reset(context: Context, row: Row, leaf: Leaf) -> Outcome:
    if leaf_value(leaf) in (False, None):
        return dropped("off, as in PyNative mode")
    return refused(
        f"{leaf.path[1]}: True resets masks and positions at the end of a document",
        advice="set reset_attention_mask and reset_position_ids of train_dataset.dataloader.config with --set",
    )


def _megatron(context: Context) -> bool:
    return context.graph.value(f"{_GRAPH}.type") == LOADERS[0]


def _columns(context: Context) -> Outcome | None:
    """The columns that the mask flags ask for; the loader of a graph file without input_columns makes these."""
    if not _megatron(context):
        return None
    graph = context.graph
    columns = ["input_ids", "labels", "loss_mask", "position_ids"]
    if graph.value(f"{_GRAPH}.config.create_compressed_eod_mask", False):
        columns.append("actual_seq_len")
    elif graph.value(f"{_GRAPH}.config.create_attention_mask", True):
        columns.append("attention_mask")
    return written(
        Fate.DEFAULT,
        f"{_PYNATIVE}.column_names",
        list(columns),
        "the columns that the mask flags make; PyNative's default is input_ids, labels",
    )


def _construct_order(context: Context, row: Row, leaf: Leaf) -> Outcome:
    return dropped("the order of graph mode's construct arguments; PyNative models take columns by name")


def _handler(context: Context, row: Row, leaf: Leaf) -> Outcome:
    """A key inside the list of handlers: the list moves as a whole."""
    step, *inside = leaf.path[3:]
    path = f"{row.pynative}[{step}]" + "".join(f".{part}" for part in inside)
    return carried(row.fate, path, leaf.node)


def _config_rows() -> tuple[Row, ...]:
    """GPTDataset's settings, one to one (manual table 8.2), and their second spellings."""
    special = ("seed", "num_dataset_builder_threads")
    prefix = f"{_PYNATIVE}.config."
    specs = [spec for path, spec in specs_of(Config).items() if path.startswith(prefix) and spec.name not in special]
    rows = [renamed(f"{_GRAPH}.config.{spec.name}", spec.path, "8.2") for spec in specs]
    rows += [renamed(f"{_GRAPH}.config.{alias}", spec.path, None) for spec in specs for alias in spec.key.aliases]
    return tuple(rows)


def _hugging_face_rows() -> tuple[Row, ...]:
    """Settings that PyNative's HFDataLoader takes under the same names."""
    names = (
        "dataset_dir",
        "load_func",
        "path",
        "data_files",
        "split",
        "handler",
        "create_attention_mask",
        "create_compressed_eod_mask",
        "compressed_eod_mask_length",
        "use_broadcast_data",
    )
    rows = [renamed(f"{_GRAPH}.{name}", f"{_PYNATIVE}.{name}", None) for name in names]
    about = "the list of handlers moves as a whole"
    rows.append(judged(f"{_GRAPH}.handler[].*", f"{_PYNATIVE}.handler", None, _handler, about=about))
    return tuple(rows)


_RESETS = "refused when True: masks and positions start again at the end of a document; set the loader's own keys"
_SEEDED = f"carried; dropped at {READERS_DATA_SEED}, the readers' default seed of the sample order"
_SECOND_MENTION = ("dataset_config", "dataset_config.*")

ROWS: tuple[Row, ...] = (
    judged(
        f"{_GRAPH}.type",
        f"{_PYNATIVE}.type",
        "8.2",
        _loader,
        back=back.loader(LOADERS),
        effect=Effect.TRAINING,
        about=f"carried for {', '.join(LOADERS)}; others are refused",
    ),
    derived(f"{_PYNATIVE}.type", "8.1", _no_loader, about="refused: the file must name its loader"),
    renamed(f"{_GRAPH}.datasets_type", f"{_PYNATIVE}.datasets_type", "8.2"),
    renamed(f"{_GRAPH}.sizes", f"{_PYNATIVE}.sizes", "8.2"),
    renamed(f"{_GRAPH}.shuffle", f"{_PYNATIVE}.shuffle", "8.2"),
    *_config_rows(),
    judged(f"{_GRAPH}.config.seed", f"{_PYNATIVE}.config.seed", "8.2", _seed, about=_SEEDED),
    judged(f"{_GRAPH}.config.random_seed", f"{_PYNATIVE}.config.seed", None, _seed, about=_SEEDED),
    goes(f"{_GRAPH}.config.num_dataset_builder_threads", "threads that build indices; same samples", "8.2"),
    *_hugging_face_rows(),
    renamed("train_dataset.input_columns", f"{_PYNATIVE}.column_names", "appendix", back=back.input_columns),
    derived(
        f"{_PYNATIVE}.column_names",
        "8.1",
        _columns,
        about="the columns that the mask flags make of Megatron data, which graph mode takes without input_columns",
    ),
    judged(
        "train_dataset.construct_args_key",
        f"{_PYNATIVE}.column_names",
        None,
        _construct_order,
        Fate.DROPPED,
        about="dropped: the order of graph mode's construct arguments; PyNative models take columns by name",
    ),
    same("train_dataset.drop_remainder", "8.2"),
    same("train_dataset.num_parallel_workers", "8.2", lost=Effect.SPEED),
    same("train_dataset.prefetch_size", "8.1", lost=Effect.SPEED),
    same("train_dataset.numa_enable", "8.1", lost=Effect.SPEED),
    renamed(
        "train_dataset.python_multiprocessing",
        f"{_PYNATIVE}.python_multiprocessing",
        "8.2",
        "the readers take it under dataloader only",
        Effect.SPEED,
    ),
    goes("train_dataset.seed", "the sample order follows data_loader.config.seed"),
    judged("train_dataset.eod_reset", None, None, _eod_reset, Fate.REFUSED, about=_RESETS, effect=Effect.TRAINING),
    judged("train_dataset.eos_reset", None, None, _eod_reset, Fate.REFUSED, about=_RESETS, effect=Effect.TRAINING),
    goes("train_dataset.batch_size", "runner_config.batch_size overrides it"),
    *(goes(f"train_dataset_task.{name}", "a second mention of train_dataset", "8.2") for name in _SECOND_MENTION),
    goes(
        "train_dataset_task.type",
        "PyNative mode builds the data set itself",
        "8.2",
        back=always("train_dataset_task.type", "CausalLanguageModelDataset", "the data set that graph mode builds"),
    ),
    goes("train_dataset_task.*", "PyNative mode builds the data set itself", "8.2"),
    goes("eval_dataset.*", "PyNative mode does not evaluate while training"),
    goes("eval_dataset_task.*", "PyNative mode does not evaluate while training"),
)
