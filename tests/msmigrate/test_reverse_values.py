"""What each kind of pynative key becomes in a graph file."""

import pytest
from graph_text import document, output
from pynative_text import PYNATIVE, changed, graph_of, reasons, reversed_

from msmigrate.convert import convert
from msmigrate.entries import ConvertedAlreadyError
from msmigrate.options import ExpertMesh, Options
from msmigrate.problems import UserError
from msmigrate.report import markdown_report, report_object, text_report, totals
from msmigrate.yaml.scalars import Value


def test_batch_length_and_warmup() -> None:
    graph = graph_of(PYNATIVE)
    assert graph["runner_config.batch_size"] == 2
    assert graph["parallel_config.data_parallel"] == 2
    assert graph["runner_config.gradient_accumulation_steps"] == 3
    assert graph["runner_config.epochs"] == 2
    assert "runner_config.stop_step" not in graph
    assert graph["lr_schedule.warmup_ratio"] == 0.05


def test_steps_that_fill_no_epoch_stop_early_and_keep_the_horizon() -> None:
    text = changed(("steps: 100", "steps: 77"))
    graph = graph_of(text)
    assert (graph["runner_config.epochs"], graph["runner_config.stop_step"]) == (2, 77)
    assert graph["lr_schedule.total_steps"] == 77
    again = output(str(reversed_(text).text))
    assert (again["training.steps"], again["lr_scheduler.warmup_ratio"]) == (77, 0.05)
    assert again["lr_scheduler.type"] == "CosineWithWarmUpLR"


def test_defaults_that_differ_are_written_out() -> None:
    graph = graph_of(PYNATIVE)
    assert graph["seed"] == 42
    assert graph["optimizer.betas"] == [0.9, 0.95]
    assert graph["optimizer.weight_decay"] == 0.01
    assert graph["train_dataset.input_columns"] == ["input_ids", "labels"]
    assert graph["recompute_config.mp_comm_recompute"] is False
    monitor = callbacks(graph)["CheckpointMonitor"]
    assert monitor["save_checkpoint_steps"] == 1000
    fates = {entry.graph: entry.outcome.fate.value for entry in reversed_(PYNATIVE).entries if entry.source is None}
    assert {fates["seed"], fates["optimizer.betas"], fates["use_legacy"]} == {"default"}


def callbacks(graph: dict[str, Value]) -> dict[str, dict[str, Value]]:
    found = graph["callbacks"]
    assert isinstance(found, list)
    return {str(item["type"]): item for item in found if isinstance(item, dict)}


def test_the_file_is_an_mcore_file() -> None:
    graph = graph_of(PYNATIVE)
    assert graph["use_legacy"] is False
    assert graph["run_mode"] == "train"
    assert graph["trainer.type"] == "CausalLanguageModelingTrainer"
    assert graph["model.model_config.architectures"] == "DeepseekV3ForCausalLM"
    assert graph["train_precision_sync"] is True
    assert graph["parallel.parallel_mode"] == 1


def test_saving() -> None:
    graph = graph_of(PYNATIVE)
    assert graph["output_dir"] == "./out"
    assert callbacks(graph)["CheckpointMonitor"]["keep_checkpoint_max"] == 3
    elsewhere = graph_of(changed(('"./out/checkpoint"', '"./models"')))
    assert callbacks(elsewhere)["CheckpointMonitor"]["directory"] == "./models"
    unsaved = reversed_(changed(("enable_save: True", "enable_save: False")))
    assert "CheckpointMonitor" not in str(unsaved.text)
    fates = {entry.pynative: entry.outcome.fate.value for entry in unsaved.entries if entry.source}
    assert fates["checkpoint.save_max"] == "dropped"


@pytest.mark.parametrize(
    ("lines", "resumes", "mode"),
    [
        ("", False, "train"),
        ("  load_path: /w\n", True, "train"),
        ("  load_path: /w\n  no_load_optim: True\n", False, "finetune"),
        ("  load_path: ''\n  no_load_optim: False\n", False, "train"),
    ],
)
def test_loading(lines: str, resumes: bool, mode: str) -> None:
    graph = graph_of(changed(("checkpoint:\n", f"checkpoint:\n{lines}")))
    assert (graph["resume_training"], graph["run_mode"]) == (resumes, mode)


@pytest.mark.parametrize(("norm", "clips"), [("2.5", True), ("1.0e+10", False)])
def test_clipping(norm: str, clips: bool) -> None:
    graph = graph_of(changed(("  steps: 100\n", f"  steps: 100\n  max_norm: {norm}\n")))
    assert graph["runner_wrapper.use_clip_grad"] is clips
    assert graph.get("runner_wrapper.max_grad_norm") == (2.5 if clips else None)


