"""Every key path of real graph files: its fate here against the fate that the reference gives it."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import pytest
import yaml

from msmigrate.convert import convert
from msmigrate.mapping.outcome import Effect, Fate, Outcome
from msmigrate.options import Options
from msmigrate.yaml.document import parse
from msmigrate.yaml.source import source_from_bytes

BASE = """\
use_legacy: False
use_parallel: True
runner_config: {epochs: 2, batch_size: 2}
optimizer: {type: AdamW, weight_decay: 0.05}
lr_schedule: {type: ConstantWarmUpLR, learning_rate: 4.e-4, warmup_steps: 5}
train_dataset:
  data_loader: {type: BlendedMegatronDatasetDataLoader, sizes: [64000, 0, 0], config: {seq_length: 64}}
parallel_config: {data_parallel: 4, model_parallel: 2}
recompute_config: {recompute: True}
runner_wrapper: {type: MFTrainOneStepCell}
callbacks: [{type: CheckpointMonitor}]
"""
MCORE = {
    "model_type": "deepseek_v3", "vocab_size": 512, "hidden_size": 64, "num_hidden_layers": 6,
    "num_attention_heads": 4,
}  # fmt: skip
CARRIED = frozenset({Fate.SAME, Fate.RENAMED, Fate.COMPUTED, Fate.FLATTENED})
ANY = CARRIED | {Fate.DROPPED, Fate.REFUSED}
EXPECTED = {
    "moved": CARRIED, "renamed": CARRIED, "computed": CARRIED, "flattened": CARRIED,
    "dropped-with-reason": frozenset({Fate.DROPPED}), "unsupported-must-warn": frozenset({Fate.REFUSED}),
    "not covered by the seed": ANY,
}  # fmt: skip
LEGACY_MODEL = ("model.model_config.", "model.arch", "moe_config")
LAYOUTS = ("training_args", "model_config", "distribute_parallel_config", "checkpoint_config")
"""Top-level sections of a layout that no release has: every key of such a file is refused."""

VALUES: dict[str, object] = {
    "callbacks[].directory": "./saved",
    "lr_schedule.lr_end": 1e-5,
    "lr_schedule.decay_ratio": 0.5,
    "lr_schedule.decay_steps": 3,
    "lr_schedule.total_steps": -1,
    "lr_schedule.warmup_lr_init": 0,
    "parallel_config.context_parallel": 2,
    "parallel_config.model_parallel": 2,
    "parallel_config.pipeline_stage": 2,
    "recompute_config.select_recompute": [1],
    "resume_or_finetune_checkpoint": "./saved",
    "runner_wrapper.scale_sense": 65536,
    "train_dataset.data_loader.config.random_seed": 99,
    "train_dataset.data_loader.num_samples": 640,
    "train_dataset.mixup_op.cutmix_minmax": [0.1, 0.2],
}
"""Values to ask with, where the first one met in real files is the default or fits no small file."""

ALONE = (
    "lr_schedule.warmup_steps", "lr_schedule.warmup_epochs", "layer_scale", "lr_scale", "only_save_strategy",
    "use_legacy", "use_parallel", "parallel.parallel_mode", "optimizer.betas", "run_mode",
    "recompute_config.select_recompute", "recompute_config.select_comm_recompute", "runner_wrapper.scale_sense",
    "callbacks[].balance_via_topk_bias", "model.model_config.mtp_loss_factor", "model.model_config.num_experts",
    "model.model_config.type", "model.arch.type", "train_dataset.data_loader.sizes",
)  # fmt: skip
"""Keys whose value decides on keys beside them."""

OWNERS = {
    "per_print_times": "MFLossMonitor", "data_size": "MFLossMonitor", "type": "MFLossMonitor",
    "keep_last": "ObsMonitor", "step_upload_frequence": "ObsMonitor", "file_name": "ObsMonitor",
    "keep_default_action": "SummaryMonitor", "save_mindir": "SummaryMonitor", "config_file": "ProfileMonitor",
    "ctrl_ip": "TrainFaultTolerance", "ctrl_port": "TrainFaultTolerance", "ctrl_rank_id": "TrainFaultTolerance",
    "ckpt_save_path": "TrainFaultTolerance", "save_ckpt": "TrainFaultTolerance",
    "balance_via_topk_bias": "TopkBiasBalanceCallback", "topk_bias_update_rate": "TopkBiasBalanceCallback",
    "expert_num": "TopkBiasBalanceCallback", "micro_batch_num": "TopkBiasBalanceCallback",
    "mtp_depth": "TopkBiasBalanceCallback", "num_layers": "TopkBiasBalanceCallback",
}  # fmt: skip
"""Callbacks that the keys under `callbacks[]` belong to; the others are CheckpointMonitor's."""

