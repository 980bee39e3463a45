"""Rows for ways to data that PyNative mode does not have: loaders of other tasks, steps from text or pictures."""

from msmigrate.mapping.outcome import Effect
from msmigrate.mapping.rows import Row, goes
from msmigrate.mapping.switches import spared, vital, vital_section

_LOADER = "train_dataset.data_loader"
_STEPS = (
    "text_transforms", "label_transforms", "mixup_op", "mask_policy", "sampler", "tokenizer", "modal_to_text_transform",
)  # fmt: skip
_LISTS = ("transforms", "modal_content_transforms")
_VALUES = (
    "max_source_length", "max_target_length", "max_seq_length", "ignore_pad_token_for_loss", "output_columns",
    "column_order", "project_columns", "net_input_columns", "modal_content_input_columns",
    "modal_content_output_columns", "img_dynamic_batch", "dynamic_batch", "return_attention_mask", "pad_token_id",
    "eos_id", "sop_id", "gmask_id",
)  # fmt: skip
_ARGUMENTS = (
    "phase", "stage", "version", "origin_columns", "column_names", "shard_equal_rows", "random_mapping", "scale",
    "file_format", "image_dirs", "annotation_file", "annotation_files",
)  # fmt: skip
_STEP = "a step from text or pictures to samples: PyNative mode's loaders take samples as they are stored"
_ARGUMENT = "which data is read, and how: PyNative mode's loaders do not take it"
_TUNING = ("profile", "auto_tune", "filepath_prefix", "autotune_per_step")

ROWS: tuple[Row, ...] = (
    *(row for name in _STEPS for row in vital_section(f"train_dataset.{name}", _STEP)),
    *(vital(f"train_dataset.{name}{inside}", _STEP) for name in _LISTS for inside in ("", "[].*")),
    *(vital(f"train_dataset.{name}", _STEP) for name in _VALUES),
    *(vital(f"{_LOADER}.{name}", _ARGUMENT) for name in _ARGUMENTS),
    *(row for name in ("tokenizer", "extra_kwargs") for row in vital_section(f"{_LOADER}.{name}", _ARGUMENT)),
    spared(f"{_LOADER}.num_parallel_workers", "train_dataset.num_parallel_workers decides", Effect.SPEED),
    *(goes(f"train_dataset.{name}", "graph mode's data tuning") for name in _TUNING),
    *(goes(f"train_dataset.{name}", "read only with dynamic_batch: True") for name in ("divisor", "remainder")),
    goes("train_dataset.eod_token_id", "read only with eod_reset: True"),
    goes("train_dataset.token_monitor", "it logs tokens; training is the same"),
    goes("train_dataset.token_monitor_config.*", "it logs tokens; training is the same"),
    goes("train_dataset.do_eval", "PyNative mode does not evaluate while training"),
)
