"""Real Graph-mode files: converted or refused with a reason, every leaf accounted for, numbers worked out by hand."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from msmigrate.convert import Conversion, convert
from msmigrate.findings import Severity
from msmigrate.lint import lint
from msmigrate.mapping.graph_file import Family
from msmigrate.mapping.outcome import Effect, Fate
from msmigrate.options import Options, Target
from msmigrate.problems import UnreadableError
from msmigrate.pynative.load import load_config
from msmigrate.pynative.start_up import Setting
from msmigrate.report import totals
from msmigrate.yaml.document import parse
from msmigrate.yaml.nodes import leaves
from msmigrate.yaml.parts import with_parts
from msmigrate.yaml.scalars import Value
from msmigrate.yaml.source import read_source, source_from_bytes
from msrt.models.registry import config_from_model_section, parameter_count

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


LEGACY = (
    "finetune_llama3_1_70b", "finetune_llama3_1_8b", "finetune_qwen2.5_72B_32K", "finetune_qwen2_5_0_5b_8k",
    "finetune_qwen2_5_7b_8k", "pretrain_llama3_70b__v1.5.0", "pretrain_qwen1_5_72b__v1.5.0", "test_ttp__v1.5.0",
)  # fmt: skip
"""Legacy files that convert once the number of samples is known."""
LOSSY = (
    "finetune_internlm2_20b__v1.5.0", "finetune_llama3_8b__v1.5.0", "finetune_qwen25_14b_128k",
    "finetune_qwen_14b_auto_parallel__v1.4.0-beta2", "pretrain_codellama_34b__v1.5.0",
    "pretrain_deepseek3_671b__v1.5.0", "pretrain_deepseek_33b_16k__v1.5.0",
    "pretrain_llama2_70b_auto_parallel__v1.5.0", "pretrain_llama2_70b_bf16_64p__v1.5.0", "pretrain_llama2_7b__v1.5.0",
    "run_llama2_7b_910b__v1.0.2", "run_skywork_13b__v1.0.2", "test_tensorboard",
)  # fmt: skip
"""Legacy files that lose something which `--allow-lossy` accepts."""


def of_family(shared: Path, family: str) -> dict[str, Path]:
    return {path.stem: path for path in sorted((shared / "corpus" / "graph" / family).rglob("*.yaml"))}


def merged(path: Path, options: Options) -> Conversion:
    """The conversion of a file with the parts that it includes; made twice, to the same result."""
    first, second = (convert(with_parts(parse(read_source(str(path))), str(path)), options) for _ in range(2))
    assert (first.text, first.entries) == (second.text, second.entries), path
    return first


@pytest.mark.parametrize("lossy", [False, True])
def test_legacy_files_convert_or_say_why_not(shared: Path, lossy: bool) -> None:
    files = of_family(shared, "legacy")
    assert len(files) == 53
    converts = set()
    for name, path in files.items():
        conversion = merged(path, Options(samples=64000, allow_lossy=lossy))
        assert account(conversion), path
        if conversion.text is None:
            assert conversion.refusals, path
            continue
        converts.add(name)
        read = yaml.safe_load(conversion.text)
        assert at(read, "model.model_type") in ("llama", "deepseek_v3")
        findings = lint(source_from_bytes("p.yaml", conversion.text.encode()))
        assert [str(finding) for finding in findings if finding.severity is Severity.ERROR] == [], path
        if not lossy:
            effects = {entry.outcome.effect for entry in conversion.entries}
            assert Effect.TRAINING not in effects, path
    assert converts == {*LEGACY, *(LOSSY if lossy else ())}


def test_legacy_values_worked_out_by_hand(shared: Path) -> None:
    files = of_family(shared, "legacy")
    text = merged(files["pretrain_llama2_70b_bf16_64p__v1.5.0"], Options(samples=64000, allow_lossy=True)).text
    assert text is not None
    model = yaml.safe_load(text)["model"]
    # 4·8192·1.31 = 42926, two thirds 28617, up to a multiple of 256: the width of Llama 2 70B
    assert (model["intermediate_size"], model["num_key_value_heads"], model["rope_theta"]) == (28672, 8, 10000.0)
    text = merged(files["pretrain_deepseek3_671b__v1.5.0"], Options(allow_lossy=True)).text
    assert text is not None
    read = yaml.safe_load(text)
    assert read["model"]["n_routed_experts"] == 256
    assert read["model"]["rotary_scaling_factor"] == 1.0
    # 16 stages of 3 layers, plus 1 but -1 at the last: 62 with the layer of multi-token prediction; 56 recomputed
    assert read["recompute"]["full_recompute_layer"] == ["0-2", "4-54", "56-57"]


PARAMETERS = {
    "pretrain_llama2_7b__v1.5.0": 6_738_415_616, "pretrain_llama2_70b_bf16_64p__v1.5.0": 68_976_648_192,
    "finetune_llama3_1_8b": 8_030_261_248, "finetune_llama3_1_70b": 70_553_706_496,
    "finetune_qwen2_5_0_5b_8k": 494_032_768, "finetune_qwen2_5_7b_8k": 7_615_616_512,
    "finetune_qwen2.5_72B_32K": 72_706_203_648,
}  # fmt: skip
"""Parameters of the published models that the files train."""


@pytest.mark.parametrize(("name", "parameters"), PARAMETERS.items())
def test_translated_models_have_the_parameters_of_the_published_ones(shared: Path, name: str, parameters: int) -> None:
    text = merged(of_family(shared, "legacy")[name], Options(samples=64000, allow_lossy=True)).text
    assert text is not None
    config = config_from_model_section(load_config(text, name).config.model)
    assert parameter_count(config) == parameters


def test_llmtrainer_files_are_refused_key_by_key(shared: Path) -> None:
    files = of_family(shared, "llmtrainer")
    assert len(files) == 4
    for path in files.values():
        conversion = merged(path, Options(samples=64000, allow_lossy=True))
        assert account(conversion), path
        assert {entry.outcome.fate.value for entry in conversion.entries} == {"refused"}
        assert "LLMTrainer" in conversion.refusals[0].outcome.why


def test_split_files_are_merged_or_name_the_part_that_is_missing(shared: Path) -> None:
    files = of_family(shared, "split")
    assert len(files) == 7
    for path in files.values():
        conversion = merged(path, Options(samples=64000, world=1, allow_lossy=True))
        assert account(conversion), path
        assert conversion.text is None, path
    gpt2 = merged(files["run_gpt2"], Options(samples=64000, world=1, allow_lossy=True))
    assert gpt2.family is Family.SPLIT
    assert [part.name.rpartition("/")[2] for part in gpt2.document.parts] == [
        "run_gpt2.yaml", "context.yaml", "runner.yaml", "gpt2_dataset.yaml", "gpt2.yaml", "__base__.yaml",
    ]  # fmt: skip
    (reason,) = gpt2.refusals
    assert "GPT2Config" in reason.outcome.why
    values = {entry.graph: (entry.old, entry.outcome.fate) for entry in gpt2.entries}
    assert values["runner_config.image_size"] == (224, Fate.DROPPED)  # of a part
    assert values["parallel_config.gradient_aggregation_group"] == (4, Fate.DROPPED)  # the file's, over the part's 6
    (reason,) = merged(files["run_t5_small_on_wmt16"], Options()).refusals
    assert "t5/task_config/context.yaml, and there is no such file" in reason.outcome.why


def test_the_lint_cases(shared: Path) -> None:
    sample = shared / "spec" / "pynative-sample.yaml"
    assert lint(read_source(str(sample))) == []
    assert [finding.code for finding in lint(read_source(str(sample)), Setting(world=8))] == ["P054"]
    for setting in (Setting(), Setting(world=8)):
        assert lint(read_source(str(shared / "cases" / "base" / "pynative.yaml")), setting) == []
    keys = [finding.key for finding in lint(read_source(str(shared / "cases" / "C34.yaml")), Setting(world=8))]
    assert keys == [
        "checkpoint.save_paht", "training.steps", "training.global_batch_size", "lr_scheduler.warmup_ratio",
        "recompute.full_recompute_layer",
    ]  # fmt: skip