STORAGE = "copying to storage is not training"
EVALUATION = "no evaluation while training: the weights are the same"
RESCUE = "stopping and rescuing a run: the weights are the same"
SCHEDULE = "the schedule classes of both modes take it"
READERS = "the loader of MindFormers 2.x takes it"
LOST_INDENTATION = "it belongs under recompute_config, which the finding says"
DECIDED: dict[str, tuple[Fate, str]] = {
    "aicc_config.*": (Fate.DROPPED, STORAGE),
    "hub_*": (Fate.DROPPED, STORAGE),
    "push_to_hub": (Fate.DROPPED, STORAGE),
    "callbacks[].balance_via_topk_bias": (Fate.REFUSED, "the bias changes which experts learn; the model has no key"),
    "callbacks[].save_network_params": (Fate.DROPPED, "an extra file beside the checkpoint"),
    "callbacks[].save_trainable_params": (Fate.DROPPED, "an extra file beside the checkpoint"),
    "callbacks[].type": (Fate.DROPPED, "asked with a callback that only logs"),
    "check_for_nan_in_loss_and_grad": (Fate.DROPPED, "it ends a run that is broken already"),
    "do_eval": (Fate.DROPPED, EVALUATION),
    "eval*": (Fate.DROPPED, EVALUATION),
    "metric.*": (Fate.DROPPED, EVALUATION),
    "train_dataset.do_eval": (Fate.DROPPED, EVALUATION),
    "do_predict": (Fate.DROPPED, "inference"),
    "infer.*": (Fate.DROPPED, "inference"),
    "pipeline.*": (Fate.DROPPED, "inference"),
    "do_train": (Fate.DROPPED, "asked with True; False is refused"),
    "enable_mindio_ttp_save_ckpt": (Fate.DROPPED, RESCUE),
    "use_checkpoint_health_monitor": (Fate.DROPPED, RESCUE),
    "use_graceful_exit": (Fate.DROPPED, RESCUE),
    "layer_decay": (Fate.DROPPED, "dead without layer_scale, which is refused"),
    "lr_scale_factor": (Fate.DROPPED, "dead without lr_scale, which is refused"),
    "optimizer.beta*": (Fate.COMPUTED, "betas: the same numbers in one list"),
    "lr_schedule.lr_end": (Fate.RENAMED, "carried where the schedule uses it, by the contract's table"),
    "lr_schedule.decay_*": (Fate.RENAMED, SCHEDULE),
    "lr_schedule.warmup_epochs": (Fate.REFUSED, "releases read it differently"),
    "only_save_strategy": (Fate.REFUSED, "asked with True, which ends the graph run before it trains"),
    "parallel.enable_parallel_optimizer": (Fate.DROPPED, "the contract shards over all data-parallel ranks: memory"),
    "parallel.parallel_optimizer_config.optimizer_weight_shard_size": (
        Fate.DROPPED,
        "the contract shards over all data-parallel ranks: memory",
    ),
    "parallel_config.use_seq_parallel": (Fate.COMPUTED, "sequence_parallel, by the contract's table"),
    "print_separate_loss": (Fate.DROPPED, "log only, as the reference's own note says"),
    "recompute": (Fate.UNKNOWN, LOST_INDENTATION),
    "mp_comm_recompute": (Fate.UNKNOWN, LOST_INDENTATION),
    "parallel_optimizer_comm_recompute": (Fate.UNKNOWN, LOST_INDENTATION),
    "recompute_slice_activation": (Fate.UNKNOWN, LOST_INDENTATION),
    "recompute_config.select_recompute.*": (Fate.DROPPED, "patterns name graph mode's modules: memory"),
    "resume_by_last_timestamp_ckpt": (Fate.DROPPED, "PyNative mode always resumes from the newest"),
    "runner_wrapper.enable_check_overflow": (Fate.DROPPED, "with bfloat16 nothing overflows"),
    "runner_wrapper.scale_sense*": (
        Fate.DROPPED,
        "with bfloat16 a loss scale changes nothing, by the contract's table",
    ),
    "runner_wrapper.sens": (Fate.DROPPED, "with bfloat16 a loss scale changes nothing, by the contract's table"),
    "train_dataset.construct_args_key": (Fate.DROPPED, "column_names follows input_columns, else the mask flags"),
    "train_dataset.output_columns": (Fate.REFUSED, "columns of a step from text, which is refused too"),
    "train_dataset.data_loader.compressed_eod_mask_length": (Fate.RENAMED, READERS),
    "train_dataset.data_loader.create_attention_mask": (Fate.RENAMED, READERS),
    "train_dataset.data_loader.create_compressed_eod_mask": (Fate.RENAMED, READERS),
    "train_dataset.data_loader.data_files": (Fate.RENAMED, READERS),
    "train_dataset.data_loader.dataset_dir": (Fate.RENAMED, READERS),
    "train_dataset.data_loader.handler*": (Fate.RENAMED, READERS),
    "train_dataset.data_loader.load_func": (Fate.RENAMED, READERS),
    "train_dataset.data_loader.path": (Fate.RENAMED, READERS),
    "train_dataset.data_loader.split": (Fate.RENAMED, READERS),
    "train_dataset.data_loader.use_broadcast_data": (Fate.RENAMED, READERS),
    "train_dataset.data_loader.num_samples": (Fate.COMPUTED, "the steps follow from it"),
    "use_legacy": (Fate.REFUSED, "asked with True, without a legacy class to translate"),
}
"""Where this table decides otherwise than the reference, and why; `*` at the end stands for anything."""

