"""What each key of graph mode costs the run that goes without it."""

import pytest
from graph_text import converted, edited, output

from msmigrate.mapping.outcome import Outcome
from msmigrate.options import Options
from msmigrate.problems import UserError

SKIPPING = "monitor_config:\n  check_for_global_norm: True\n"
LOADER = ("datasets_type:", "phase: train\n    datasets_type:")


def outcome(text: str, graph: str, options: Options | None = None) -> Outcome:
    """The decision on one leaf."""
    found = [entry.outcome for entry in converted(text, options).entries if entry.graph == graph]
    assert len(found) == 1, graph
    return found[0]


def added(text: str) -> str:
    """The small file with sections of its own at the end."""
    return edited() + text


def in_model(key: str) -> str:
    return edited(("hidden_size: 64", f"hidden_size: 64\n    {key}"))


def callback(text: str) -> str:
    return edited(("  - type: MFLossMonitor\n", f"  - {text}\n"))


VITAL = [
    (added("layer_scale: True\n"), "layer_scale"),
    (added("lr_scale: True\n"), "lr_scale"),
    (added("data_skip_steps: 3\n"), "data_skip_steps"),
    (added("ignore_data_skip: True\n"), "ignore_data_skip"),
    (added("calculate_per_token_loss: True\n"), "calculate_per_token_loss"),
    (added("use_skip_data_by_global_norm: True\n"), "use_skip_data_by_global_norm"),
    (added(SKIPPING), "monitor_config.check_for_global_norm"),
    (added("loss:\n  type: L1Loss\n"), "loss.type"),
    (added("context:\n  ascend_config:\n    precision_mode: force_fp16\n"), "context.ascend_config.precision_mode"),
    (added("grouped_lr_schedule:\n  grouped:\n    - type: A\n"), "grouped_lr_schedule.grouped[0].type"),
    (edited(("use_clip_grad: True", "use_clip_grad: True\n  enable_global_norm: True")),
     "runner_wrapper.enable_global_norm"),
    (edited(("type: MFTrainOneStepCell", "type: OwnCell")), "runner_wrapper.type"),
    (edited(("use_clip_grad: True", "use_skip_data_by_global_norm: True")),
     "runner_wrapper.use_skip_data_by_global_norm"),
    (edited(("use_clip_grad: True", "calculate_per_token_loss: True")), "runner_wrapper.calculate_per_token_loss"),
    (in_model("calculate_per_token_loss: True"), "model.model_config.calculate_per_token_loss"),
    (edited(("weight_decay: 0.05", "weight_decay: 0.05\n  amsgrad: True")), "optimizer.amsgrad"),
    (edited(LOADER), "train_dataset.data_loader.phase"),
    (edited(("  drop_remainder", "  eos_reset: True\n  drop_remainder")), "train_dataset.eos_reset"),
    (edited(("  drop_remainder", "  max_source_length: 9\n  drop_remainder")), "train_dataset.max_source_length"),
    (edited(("  drop_remainder", "  tokenizer: {type: T}\n  drop_remainder")), "train_dataset.tokenizer.type"),
    (in_model("moe_expert_capacity_factor: 1.5"), "model.model_config.moe_expert_capacity_factor"),
    (in_model("pet_config: {pet_type: lora}"), "model.model_config.pet_config.pet_type"),
    (callback("type: OwnCallback"), "callbacks[0].type"),
    (callback("type: TrainingStateMonitor\n    use_skip_data_by_global_norm: True"),
     "callbacks[0].use_skip_data_by_global_norm"),
    (callback("type: TopkBiasBalanceCallback\n    balance_via_topk_bias: True"), "callbacks[0].type"),
    (edited(("use_parallel: True", "use_parallel: True\nparallel: {parallel_mode: 0, gradients_mean: False}")),
     "parallel.gradients_mean"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "graph"), VITAL, ids=[graph for _, graph in VITAL])
def test_what_the_run_would_learn_otherwise_is_refused_until_losses_are_allowed(text: str, graph: str) -> None:
    strict, lossy = Options(world=4), Options(world=4, allow_lossy=True)
    found = outcome(text, graph, strict)
    assert (found.fate, found.effect, found.final) == ("refused", "training", False)
    assert converted(text, strict).text is None
    assert converted(text, lossy).text is not None