@pytest.mark.parametrize(
    ("layers", "recompute", "chunks"),
    [
        ("[0-5]", True, None),
        ("[0-3]", [4], None),
        ("[0, 2-3]", [[1], [2]], [[-1], [1]]),
        ("[2]", [[0], [1]], [[-1], [1]]),
        ("[1, 3, 5]", [[0], [1], [1], [1]], [[0], [1], [1], [0]]),
    ],
)
def test_recomputed_layers_come_back(layers: str, recompute: Value, chunks: Value) -> None:
    text = changed(("[0-5]", layers))
    graph = graph_of(text)
    assert graph["recompute_config.recompute"] == recompute
    assert graph.get("model.model_config.offset") == chunks
    again = output(str(reversed_(text).text))
    assert [str(part) for part in again["recompute.full_recompute_layer"]] == [  # type: ignore[union-attr]  # a list
        part.strip() for part in layers.strip("[]").split(",")
    ]


def test_selective_recomputation() -> None:
    select = (
        "  mode: full\n  full_recompute_layer: [0-5]\n",
        "  mode: select\n  select_module:\n    self_attention: [0-2]\n    '.*norm': [0-5]\n",
    )
    conversion = reversed_(changed(select))
    graph = graph_of(changed(select))
    assert (graph["recompute_config.recompute"], graph["recompute_config.select_recompute"]) == (True, [3])
    told = {entry.pynative: entry.outcome for entry in conversion.entries if entry.source}
    assert told["recompute.select_module..*norm"].effect.value == "memory"


def test_what_graph_mode_has_no_key_for() -> None:
    text = changed(("  type: AdamW\n", "  type: AdamW\n  weight_decay_exclude: [bias]\n"))
    assert "weight_decay_exclude" in reasons(text)[0]
    lossy = reversed_(text, Options(world=4, allow_lossy=True))
    assert lossy.text is not None
    quiet = reversed_(PYNATIVE + "profiler:\n  enable_profiling: True\nswap:\n  enable: True\n")
    told = {entry.pynative: entry.outcome.effect.value for entry in quiet.entries if entry.source}
    assert (told["profiler.enable_profiling"], told["swap.enable"]) == ("none", "memory")


def test_second_mentions_of_the_readers() -> None:
    both = changed(("  hidden_size: 64\n", "  hidden_size: 64\n  scaling_factor: 4\n  rotary_scaling_factor: 4\n"))
    graph = graph_of(both)
    assert graph["model.model_config.scaling_factor"] == 4
    assert "model.model_config.rotary_scaling_factor" not in graph
    assert "keep one of them" in reasons(both.replace("rotary_scaling_factor: 4", "rotary_scaling_factor: 5"))[0]


@pytest.mark.parametrize(
    ("change", "options", "parts"),
    [
        (("steps: 100", "steps: 100"), Options(), ["--world N", "12"]),
        (("sizes: [600, 0, 0]", "shuffle: False"), Options(world=4), ["--samples N"]),
        (("global_batch_size: 12", "global_batch_size: 10"), Options(world=4), ["8 and 12", "10"]),
        (("sizes: [600, 0, 0]", "sizes: [6, 0, 0]"), Options(world=4), ["6 samples", "12"]),
        (("steps: 100", "steps: 100"), Options(world=3), ["3 devices", "2 and 4"]),
        (("[0-5]", "[0-6]"), Options(world=4), ["layer 6", "0 to 5"]),
        (("type: AdamW", "type: Muon"), Options(world=4), ["Muon"]),
        (("BlendedMegatronDatasetDataLoader", "OwnLoader"), Options(world=4), ["OwnLoader"]),
    ],
)
def test_refusals_name_numbers_and_a_way_out(change: tuple[str, str], options: Options, parts: list[str]) -> None:
    told = " ".join(reasons(changed(change), options))
    for part in parts:
        assert part in told


def test_expert_parallel_under_both_readings() -> None:
    text = changed(("tensor_parallel: 2", "tensor_parallel: 1\n  expert_parallel: 4"))
    assert "not a multiple" in reasons(text, Options(world=12))[0]
    nested = graph_of(
        text.replace("global_batch_size: 12", "global_batch_size: 16"), Options(world=4, expert_mesh=ExpertMesh.NESTED)
    )
    assert (nested["parallel_config.data_parallel"], nested["parallel_config.expert_parallel"]) == (4, 4)