DEFAULTS_LOSE = {
    "context.max_device_memory": "58GB against 59GB, a key that the readers parse and do not read",
    "parallel.enable_parallel_optimizer": "False keeps whole optimizer states in graph mode",
    "parallel_config.gradient_aggregation_group": "graph mode's own fusion of communication",
    "parallel_config.optimizer_shard": "False keeps whole optimizer states in graph mode",
    "parallel_config.use_seq_parallel": "MindFormers 2.1 needs sequence_parallel with tensor parallelism",
    "parallel.parallel_optimizer_config.optimizer_weight_shard_size": "the readers shard over all data-parallel ranks",
    "parallel_config.vocab_emb_dp": "the readers split the embedding their own way",
}
"""Keys whose off or default value still costs memory or speed."""
NEEDED = ("callbacks[].type", "train_dataset.data_loader.type", "optimizer.type")
"""Keys without which the file says too little."""


@dataclass(frozen=True, eq=False)
class Field:
    """A key path of real files: the reference's fate, families that hold it, types and values met."""

    path: str
    fate: str
    families: frozenset[str]
    types: frozenset[str]
    values: tuple[object, ...]
    section: bool

    @property
    def only_legacy(self) -> bool:
        """Whether only a legacy model class knows it."""
        return self.path.startswith(LEGACY_MODEL) and "mcore" not in self.families

    def typical(self) -> object:
        """A value that real files have, on rather than off."""
        if self.path in VALUES or self.section:
            return VALUES.get(self.path)
        value = next((value for value in self.values if value), self.values[0] if self.values else "x")
        return True if isinstance(value, bool) else value


def fields(shared: Path) -> Iterator[Field]:
    """All fields that one file can hold; `base_config` makes a file part of others."""
    found = json.loads((shared / "reference" / "graph-fields.json").read_text(encoding="utf-8"))["fields"]
    assert len(found) == 1302
    paths = [one["path"] for one in found]
    for one in found:
        path = one["path"]
        if path == "base_config":
            continue
        inside = any(other.startswith((f"{path}.", f"{path}[]")) for other in paths)
        values = tuple(json.loads(text) for text, _ in one["values"])
        yield Field(
            path, one["fate"], frozenset((*one["files"], *one["pool"])), frozenset(one["types"]), values,
            section=inside and not any(values),
        )  # fmt: skip


def parts_of(path: str) -> list[str]:
    """The keys of a path; patterns below select_recompute hold dots themselves."""
    found = re.match(r"(recompute_config\.select_(?:comm_)?recompute)\.(.*)", path)
    return [*found[1].split("."), found[2]] if found else path.split(".")