FINAL = [
    (added("only_save_strategy: True\n"), "only_save_strategy"),
    (added("do_train: False\n"), "do_train"),
    (added("trainer:\n  type: image_classification\n"), "trainer.type"),
    (added("run_status: predict\n"), "run_status"),
    (callback("prefix: nameless"), "callbacks[0].prefix"),
]


@pytest.mark.parametrize(("text", "graph"), FINAL, ids=[graph for _, graph in FINAL])
def test_what_is_no_training_is_refused_for_good(text: str, graph: str) -> None:
    assert outcome(text, graph).fate == "refused"
    assert converted(text, Options(allow_lossy=True)).text is None


SPARED = [
    (added("context:\n  max_device_memory: 58GB\n"), "context.max_device_memory", "memory"),
    (added("context:\n  jit_config:\n    jit_level: O1\n"), "context.jit_config.jit_level", "speed"),
    (added("context:\n  ascend_config:\n    precision_mode: must_keep_origin_dtype\n"),
     "context.ascend_config.precision_mode", "none"),
    (added("swap_config:\n  swap: True\n  layer_swap: 1\n"), "swap_config.layer_swap", "memory"),
    (added("swap_config:\n  swap: False\n  layer_swap: 1\n"), "swap_config.layer_swap", "none"),
    (edited(("recompute: True", "recompute: True\n  recompute_slice_activation: True")),
     "recompute_config.recompute_slice_activation", "memory"),
    (edited(("recompute: True", "recompute: True\n  recompute_slice_activation: False")),
     "recompute_config.recompute_slice_activation", "none"),
    (edited(("weight_decay: 0.05", "weight_decay: 0.05\n  swap: False")), "optimizer.swap", "none"),
    (in_model("pp_interleave_num: 1"), "model.model_config.pp_interleave_num", "none"),
    (in_model("use_seq_parallel: True"), "model.model_config.use_seq_parallel", "none"),
    (callback("type: ColdHotExpertMonitor"), "callbacks[0].type", "speed"),
    (callback("type: TrainingStateMonitor\n    use_skip_data_by_global_norm: False"),
     "callbacks[0].use_skip_data_by_global_norm", "none"),
    (added("remove_redundancy: True\n"), "remove_redundancy", "none"),
    (edited(('prefix: "run"', "save_network_params: True")), "callbacks[1].save_network_params", "none"),
    (added("hub_token: t\naicc_config:\n  obs_path: p\n"), "aicc_config.obs_path", "none"),
    (added("eval:\n  transforms:\n    - type: A\n"), "eval.transforms[0].type", "none"),
    (added("parallel:\n  gradients_mean: False\n"), "parallel.gradients_mean", "none"),
    (edited(("use_clip_grad: True", "use_clip_grad: True\n  scale_sense: 1.0"),
            ("hidden_size: 64", "hidden_size: 64\n    compute_dtype: float16")), "runner_wrapper.scale_sense", "none"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "graph", "effect"), SPARED)
def test_what_the_run_does_not_miss_is_dropped_with_what_it_costs(text: str, graph: str, effect: str) -> None:
    found = outcome(text, graph)
    assert (found.fate, found.effect) == ("dropped", effect)


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        ("train_precision_sync: True\n", True),
        ("train_precision_sync: False\n", False),
        ("context:\n  deterministic: 'ON'\n", True),
        ("train_precision_sync: False\ncontext:\n  deterministic: 'ON'\n", True),
    ],
)
def test_determinism_moves_to_its_pynative_key(text: str, asked: bool) -> None:
    assert output(added(text))["training.deterministic"] is asked


NULLS = [
    (("model_parallel: 2", "model_parallel: null"), "parallelism.tensor_parallel", 1),
    (("expert_parallel: 1", "expert_parallel: null"), "parallelism.expert_parallel", 1),
    (("learning_rate: 4.e-4", "learning_rate: null"), "lr_scheduler.learning_rate", 5e-5),
    (("betas: [0.9, 0.98]", "betas: [0.9, 0.98]\n  beta1: null"), "optimizer.betas", [0.9, 0.98]),
    (("warmup_steps: 5", "warmup_steps: 5\n  warmup_epochs: null"), "lr_scheduler.warmup_ratio", 0.05),
]


