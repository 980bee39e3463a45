"""The converted run is the same run: batch, steps, warm-up, degrees, defaults, model keys."""

import pytest
from graph_text import converted, edited, fates, flat, output
from hypothesis import given, settings
from hypothesis import strategies as st

from msmigrate.mapping.outcome import Effect
from msmigrate.options import ExpertMesh, Options, Target
from msmigrate.problems import UserError
from msmigrate.yaml.document import value_of
from msmigrate.yaml.scalars import Value


def test_the_small_file() -> None:
    found = output(edited())
    assert found["training.seed"] == 7
    assert found["training.local_batch_size"] == 2
    assert found["training.global_batch_size"] == 2 * 2 * 3
    assert found["training.steps"] == 2 * (600 // 12)
    assert found["lr_scheduler.warmup_ratio"] == 0.05
    assert found["parallelism.tensor_parallel"] == 2
    assert found["parallelism.data_parallel_shard"] == -1
    assert found["parallelism.sequence_parallel"] is True
    assert found["recompute.mode"] == "full"
    assert found["recompute.full_recompute_layer"] == ["0-5"]
    assert found["recompute_comm.enable"] is False
    assert found["checkpoint.prefix"] == "run"
    assert found["checkpoint.save_interleaved_steps"] == 50
    assert found["checkpoint.save_path"] == "./output/checkpoint"
    assert found["model.architectures"] == "DeepseekV3ForCausalLM"
    assert found["train_dataset.dataloader.column_names"] == ["input_ids", "labels", "loss_mask", "position_ids"]
    assert found["training.max_norm"] == 1.0


@pytest.mark.parametrize(
    ("change", "key", "value"),
    [
        (("pipeline_stage: 1", "pipeline_stage: 2"), "training.global_batch_size", 4),
        (("micro_batch_num: 1", "micro_batch_num: 8"), "training.global_batch_size", 12),
        (("gradient_accumulation_steps: 3", "sink_mode: False"), "training.steps", 300),
        (("gradient_accumulation_steps: 3", "sink_size: 7"), "training.steps", int(150 / 7 * 2) * 7),
        (("gradient_accumulation_steps: 3", "stop_step: 40"), "training.steps", 40),
        (("warmup_steps: 5", "warmup_ratio: 0.29"), "lr_scheduler.warmup_ratio", 0.29),
        (("warmup_steps: 5", "warmup_steps: 29"), "lr_scheduler.warmup_ratio", 0.29000000000000004),
        (("seed: 7\n", ""), "training.seed", 1),
        (("  betas: [0.9, 0.98]\n", ""), "optimizer.betas", [0.9, 0.999]),
        (("  weight_decay: 0.05\n", ""), "optimizer.weight_decay", 0.0),
        (("  use_clip_grad: True\n", ""), "training.max_norm", 1.0),  # accumulation brings a wrapper that clips
        (("  use_clip_grad: True\n", "  use_clip_grad: False\n"), "training.max_norm", 1.0e10),
        (("  use_clip_grad: True\n", "  use_clip_grad: True\n  max_grad_norm: 0.5\n"), "training.max_norm", 0.5),
        (("recompute: True", "recompute: False"), "recompute_comm.enable", False),
        (("recompute: True", "recompute: [2]"), "recompute.full_recompute_layer", ["0-1"]),
        (("  mp_comm_recompute: False\n", ""), "recompute_comm.enable", True),
        (("use_parallel: True", "use_parallel: False"), "parallelism.tensor_parallel", 1),
        (("use_parallel: True", "use_parallel: False"), "training.global_batch_size", 2),
        (("create_attention_mask: False", "create_attention_mask: True"),
         "train_dataset.dataloader.column_names",
         ["input_ids", "labels", "loss_mask", "position_ids", "attention_mask"]),
        (("data_path:", "seed: 99\n      data_path:"), "train_dataset.dataloader.config.seed", 99),
        (("hidden_size: 64", "hidden_size: 64\n    mtp_loss_factor: 0.3"), "model.mtp_loss_scaling_factor", 0.3),
        (("hidden_size: 64", "hidden_size: 64\n    hidden_dropout: 0"), "model.hidden_dropout", 0.0),
        (("weight_decay: 0.05", "weight_decay: 0"), "optimizer.weight_decay", 0.0),
        (("eps: 1.e-8", "eps: 1"), "optimizer.eps", 1.0),
        (("betas: [0.9, 0.98]", "betas: [1, 0]"), "optimizer.betas", [1.0, 0.0]),
        (("hidden_size: 64", "hidden_size: 64\n    num_experts: 16"), "model.n_routed_experts", 16),
        (("hidden_size: 64", "hidden_size: 64\n    scaling_factor: 8"), "model.rotary_scaling_factor", 8),
        (("hidden_size: 64", "hidden_size: 64\n    num_nextn_predict_layers: 1"),
         "recompute.full_recompute_layer", ["0-6"]),
        (('prefix: "run"', "async_save: True"), "checkpoint.prefix", "CKP"),
        (("use_legacy: False", "load_checkpoint: ./ckpt\nresume_training: True"), "checkpoint.no_load_optim", False),
        (("learning_rate: 4.e-4", "learning_rate: 4e-4"), "lr_scheduler.learning_rate", 4e-4),
    ],
)  # fmt: skip
def test_one_change_one_value(change: tuple[str, str], key: str, value: object) -> None:
    assert output(edited(change))[key] == value


@pytest.mark.parametrize(
    ("change", "graph", "fate"),
    [
        (("data_path:", "seed: 1234\n      data_path:"), "train_dataset.data_loader.config.seed", "dropped"),
        (("hidden_size: 64", "hidden_size: 64\n    offset: 0"), "model.model_config.offset", "dropped"),
        (("hidden_size: 64", "hidden_size: 64\n    wild_key: 0"), "model.model_config.wild_key", "unknown"),
        (("eps: 1.e-8", "eps: 1.e-8\n  swap: True"), "optimizer.swap", "dropped"),
        (("micro_batch_num: 1", "micro_batch_nun: 1"), "parallel_config.micro_batch_nun", "unknown"),
        (("warmup_steps: 5", "warmup_steps: 5\n  lr_end: 1.e-5"), "lr_schedule.lr_end", "dropped"),
        (("warmup_steps: 5", "warmup_steps: 5\n  total_steps: 9"), "lr_schedule.total_steps", "dropped"),
        (("warmup_steps: 5", "warmup_steps: 5\n  warmup_ratio: 0.5"), "lr_schedule.warmup_steps", "dropped"),
        (("dataset_config: *data", "dataset_config: *data"), "train_dataset_task.dataset_config", "dropped"),
    ],
)  # fmt: skip
def test_one_change_one_fate(change: tuple[str, str], graph: str, fate: str) -> None:
    assert fates(converted(edited(change)))[graph] == fate


REFUSED = [
    (("warmup_steps: 5", "warmup_steps: 101"), "101", False),
    (("type: AdamW", "type: Came"), "Came", True),
    (("sizes: [600, 0, 0]", "sizes: [0, 0, 0]"), "--samples", False),
    (("model_type: deepseek_v3\n", "hidden_act: silu\n"), "--hf-config", False),
    (("type: ConstantWarmUpLR", "type: CosineWithWarmUpLR\n  total_steps: 900"), "900", True),
    (("hidden_size: 64", "hidden_size: 64\n    moe_router_load_balancing_type: gbs_aux_loss"), "global_aux_loss", True),
    (("pipeline_stage: 1", "context_parallel: 2"), "context_parallel 2", True),
    (("use_legacy: False", "use_legacy: False\nlayer_scale: True"), "per-layer learning rates", True),
    (("use_legacy: False", "use_legacy: False\nrun_mode: predict"), "predict", False),
    (("architectures: [DeepseekV3ForCausalLM]", "architectures: [A, B]"), "2 names", False),
    (("use_clip_grad: True", "scale_sense: 65536\nmodel_x: 1"), None, True),
    (("batch_size: 2", 'batch_size: "2"'), "whole number", None),
    (("hidden_size: 64", "hidden_size: 64.5"), "an integer", False),
]


@pytest.mark.parametrize(("change", "words", "liftable"), [case for case in REFUSED if case[1] is not None])
def test_losses_and_missing_facts_are_refused(change: tuple[str, str], words: str, liftable: bool | None) -> None:
    if liftable is None:
        with pytest.raises(UserError, match=words):
            converted(edited(change))
        return
    conversion = converted(edited(change))
    assert conversion.text is None
    told = " ".join(f"{entry.outcome.why} {entry.outcome.help}" for entry in conversion.refusals)
    assert words in told
    lossy = converted(edited(change), Options(allow_lossy=True))
    assert (lossy.text is not None) is liftable


def test_float16_needs_loss_scaling() -> None:
    scaled = edited(
        ("use_clip_grad: True", "use_clip_grad: True\n  scale_sense: 1024"),
        ("hidden_size: 64", "hidden_size: 64\n    compute_dtype: float16"),
    )
    assert converted(scaled).text is None
    assert converted(scaled.replace("float16", "bfloat16")).text is not None


def test_a_schedule_that_decays_carries_its_ends() -> None:
    text = edited(
        ("type: ConstantWarmUpLR", "type: CosineWithWarmUpLR"),
        ("warmup_steps: 5", "warmup_steps: 5\n  lr_end: 1.e-5\n  warmup_lr_init: 1.e-6"),
    )
    found = output(text)
    assert (found["lr_scheduler.lr_end"], found["lr_scheduler.warmup_lr_init"]) == (1e-5, 1e-6)
    manual = converted(text, Options(manual_only=True))
    assert [entry.graph for entry in manual.refusals] == ["lr_schedule.lr_end", "lr_schedule.warmup_lr_init"]


def test_manual_only_writes_the_manuals_keys() -> None:
    found = output(edited(), Options(manual_only=True))
    assert "parallelism.sequence_parallel" not in found
    assert "training.max_norm" not in found
    asked = edited(("expert_parallel: 1", "expert_parallel: 1\n  use_seq_parallel: True"))
    assert "parallelism.sequence_parallel" not in output(asked, Options(manual_only=True))
    assert fates(converted(asked, Options(manual_only=True)))["parallel_config.use_seq_parallel"] == "dropped"
    no_clipping = edited(("  use_clip_grad: True\n", ""), ("gradient_accumulation_steps: 3", "sink_size: 1"))
    assert output(no_clipping)["training.max_norm"] == 1.0e10
    off = converted(no_clipping, Options(manual_only=True))
    assert any("max_norm" in entry.outcome.why for entry in off.refusals)


def test_the_model_is_completed_from_the_class_or_from_hugging_face() -> None:
    shape = "    vocab_size: 512\n    hidden_size: 64\n    num_hidden_layers: 6\n    num_attention_heads: 4\n"
    found = output(edited((shape, "")).replace("[DeepseekV3ForCausalLM]", "DeepseekV3ForCausalLM"))
    assert found["model.hidden_size"] == 7168
    assert found["model.n_routed_experts"] == 256
    config: dict[str, Value] = {
        "model_type": "qwen3",
        "architectures": ["Qwen3ForCausalLM"],
        "hidden_size": 32,
        "num_hidden_layers": 3,
    }
    text = edited(
        (shape, ""),
        ("    model_type: deepseek_v3\n    architectures: [DeepseekV3ForCausalLM]\n", "    qkv_concat: True\n"),
    )
    given = output(text, Options(hf_config=config, hf_config_path="config.json"))
    assert given["model.model_type"] == "qwen3"
    assert given["model.architectures"] == "Qwen3ForCausalLM"
    assert given["recompute.full_recompute_layer"] == ["0-2"]


def test_set_overrides_and_lifts_a_missing_fact() -> None:
    text = edited(("sizes: [600, 0, 0]", "sizes: [0, 0, 0]"))
    found = output(text, Options(overrides={"training.steps": 50, "optimizer.type": "Muon"}))
    assert found["training.steps"] == 50
    assert found["optimizer.type"] == "Muon"
    assert found["lr_scheduler.warmup_ratio"] == 0.1


def test_world_and_samples_from_the_command_line() -> None:
    text = edited(("use_parallel: True", "use_parallel: True\nparallel:\n  parallel_mode: 0"))
    assert converted(text).text is None
    assert output(text, Options(world=5))["training.global_batch_size"] == 10
    assert output(edited(), Options(samples=1200))["training.steps"] == 200


def test_degrees_that_product_cannot_have_are_noted() -> None:
    text = edited(("expert_parallel: 1", "expert_parallel: 4"))
    notes = converted(text).notes
    assert any("4 ranks" in note and "expert_parallel 4 = 8" in note and "11.4" in note for note in notes)
    assert output(text)["parallelism.expert_parallel"] == 4
    assert converted(edited(), Options(expert_mesh=ExpertMesh.NESTED)).notes == ()


def test_an_alias_to_a_mapping_is_written_out() -> None:
    text = edited(("optimizer:\n", "shared: &opt\n"), ("lr_schedule:", "optimizer: *opt\nlr_schedule:"))
    found = output(text)
    assert found["optimizer.betas"] == [0.9, 0.98]
    assert fates(converted(text))["optimizer"] == "flattened"


def test_a_merge_key_is_written_out_and_own_keys_win() -> None:
    text = edited(("  eps: 1.e-8\n  weight_decay: 0.05\n", "  weight_decay: 0.5\n  <<: *base\n"))
    text = "base: &base\n  weight_decay: 0.1\n  eps: 1.e-6\n" + text
    found = output(text)
    assert (found["optimizer.weight_decay"], found["optimizer.eps"]) == (0.5, 1e-6)


def test_target_2_1() -> None:
    assert converted(edited(), Options(target=Target.V2_1)).text == converted(edited()).text


@settings(max_examples=60, deadline=None)
@given(
    st.integers(1, 4), st.integers(1, 4), st.sampled_from([1, 2, 4]), st.integers(1, 6), st.integers(1, 4),
    st.integers(1, 3), st.integers(40, 900), st.integers(0, 60),
)  # fmt: skip
def test_batch_steps_and_warmup_of_random_runs(
    batch: int, dp: int, pp: int, micro: int, accumulation: int, epochs: int, samples: int, warm: int
) -> None:
    text = edited(
        ("epochs: 2", f"epochs: {epochs}"), ("batch_size: 2", f"batch_size: {batch}"),
        ("gradient_accumulation_steps: 3", f"gradient_accumulation_steps: {accumulation}"),
        ("sizes: [600, 0, 0]", f"sizes: [{samples}, 0, 0]"), ("data_parallel: 2", f"data_parallel: {dp}"),
        ("pipeline_stage: 1", f"pipeline_stage: {pp}"), ("micro_batch_num: 1", f"micro_batch_num: {micro}"),
        ("warmup_steps: 5", f"warmup_steps: {warm}"), ("num_hidden_layers: 6", "num_hidden_layers: 8"),
    )  # fmt: skip
    gathered = batch * dp * (micro if pp > 1 else accumulation)
    steps = sum(1 for _ in range(epochs) for start in range(0, samples, gathered) if start + gathered <= samples)
    conversion = converted(text)
    if steps == 0 or warm > steps:
        assert conversion.text is None
        return
    found = output(text)
    assert found["training.global_batch_size"] == gathered
    assert found["training.steps"] == steps
    ratio = found["lr_scheduler.warmup_ratio"]
    assert isinstance(ratio, (int, float))
    assert int(steps * ratio) == warm


def test_the_account_adds_up_and_says_what_was_written() -> None:
    conversion = converted(edited(("hidden_size: 64", "hidden_size: 64\n    wild_key: 1")))
    assert conversion.text is not None
    from graph_text import document

    found = flat(value_of(document(conversion.text).root))
    reported = {entry.outcome.pynative: entry.new for entry in conversion.entries if entry.outcome.writes}
    assert found == reported


def test_a_batch_chosen_by_hand_decides_the_steps_too() -> None:
    options = Options(overrides={"training.global_batch_size": 24})
    found = output(edited(), options)
    assert (found["training.steps"], found["lr_scheduler.warmup_ratio"]) == (50, 0.1)
    entries = [e for e in converted(edited(), options).entries if e.outcome.pynative == "training.global_batch_size"]
    assert [e.new for e in entries] == [24] * len(entries)
    told = [e.outcome.why for e in entries if e.outcome.effect is Effect.TRAINING]
    assert told == ["--set training.global_batch_size=24, instead of 12"]
    steps = next(e for e in converted(edited(), options).entries if e.outcome.pynative == "training.steps")
    assert "they follow --set training.global_batch_size" in steps.outcome.why


@pytest.mark.parametrize(("batch", "legal"), [(1, "nearest legal values: 2"), (3, "nearest legal values: 2 and 4")])
@pytest.mark.parametrize("manual_only", [False, True])
def test_a_batch_that_fits_no_ranks_is_refused(batch: int, legal: str, manual_only: bool) -> None:
    options = Options(overrides={"training.global_batch_size": batch}, manual_only=manual_only)
    conversion = converted(edited(), options)
    (refusal,) = conversion.refusals
    assert conversion.text is None
    assert refusal.outcome.help == legal


def test_a_choice_that_differs_from_the_file_changes_training() -> None:
    conversion = converted(edited(), Options(overrides={"training.steps": 20, "optimizer.type": "AdamW"}))
    effects = {e.outcome.pynative: (e.outcome.effect.value, e.outcome.why) for e in conversion.entries}
    assert effects["training.steps"] == ("training", "--set training.steps=20, instead of 100")
    assert effects["optimizer.type"][0] == "none"


def test_one_device_stays_one_device() -> None:
    text = edited(("use_parallel: True", "use_parallel: False"))
    conversion = converted(text, Options(world=2))
    assert output(text, Options(world=2))["training.global_batch_size"] == 2
    assert any("--world 2 does not count" in note for note in conversion.notes)


def test_schedules_with_keys_of_their_own() -> None:
    text = edited(("type: ConstantWarmUpLR", "type: CosineAnnealingLR"))
    refusals = converted(text, Options(allow_lossy=True)).refusals
    assert any("base_lr and t_max" in entry.outcome.why for entry in refusals)
    found = output(text.replace("warmup_steps: 5", "base_lr: 1.e-3\n  t_max: 50"))
    assert found["lr_scheduler.base_lr"] == 1e-3
    assert "lr_scheduler.learning_rate" not in found


@pytest.mark.parametrize(
    ("change", "shown"),
    [(("weight_decay: 0.05", "weight_decay: 0"), "weight_decay: 0.0"), (("eps: 1.e-8", "eps: 1"), "eps: 1.0")],
)
def test_whole_numbers_are_written_as_floats_where_the_readers_refuse_integers(
    change: tuple[str, str], shown: str
) -> None:
    conversion = converted(edited(change))
    assert f"\n  {shown}\n" in str(conversion.text)
    told = [entry.outcome.why for entry in conversion.entries if "refuse an integer" in entry.outcome.why]
    assert len(told) == 1
    by_set = converted(edited(), Options(overrides={"optimizer.weight_decay": 0}))
    assert "\n  weight_decay: 0.0\n" in str(by_set.text)