def test_set_changes_the_run_before_it_is_turned_back() -> None:
    options = Options(world=4, overrides={"training.steps": 50, "training.seed": 3, "model.vocab_size": 512})
    graph = graph_of(PYNATIVE, options)
    assert (graph["runner_config.epochs"], graph["seed"]) == (1, 3)
    assert graph["model.model_config.vocab_size"] == 512


def test_files_that_are_none() -> None:
    with pytest.raises(ConvertedAlreadyError, match=r"is a graph\.yaml already"):
        reversed_("runner_config:\n  epochs: 1\n")
    with pytest.raises(UserError, match="a file has one kind"):
        reversed_(PYNATIVE + "runner_config:\n  epochs: 1\n")
    with pytest.raises(UserError, match=r"graph\.yaml:7:.*training\.steps"):
        reversed_(changed(("steps: 100", "steps: many")))


def test_unknown_keys_are_told_with_a_suggestion() -> None:
    conversion = reversed_(changed(("save_max", "save_mx")))
    entry = next(entry for entry in conversion.entries if entry.pynative == "checkpoint.save_mx")
    assert (entry.outcome.fate.value, entry.graph) == ("unknown", None)
    assert "save_max" in str(entry.outcome.help)


def test_every_leaf_is_accounted_for_once() -> None:
    conversion = reversed_(PYNATIVE + "callbacks:\n  - type: Own\n    every: 3\n")
    counts = totals(conversion)
    assert counts["leaves_read"] == sum(count for fate, count in counts.items() if fate != "leaves_read") == 28
    report = report_object(conversion)
    assert report["source"] == {"path": "graph.yaml", "mode": "pynative", "family": "mcore"}
    assert "| pynative | graph | effect | why |" in markdown_report(conversion)
    assert "graph.yaml for MindFormers" in text_report(conversion)


def test_comments_come_along() -> None:
    text = str(reversed_("# top\n\n" + PYNATIVE).text)
    assert text.startswith("# top\n")
    assert '    prefix: "run"  # of the files\n' in text


def test_stop_step_at_the_horizon_converts() -> None:
    text = str(reversed_(changed(("steps: 100", "steps: 77"))).text)
    assert convert(document(text), Options()).text is not None
    refused = convert(document(text.replace("total_steps: 77", "total_steps: -1")), Options())
    assert refused.text is None


DEGREES = [
    ("context_parallel: 2", 4, {"data_parallel": 1, "context_parallel": 2}, 6),
    ("context_parallel: 2\n  context_parallel_method: ulysses", 8, {"context_parallel_algo": "ulysses_cp"}, 3),
    ("pipeline_parallel: 2", 8, {"data_parallel": 2, "pipeline_stage": 2, "micro_batch_num": 3}, None),
    ("pipeline_parallel: 3\n  context_parallel: 2", 12, {"data_parallel": 1, "micro_batch_num": 6}, None),
    ("pipeline_parallel: 2", 4, {"data_parallel": 1, "micro_batch_num": 6}, None),
]


@pytest.mark.parametrize(("lines", "world", "degrees", "accumulation"), DEGREES)
def test_pipelines_and_split_sequences(
    lines: str, world: int, degrees: dict[str, Value], accumulation: int | None
) -> None:
    graph = graph_of(changed(("tensor_parallel: 2", f"tensor_parallel: 2\n  {lines}")), Options(world=world))
    assert {name: graph[f"parallel_config.{name}"] for name in degrees} == degrees
    assert graph.get("runner_config.gradient_accumulation_steps") == accumulation


def test_a_pipeline_keeps_the_batch_when_it_is_folded_again() -> None:
    text = str(reversed_(changed(("tensor_parallel: 2", "tensor_parallel: 2\n  pipeline_parallel: 2"))).text)
    again = output(text)
    assert (again["training.global_batch_size"], again["training.local_batch_size"]) == (12, 2)
    assert again["training.steps"] == 100


def test_devices_that_do_not_fit_name_every_degree() -> None:
    lines = "tensor_parallel: 2\n  pipeline_parallel: 2\n  context_parallel: 2"
    told = reasons(changed(("tensor_parallel: 2", lines)), Options(world=12))[0]
    assert "12 devices are no multiple of the 8 ranks" in told
    assert "context_parallel 2, pipeline_parallel 2" in told
    assert "8 and 16" in told