@pytest.mark.parametrize(("change", "key", "value"), NULLS)
def test_null_is_as_if_the_key_were_absent(change: tuple[str, str], key: str, value: object) -> None:
    assert output(edited(change))[key] == value


def test_a_null_type_of_a_model_key_is_not_carried() -> None:
    assert "model.compute_dtype" not in output(in_model("compute_dtype: null"))


def test_a_balance_loss_without_type_is_graph_modes_default() -> None:
    text = in_model("moe_aux_loss_coeff: 1.e-3")
    assert "sub_seq_aux_loss" in " ".join(entry.outcome.why for entry in converted(text).refusals)
    assert output(text, Options(allow_lossy=True))["model.moe_router_load_balancing_type"] == "seq_aux_loss"
    assert "model.moe_router_load_balancing_type" not in output(in_model("moe_aux_loss_coeff: 0.0"))


def test_float16_needs_the_loss_scale_that_graph_mode_has_without_a_wrapper() -> None:
    text = edited(
        ("runner_wrapper:\n  type: MFTrainOneStepCell\n  use_clip_grad: True\n", ""),
        ("hidden_size: 64", "hidden_size: 64\n    compute_dtype: float16"),
    )
    assert outcome(text, "model.model_config.compute_dtype").fate == "refused"
    assert output(text, Options(allow_lossy=True))["model.compute_dtype"] == "float16"


def test_the_expert_bias_moves_to_the_model_keys() -> None:
    enabled = ("hidden_size: 64", "hidden_size: 64\n    moe_router_enable_expert_bias: True")
    rate = ("hidden_size: 64", enabled[1] + "\n    moe_router_bias_update_rate: 1.e-3")
    for own, fate in (("1.e-3", "dropped"), ("1.e-2", "refused")):
        kind = f"type: TopkBiasBalanceCallback\n    balance_via_topk_bias: True\n    topk_bias_update_rate: {own}"
        text = edited(rate, ("  - type: MFLossMonitor\n", f"  - {kind}\n"))
        assert outcome(text, "callbacks[0].type").fate == fate


def test_a_checkpoint_in_the_old_format_is_named() -> None:
    old = converted(added("load_checkpoint: ./a\nload_ckpt_format: ckpt\n"))
    new = converted(added("load_checkpoint: ./a\nload_ckpt_format: safetensors\n"))
    assert any("safetensors" in note for note in old.notes)
    assert not any("safetensors" in note for note in new.notes)


def test_the_old_seed_of_the_sample_order_is_carried() -> None:
    text = edited(("split:", "random_seed: 99\n      split:"))
    assert output(text)["train_dataset.dataloader.config.seed"] == 99


def test_keys_that_lost_their_indentation_are_named_with_their_place() -> None:
    found = outcome(added("mp_comm_recompute: True\n"), "mp_comm_recompute")
    assert found.fate == "unknown"
    assert "recompute_config.mp_comm_recompute" in str(found.help)


def test_a_key_that_a_known_callback_does_not_have_is_unknown() -> None:
    text = edited(('prefix: "run"', "prefx: run"))
    assert outcome(text, "callbacks[1].prefx").fate == "unknown"


def test_callbacks_that_are_no_mappings() -> None:
    text = edited(("callbacks:\n  - type: MFLossMonitor\n  - type: CheckpointMonitor\n    prefix: \"run\"\n"
                   "    save_checkpoint_steps: 50\n", "callbacks: [MFLossMonitor]\n"))  # fmt: skip
    with pytest.raises(UserError, match="mappings with `type`"):
        converted(text)


def test_a_callback_without_a_type_is_refused_at_one_place() -> None:
    text = callback("type: null")
    found = outcome(text, "callbacks[0].type")
    assert (found.fate, found.final) == ("refused", True)
    assert found.why == "callbacks[0] has no `type`"


