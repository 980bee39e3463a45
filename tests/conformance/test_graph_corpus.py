"""Real Graph-mode files: converted or refused with a reason, every leaf accounted for, numbers worked out by hand."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from msmigrate.convert import Conversion, convert
from msmigrate.lint import lint
from msmigrate.options import Options, Target
from msmigrate.problems import UnreadableError
from msmigrate.report import totals
from msmigrate.yaml.document import parse
from msmigrate.yaml.nodes import leaves
from msmigrate.yaml.scalars import Value
from msmigrate.yaml.source import read_source, source_from_bytes

MCORE = (
    "deepseekv3_train", "finetune_deepseek3_671b", "finetune_qwen3", "finetune_qwen3__v1.7.0",
    "llm_finetune_dense_template", "llm_finetune_dense_template__v1.7.0", "llm_finetune_moe_template",
    "llm_pretrain_dense_template", "llm_pretrain_moe_template", "llm_pretrain_moe_template__v1.7.0",
    "pretrain_deepseek3_12b_16p_pp16", "pretrain_deepseek3_671b", "pretrain_qwen3_30b_a3b_4k",
    "pretrain_qwen3_32b_4k", "pretrain_qwen3_32b_4k__dev", "pretrain_qwen3_32b_4k__v1.7.0", "pretrain_telechat3_36b",
    "telechat3_train",
)  # fmt: skip

DEEPSEEK: Mapping[str, Value] = {
    "model_type": "deepseek_v3", "architectures": ["DeepseekV3ForCausalLM"], "num_hidden_layers": 61,
    "hidden_size": 7168, "vocab_size": 129280, "num_nextn_predict_layers": 1,
}  # fmt: skip
QWEN: Mapping[str, Value] = {
    "model_type": "qwen3", "architectures": ["Qwen3ForCausalLM"], "num_hidden_layers": 64, "hidden_size": 5120,
    "vocab_size": 151936, "torch_dtype": "bfloat16", "use_sliding_window": False,
}  # fmt: skip


def generous(name: str) -> Options:
    """Options that give every file what it lacks."""
    config = DEEPSEEK if "deepseek" in name else QWEN
    loader: dict[str, Value] = {"train_dataset.dataloader.type": "BlendedMegatronDatasetDataLoader"}
    return Options(
        samples=None if name.startswith("pretrain") else 64000,
        hf_config=None if name.startswith("pretrain") else config,
        hf_config_path="config.json",
        overrides=loader if name.endswith("_train") else {},
        allow_lossy=True,
    )


def converted(shared: Path, name: str, options: Options) -> Conversion:
    return convert(parse(read_source(str(shared / "corpus" / "graph" / "mcore" / f"{name}.yaml"))), options)


@pytest.mark.parametrize("name", MCORE)
def test_without_options_a_file_converts_or_says_which_option_helps(shared: Path, name: str) -> None:
    if name == "telechat3_train":
        with pytest.raises(UnreadableError, match=r"qk_layernorm.*line 105.*line 120"):
            converted(shared, name, Options())
        return
    conversion = converted(shared, name, Options())
    assert account(conversion)
    if conversion.text is not None:
        assert name.startswith("pretrain")
        return
    assert conversion.refusals
    for entry in conversion.refusals:
        assert entry.outcome.help, entry
        assert "--" in entry.outcome.help, entry


def account(conversion: Conversion) -> bool:
    """Whether each leaf has exactly one entry, and the totals add up."""
    paths = Counter(entry.graph for entry in conversion.entries if entry.graph is not None)
    counts = totals(conversion)
    leaf_count = sum(1 for _ in leaves(conversion.document.root))
    return (
        max(paths.values()) == 1
        and len(paths) == leaf_count == counts["leaves_read"]
        and counts["leaves_read"] == sum(count for fate, count in counts.items() if fate != "leaves_read")
        and counts["unknown"] == 0
    )


@pytest.mark.parametrize("target", list(Target))
@pytest.mark.parametrize("name", [name for name in MCORE if name != "telechat3_train"])
def test_with_the_options_every_file_converts(shared: Path, name: str, target: Target) -> None:
    options = replace(generous(name), target=target)
    conversion = converted(shared, name, options)
    assert account(conversion)
    assert conversion.text is not None, [entry.outcome.why for entry in conversion.refusals]
    read = yaml.safe_load(conversion.text)
    for entry in conversion.entries:
        if entry.outcome.writes and entry.outcome.pynative and "[" not in entry.outcome.pynative:
            assert at(read, entry.outcome.pynative) == entry.new, entry
    written = {entry.outcome.pynative for entry in conversion.entries if entry.outcome.writes}
    assert {path.partition("[")[0] for path in written if path} == set(paths_of(read))
    assert [str(finding) for finding in lint(source_from_bytes("p.yaml", conversion.text.encode()))] == []
    assert converted(shared, name, options).text == conversion.text


def at(value: object, path: str) -> object:
    for part in path.split("."):
        assert isinstance(value, dict)
        value = value[part]
    return value


def paths_of(value: object, prefix: str = "") -> list[str]:
    if not isinstance(value, dict) or prefix.endswith("select_module"):
        return [prefix]
    return [path for key, inner in value.items() for path in paths_of(inner, f"{prefix}.{key}" if prefix else key)]


@pytest.mark.parametrize(
    ("name", "steps", "local", "batch", "ratio"),
    [
        ("pretrain_deepseek3_671b", 1000, 1, 128, 0.2),
        ("pretrain_deepseek3_12b_16p_pp16", 3000, 1, 16, 0),
        ("pretrain_telechat3_36b", 20000, 1, 4, 0.1),
        ("pretrain_qwen3_32b_4k", 4000, 1, 4, 0),
        ("pretrain_qwen3_30b_a3b_4k", 500, 1, 16, 0),
    ],
)
def test_worked_examples(shared: Path, name: str, steps: int, local: int, batch: int, ratio: float) -> None:
    text = converted(shared, name, Options(allow_lossy=True)).text
    assert text is not None
    read = yaml.safe_load(text)
    training = read["training"]
    assert (training["steps"], training["local_batch_size"], training["global_batch_size"]) == (steps, local, batch)
    assert read["lr_scheduler"]["warmup_ratio"] == ratio


def test_files_of_other_families_are_accounted_for_and_refused(shared: Path) -> None:
    seen: Counter[str] = Counter()
    for family in ("legacy", "llmtrainer", "split"):
        for path in sorted((shared / "corpus" / "graph" / family).rglob("*.yaml")):
            conversion = convert(parse(read_source(str(path))), Options(samples=64000, allow_lossy=True))
            counts = totals(conversion)
            assert counts["leaves_read"] == sum(1 for _ in leaves(conversion.document.root)), path
            assert counts["leaves_read"] == sum(count for fate, count in counts.items() if fate != "leaves_read"), path
            assert conversion.text is None, path
            seen[family] += 1
    assert seen == {"legacy": 53, "llmtrainer": 4, "split": 7}


BASE = "base"
CASES = [
    ("C03", {"training.local_batch_size": 2, "training.global_batch_size": 8, "training.steps": 50,
             "lr_scheduler.warmup_ratio": 0.2}),
    ("C04", {"parallelism.tensor_parallel": 2, "parallelism.data_parallel_shard": -1,
             "training.global_batch_size": 16, "training.steps": 25, "lr_scheduler.warmup_ratio": 0.2}),
    ("C05", {"lr_scheduler.warmup_ratio": 0.29000000000000004}),
    ("C08", {"training.steps": 375, "lr_scheduler.warmup_ratio": 0.2}),
    ("C09", {"lr_scheduler.lr_end": 2e-6, "lr_scheduler.warmup_lr_init": 1e-7}),
    ("C10", {"lr_scheduler.learning_rate": 1e-5, "optimizer.eps": 1e-8, "optimizer.weight_decay": 1e-2}),
    ("C16", {"model.max_position_embeddings": 128}),
    ("C17", {"train_dataset.dataloader.config.data_path": ["1", "./data/语料_text_document"]}),
    ("C19", {"model.architectures": "DeepseekV3ForCausalLM"}),
    ("C25", {"recompute.full_recompute_layer": ["0-1", 4]}),
    ("C36", {"train_dataset.dataloader.python_multiprocessing": True}),
    (BASE, {"training.steps": 100, "training.global_batch_size": 4, "lr_scheduler.warmup_ratio": 0.2,
            "recompute.full_recompute_layer": ["0-3"], "training.seed": 42}),
]  # fmt: skip


@pytest.mark.parametrize(("case", "expected"), CASES)
def test_user_cases(shared: Path, case: str, expected: dict[str, object]) -> None:
    conversion = convert(parse(read_source(str(shared / "cases" / case / "graph.yaml"))), Options())
    assert conversion.text is not None
    read = yaml.safe_load(conversion.text)
    assert {path: at(read, path) for path in expected} == expected
    assert conversion.notes == ()


def test_the_lint_cases(shared: Path) -> None:
    sample = shared / "spec" / "pynative-sample.yaml"
    assert lint(read_source(str(sample))) == []
    codes = [finding.key for finding in lint(read_source(str(shared / "cases" / "C34.yaml")))]
    assert codes == ["checkpoint.save_paht", "training.steps", "lr_scheduler.warmup_ratio"]