def test_fewer_micro_batches_than_stages_are_noted() -> None:
    text = changed(
        ("tensor_parallel: 2", "tensor_parallel: 2\n  pipeline_parallel: 4"), ("batch_size: 12", "batch_size: 2")
    )
    notes = reversed_(text, Options(world=8)).notes
    assert any("micro_batch_num 1 is below pipeline_stage 4" in note for note in notes)


@pytest.mark.parametrize(
    ("stages", "layers", "recompute", "effect"),
    [
        (2, "[0-5]", True, "none"),
        (2, "[0-1, 3]", [2, 1], "none"),
        (2, "[0-3]", [3, 1], "none"),
        (2, "[2, 5]", [1, 1], "memory"),
        (4, "[0-1]", [1, 1, 0, 0], "none"),
    ],
)
def test_recomputed_layers_of_pipeline_stages(stages: int, layers: str, recompute: Value, effect: str) -> None:
    text = changed(("[0-5]", layers), ("tensor_parallel: 2", f"tensor_parallel: 2\n  pipeline_parallel: {stages}"))
    conversion = reversed_(text, Options(world=2 * stages))
    graph = graph_of(text, Options(world=2 * stages))
    assert graph["recompute_config.recompute"] == recompute
    told = {entry.graph: entry.outcome.effect.value for entry in conversion.entries}
    assert told["recompute_config.recompute"] == effect
    assert graph.get("model.model_config.offset") == (None if stages == 2 else [0, 0, 1, 1])
    if effect == "none":
        ids = output(str(conversion.text))["recompute.full_recompute_layer"]
        assert isinstance(ids, list)
        assert f"[{', '.join(map(str, ids))}]" == layers


@pytest.mark.parametrize("lines", ["{enable: True, r: 8}", "{lora_rank: 8}", "{target_modules: '.*'}"])
def test_adapters_are_refused_until_losses_are_allowed(lines: str) -> None:
    text = PYNATIVE + f"lora_config: {lines}\n"
    assert "graph mode has no section lora_config" in reasons(text)[0]
    entry = next(entry for entry in reversed_(text).entries if str(entry.pynative).startswith("lora_config"))
    assert (entry.outcome.fate, entry.outcome.effect) == ("refused", "training")
    assert reversed_(text, Options(world=4, allow_lossy=True)).text is not None
    assert reversed_(PYNATIVE + "lora_config: null\n").text is not None
    by_set = Options(world=4, overrides={"lora_config.lora_rank": 8})
    assert "graph mode has no section lora_config" in reasons(PYNATIVE, by_set)[0]


def test_unknown_keys_may_change_training_where_keys_decide_it() -> None:
    text = changed(("  type: AdamW\n", "  type: AdamW\n  zork: 1\n")) + "zork: 1\nother: *model\n"
    conversion = reversed_(text.replace("model:\n", "model: &model\n"))
    told = {entry.pynative: entry.outcome for entry in conversion.entries if entry.outcome.fate == "unknown"}
    assert {name: outcome.effect.value for name, outcome in told.items()} == {
        "optimizer.zork": "training", "zork": "none", "other": "none",
    }  # fmt: skip
    assert conversion.text is not None


@pytest.mark.parametrize(
    ("lines", "parts"),
    [
        ("scaling_factor: 4", ["(line 36)", "`model.scaling_factor` 4.0 is ignored", "which is 40.0"]),
        ("scoring_func: softmax", ["softmax is ignored", "`moe_router_score_function`, which is sigmoid"]),
        ("router_dense_type: bfloat16", ["bfloat16 is ignored", "`moe_router_dtype`, which is float32"]),
        ("num_heads: 4", ["`model.num_heads` is ignored", "num_attention_heads as 128"]),
    ],
)
def test_keys_that_mindformers_ignores_are_noted_with_both_values(lines: str, parts: list[str]) -> None:
    conversion = reversed_(changed(("  hidden_size: 64\n", f"  hidden_size: 64\n  {lines}\n")))
    assert conversion.text is not None
    assert len(conversion.notes) == 1
    for part in parts:
        assert part in conversion.notes[0]


def test_values_that_the_readers_take_anyway_are_not_noted() -> None:
    conversion = reversed_(changed(("  hidden_size: 64\n", "  hidden_size: 64\n  scaling_factor: 40\n")))
    assert conversion.notes == ()


def test_a_loss_over_all_tokens_is_refused() -> None:
    text = changed(("  hidden_size: 64\n", "  hidden_size: 64\n  calculate_per_token_loss: True\n"))
    assert "calculate_per_token_loss: True" in reasons(text)[0]
    assert reversed_(text.replace("per_token_loss: True", "per_token_loss: False")).text is not None