@pytest.mark.parametrize(
    ("text", "graph", "effect"),
    [
        (edited(("weight_decay: 0.05", "weight_decy: 0.05")), "optimizer.weight_decy", "training"),
        (edited(("use_clip_grad: True", "zork: 1")), "runner_wrapper.zork", "training"),
        (edited(("epochs: 2", "epochs: 2\n  zork: 1")), "runner_config.zork", "training"),
        (in_model("zork: 1"), "model.model_config.zork", "training"),
        (edited(("optimizer:", "optimzer:")), "optimzer.type", "training"),
        (edited(("seed: 7", "sed: 7")), "sed", "training"),
        (added("zork: 1\n"), "zork", "none"),
        (edited(("pipeline_stage: 1", "pipeline_stag: 1")), "parallel_config.pipeline_stag", "none"),
    ],
)
def test_unknown_keys_may_change_training_where_keys_decide_it(text: str, graph: str, effect: str) -> None:
    found = outcome(text, graph)
    assert (found.fate, found.effect) == ("unknown", effect)
    assert ("it may be a typing error" in found.why) is (effect == "training")
    assert converted(text).text is not None


@pytest.mark.parametrize(
    ("text", "graph", "advice"),
    [
        (added("callback: 3\n"), "callback", "did you mean `callbacks`?"),
        (added("epochs: 3\n"), "epochs", "did you mean `runner_config.epochs`?"),
        (edited(("warmup_steps: 5", "warmup_steps: 5\n  base_lr: {type: 3}")), "lr_schedule.base_lr.type", None),
        (added("prefix: run\n"), "prefix", None),
        (added("type: AdamW\n"), "type", None),
    ],
)
def test_suggestions_are_near_names_or_one_known_place(text: str, graph: str, advice: str | None) -> None:
    assert outcome(text, graph).help == advice


@pytest.mark.parametrize(
    ("lines", "graph"),
    [("other: *data\n", "other"), ("other:\n  <<: *data\n", "other.<<"), ("other: [*data]\n", "other[0]")],
)
def test_an_alias_at_a_place_that_nobody_knows_is_unknown_there(lines: str, graph: str) -> None:
    text = added(lines)
    found = [entry for entry in converted(text).entries if entry.outcome.fate == "unknown"]
    assert [entry.graph for entry in found] == [graph]
    assert found[0].span is not None
    assert found[0].span.start.line == text.count("\n")


@pytest.mark.parametrize(
    ("key", "family", "fate"),
    [
        ("sliding_window: 4096", "deepseek_v3", "dropped"),
        ("decoder_sparse_step: 1", "deepseek_v3", "dropped"),
        ("sliding_window: 4096", "qwen3", "flattened"),
        ("sliding_window: 4096", "glm4_moe", "flattened"),
    ],
)
def test_model_keys_that_only_other_families_read_are_left_out(key: str, family: str, fate: str) -> None:
    text = in_model(key).replace("model_type: deepseek_v3", f"model_type: {family}")
    found = outcome(text, f"model.model_config.{key.split(':')[0]}")
    assert (found.fate, found.effect) == (fate, "none")
    assert (f"{family} does not read it" in found.why) is (fate == "dropped")


@pytest.mark.parametrize(
    ("keys", "why", "noted"),
    [
        ("router_aux_loss_coef: 0.01\n    moe_aux_loss_coeff: 0.001", "moe_aux_loss_coeff, 0.001, holds", True),
        ("router_aux_loss_coef: 0.01\n    moe_aux_loss_coeff: 0.01", "moe_aux_loss_coeff, 0.01, holds", False),
        ("router_aux_loss_coef: 0.01", "no balance loss is added", True),
    ],
)
def test_the_coefficient_that_holds_is_named(keys: str, why: str, noted: bool) -> None:
    text = in_model(f"{keys}\n    moe_router_load_balancing_type: seq_aux_loss")
    found = outcome(text, "model.model_config.router_aux_loss_coef")
    assert (found.fate, found.effect) == ("flattened", "none")
    assert why in found.why
    assert any(why in note for note in converted(text).notes) is noted


def test_two_names_of_one_setting_must_agree() -> None:
    key = "model.model_config.rotary_scaling_factor"
    assert outcome(in_model("scaling_factor: 4\n    rotary_scaling_factor: 4.0"), key).fate == "flattened"
    found = outcome(in_model("scaling_factor: 4\n    rotary_scaling_factor: 5"), key)
    assert (found.fate, found.final) == ("refused", True)
    assert "is 5 and scaling_factor, the manual's name for it, is 4" in found.why