def put(root: dict[str, object], path: str, value: object) -> None:
    """Set a key; a list of mappings has one item, `callbacks` one for each type."""
    node = root
    *sections, last = parts_of(path)
    for part in sections:
        name = part.removesuffix("[]")
        if part.endswith("[]"):
            items = cast("list[dict[str, object]]", node.setdefault(name, []) or [])
            node[name] = items
            node = item_of(items, {"type": OWNERS.get(last, "CheckpointMonitor")} if name == "callbacks" else {})
            continue
        if not isinstance(node.get(name), dict):
            node[name] = {}
        node = cast("dict[str, object]", node[name])
    node[last] = value


def item_of(items: list[dict[str, object]], new: dict[str, object]) -> dict[str, object]:
    found = next((item for item in items if item.get("type") == new.get("type", item.get("type"))), None)
    if found is not None:
        return found
    items.append(new)
    return new


def graph_file(group: Mapping[Field, object]) -> str:
    root = yaml.safe_load(BASE)
    root["model"] = {"model_config": dict(MCORE)}
    first = next(iter(group))
    if first.path.partition(".")[0] in LAYOUTS:
        root["training_args"] = {"epochs": 1}
    if first.only_legacy:
        del root["use_legacy"]
        root["model"] = {"arch": {"type": "CLIPModel"}, "model_config": {"type": "CLIPConfig"}}
    for field, value in group.items():
        put(root, field.path, value)
    return str(yaml.safe_dump(root, sort_keys=False))


def outcomes(group: Mapping[Field, object]) -> Iterator[tuple[Field, Outcome]]:
    """What the conversion of one file with all keys of a group decides on each."""
    conversion = convert(parse(source_from_bytes("graph.yaml", graph_file(group).encode())), Options())
    found: dict[str, Outcome] = {}
    for one in conversion.entries:
        if one.graph is not None:
            found[re.sub(r"\[\d+\]", "", one.graph)] = one.outcome
    for field in group:
        yield field, found[field.path.replace("[]", "")]


def grouped(asked: Iterable[tuple[Field, object]]) -> Iterator[dict[Field, object]]:
    """Keys that one file can hold together: those of one section, apart from keys that decide on others."""
    groups: dict[tuple[str, bool], dict[Field, object]] = {}
    for field, value in asked:
        if field.path in ALONE or field.section:
            yield {field: value}
            continue
        top = "" if "." not in field.path and "[" not in field.path else re.split(r"[.\[]", field.path)[0]
        groups.setdefault((top, field.only_legacy), {})[field] = value
    yield from groups.values()


def decided(path: str) -> str | None:
    """The name under which DECIDED knows a path."""
    if path in DECIDED:
        return path
    return next((name for name in DECIDED if name.endswith("*") and path.startswith(name[:-1])), None)


def agrees(field: Field, outcome: Outcome) -> bool:
    """Whether an outcome says what the reference says: a loss is refused, or dropped with what it costs."""
    if field.section:
        return outcome.fate in ANY
    if field.only_legacy:
        return outcome.fate is Fate.REFUSED or (field.path.startswith("moe_config") and outcome.fate in ANY)
    warned = outcome.fate is Fate.DROPPED and outcome.effect is not Effect.NONE
    return outcome.fate in EXPECTED[field.fate] or (field.fate == "unsupported-must-warn" and warned)


def test_every_key_has_the_fate_of_the_reference_or_a_reason(shared: Path) -> None:
    wrong, used = [], set()
    for group in grouped((field, field.typical()) for field in fields(shared)):
        for field, outcome in outcomes(group):
            name = decided(field.path)
            if agrees(field, outcome):
                continue
            if name is not None and outcome.fate is DECIDED[name][0]:
                used.add(name)
            else:
                wrong.append((field.path, field.fate, outcome.fate.value, outcome.effect.value, outcome.why))
    assert wrong == []
    assert set(DECIDED) == used, "decisions that the reference shares"


@pytest.mark.parametrize("off", [None, False])
def test_a_key_that_is_off_or_null_loses_nothing(shared: Path, off: bool | None) -> None:
    free = [field for field in fields(shared) if not field.only_legacy and not field.section]
    free = [field for field in free if field.path.partition(".")[0] not in LAYOUTS and field.path not in NEEDED]
    wrong = []
    for group in grouped((field, off) for field in free if off is None or "bool" in field.types):
        for field, outcome in outcomes(group):
            if outcome.effect is not Effect.NONE and field.path not in DEFAULTS_LOSE:
                wrong.append((field.path, outcome.fate.value, outcome.effect.value, outcome.why))
    assert wrong == []
