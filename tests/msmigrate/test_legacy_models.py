"""Legacy model classes: what their keys become, what they take for absent keys, and what has no counterpart."""

import pytest
from graph_text import converted, fates, output
from legacy_text import DEEPSEEK, LLAMA, edited

from msmigrate.convert import Conversion
from msmigrate.lint import lint
from msmigrate.mapping.legacy_classes import ARCHITECTURES, SECTION
from msmigrate.mapping.outcome import Effect, Fate
from msmigrate.mapping.table import LEGACY, legacy
from msmigrate.options import Options
from msmigrate.problems import UserError
from msmigrate.pynative import Config, specs_of
from msmigrate.report import totals
from msmigrate.yaml.source import source_from_bytes

KNOWN = Options(samples=800)


def refusals(conversion: Conversion) -> list[str]:
    return [entry.outcome.why for entry in conversion.refusals]


def entry_of(conversion: Conversion, pynative: str) -> tuple[Fate, Effect, object]:
    """How a pynative key came to be written."""
    found = [entry for entry in conversion.entries if entry.pynative == pynative and entry.outcome.writes]
    assert len(found) == 1, pynative
    return found[0].outcome.fate, found[0].outcome.effect, found[0].new


def test_the_legacy_table_names_declared_keys_and_reasons() -> None:
    specs = specs_of(Config)
    for row in legacy.ROWS:
        assert row.pynative is None or row.pynative in specs, row
        assert row.rule is not None or row.fate not in (Fate.DROPPED, Fate.REFUSED) or row.why, row
    for name, one in ARCHITECTURES.items():
        assert {f"{SECTION}.{key}" for key in one.reads} <= set(LEGACY.by_graph_path), name
        assert {f"model.{key}" for key in one.fixed} <= set(specs), name
        assert set(one.required) <= set(one.reads), name


def test_llama_by_the_names_of_the_family() -> None:
    model = {key: value for key, value in output(LLAMA, KNOWN).items() if key.startswith("model.")}
    assert model == {
        "model.model_type": "llama", "model.architectures": "LlamaForCausalLM", "model.seq_length": 256,
        "model.hidden_size": 128, "model.num_hidden_layers": 3, "model.num_attention_heads": 8,
        "model.num_key_value_heads": 2, "model.vocab_size": 1000, "model.intermediate_size": 352,
        "model.rms_norm_eps": 1e-6, "model.rope_theta": 500000, "model.bos_token_id": 1, "model.pad_token_id": 0,
        "model.compute_dtype": "bfloat16", "model.layernorm_compute_dtype": "float32",
        "model.softmax_compute_dtype": "float32", "model.rotary_dtype": "float32", "model.params_dtype": "float32",
        "model.position_embedding_type": "rope", "model.use_flash_attention": True,
        "model.max_position_embeddings": 256, "model.initializer_range": 0.01, "model.tie_word_embeddings": False,
        "model.calculate_per_token_loss": False,
    }  # fmt: skip


def test_everything_else_is_converted_as_for_other_files() -> None:
    read = output(LLAMA, KNOWN)
    assert read["training.global_batch_size"] == 8
    assert read["training.steps"] == 200
    assert read["train_dataset.dataloader.column_names"] == ["input_ids"]
    assert read["lr_scheduler.warmup_ratio"] == 0.1


def test_the_account_of_a_legacy_file() -> None:
    conversion = converted(LLAMA, KNOWN)
    assert conversion.family.value == "legacy"
    assert any("msrt trains model_type llama" in note for note in conversion.notes)
    counts = totals(conversion)
    assert counts["unknown"] == counts["refused"] == 0
    found = fates(conversion)
    assert found["model.model_config.hidden_size"] == "flattened"
    assert found["model.model_config.theta"] == "renamed"
    assert found["model.model_config.top_k"] == found["model.model_config.offset"] == "dropped"
    assert {entry.outcome.effect for entry in conversion.entries} <= {Effect.NONE, Effect.SPEED, Effect.MEMORY}


def test_comments_move_with_their_keys_and_the_result_is_legal() -> None:
    text = converted(LLAMA, KNOWN).text
    assert text is not None
    assert "vocab_size: 1000 # rows" in text
    assert [str(finding) for finding in lint(source_from_bytes("p.yaml", text.encode()))] == []


@pytest.mark.parametrize(
    ("keys", "width"),
    [
        ("multiple_of: 256", 512),  # 4·128 = 512, 341, up to 512
        ("multiple_of: 32", 352),  # 341, up to 352
        ("multiple_of: 32\n    ffn_dim_multiplier: 1.3", 448),  # int(1.31·512) = 670, 446, up to 448
    ],
)
def test_the_width_that_llama_works_out(keys: str, width: int) -> None:
    conversion = converted(edited(LLAMA, ("intermediate_size: 352", keys)), KNOWN)
    fate, effect, value = entry_of(conversion, "model.intermediate_size")
    assert (fate, effect, value) == (Fate.COMPUTED, Effect.NONE, width)
    arithmetic = [entry.outcome.arithmetic for entry in conversion.entries if entry.outcome.arithmetic]
    assert any("4 × hidden_size 128 = 512" in text and f": {width}" in text for text in arithmetic)


def test_llama2_70b_has_the_width_that_it_was_trained_with() -> None:
    text = edited(
        LLAMA, ("hidden_size: 128", "hidden_size: 8192"), ("num_heads: 8", "num_heads: 64"),
        ("intermediate_size: 352", "multiple_of: 256\n    ffn_dim_multiplier: 1.3"),
    )  # fmt: skip
    assert output(text, KNOWN)["model.intermediate_size"] == 28672


@pytest.mark.parametrize("factor", [".nan", ".inf", "-.inf"])
def test_a_width_without_a_number(factor: str) -> None:
    text = edited(LLAMA, ("intermediate_size: 352", f"multiple_of: 256\n    ffn_dim_multiplier: {factor}"))
    with pytest.raises(UserError, match=r"ffn_dim_multiplier.*expected a finite number"):
        converted(text, KNOWN)


def test_a_given_width_wins() -> None:
    text = edited(LLAMA, ("intermediate_size: 352", "intermediate_size: 352\n    multiple_of: 256"))
    assert output(text, KNOWN)["model.intermediate_size"] == 352
    assert fates(converted(text, KNOWN))["model.model_config.multiple_of"] == "dropped"


def test_defaults_of_the_class_are_written() -> None:
    lines = (
        "n_kv_heads: 2",
        "rms_norm_eps: 1.0e-6",
        "theta: 500000",
        'param_init_type: "float32"',
        'extend_method: "None"',
    )
    text = edited(LLAMA, *((f"    {line}\n", "") for line in lines))
    conversion = converted(text, KNOWN)
    for key, value in {
        "num_key_value_heads": 8, "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "params_dtype": "float16",
        "position_embedding_type": "rope",
    }.items():  # fmt: skip
        assert entry_of(conversion, f"model.{key}") == (Fate.DEFAULT, Effect.NONE, value)


def test_a_class_without_dtype_computes_in_float16() -> None:
    scaled = "scale_sense:\n    type: DynamicLossScaleUpdateCell\n    loss_scale_value: 65536"
    text = edited(LLAMA, ('    compute_dtype: "bfloat16"\n', ""), ("scale_sense: 1.0", scaled))
    assert any("float16 needs loss scaling" in why for why in refusals(converted(text, KNOWN)))
    assert output(text, Options(samples=800, allow_lossy=True))["model.compute_dtype"] == "float16"


@pytest.mark.parametrize("method", ["PI", "NTK", "YARN", "LLAMA3"])
def test_stretched_positions_change_training(method: str) -> None:
    text = edited(LLAMA, ('extend_method: "None"', f'extend_method: "{method}"'), ("factor: 1.0", "factor: 4.0"))
    assert any(f"extend_method {method} (scaling_factor 4.0)" in why for why in refusals(converted(text, KNOWN)))
    lossy = converted(text, Options(samples=800, allow_lossy=True))
    assert entry_of(lossy, "model.position_embedding_type") == (Fate.COMPUTED, Effect.TRAINING, "rope")


def test_qwen_and_internlm_are_llamas_with_other_defaults() -> None:
    qwen = edited(LLAMA, ("LlamaConfig", "QwenConfig"), ("LlamaForCausalLM", "QwenForCausalLM"))
    assert output(qwen, KNOWN)["model.attention_bias"] is True
    without = edited(qwen, ("    intermediate_size: 352\n", ""))
    assert any(
        "QwenConfig needs `model.model_config.intermediate_size`" in why for why in refusals(converted(without, KNOWN))
    )
    intern = edited(
        LLAMA, ("LlamaConfig", "InternLM2Config"), ("LlamaForCausalLM", "InternLM2ForCausalLM"),
        ("    theta: 500000\n", ""), ("    n_kv_heads: 2\n", ""),
    )  # fmt: skip
    read = output(intern, KNOWN)
    assert (read["model.rope_theta"], read["model.num_key_value_heads"]) == (1000000.0, 8)


def test_biases_of_queries_keys_and_values() -> None:
    text = edited(LLAMA, ("theta: 500000", "theta: 500000\n    qkv_has_bias: True\n    attn_proj_has_bias: False"))
    assert output(text, KNOWN)["model.attention_bias"] is True
    text = edited(text, ("attn_proj_has_bias: False", "attn_proj_has_bias: True"))
    assert any("bias on attention's output" in why for why in refusals(converted(text, KNOWN)))


def test_keys_that_a_class_does_not_read() -> None:
    text = edited(LLAMA, ("theta: 500000", "theta: 500000\n    kv_lora_rank: 512\n    initializer_range: 0.5"))
    found = fates(converted(text, KNOWN))
    assert found["model.model_config.kv_lora_rank"] == found["model.model_config.initializer_range"] == "dropped"
    assert output(text, KNOWN)["model.initializer_range"] == 0.01


def test_a_misspelt_key_is_unknown_with_a_suggestion() -> None:
    conversion = converted(edited(LLAMA, ("theta: 500000", "theta: 500000\n    hiden_size: 64")), KNOWN)
    found = [entry.outcome for entry in conversion.entries if entry.outcome.fate is Fate.UNKNOWN]
    assert [outcome.help for outcome in found] == ["did you mean `model.model_config.hidden_size`?"]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (("type: LlamaConfig", "type: GPT2Config"), "GPT2Config is a legacy model without PyNative counterpart: GPT-2"),
        (
            ("type: LlamaConfig", "type: OwnConfig"),
            "counterpart: its arithmetic is not known",
        ),
        (("type: LlamaConfig", "type: null"), "names its model in `model.model_config.type`"),
        (("type: LlamaForCausalLM", "type: Baichuan13BV2ForCausalLM"), "ALiBi"),
        (("seed: 3", "seed: 3\nmoe_config:\n  expert_num: 8"), "moe_config.expert_num is 8"),
        (("top_k: 3", "pet_config:\n      pet_type: lora\n      lora_rank: 8"), "pet_config trains lora"),
    ],
)
def test_models_without_a_counterpart_are_refused_whatever_is_allowed(change: tuple[str, str], reason: str) -> None:
    conversion = converted(edited(LLAMA, change), Options(samples=800, allow_lossy=True))
    assert conversion.text is None
    assert any(reason in why for why in refusals(conversion)), refusals(conversion)
    assert totals(conversion)["unknown"] == 0


def test_weights_that_the_model_starts_from() -> None:
    text = edited(LLAMA, ('checkpoint_name_or_path: ""', 'checkpoint_name_or_path: "llama2_7b"'))
    assert any("starts from the weights llama2_7b" in why for why in refusals(converted(text, KNOWN)))
    chosen = Options(samples=800, overrides={"checkpoint.load_path": "./llama-hf"})
    assert output(text, chosen)["checkpoint.load_path"] == "./llama-hf"
    loaded = edited(text, ("seed: 3", "seed: 3\nload_checkpoint: ./ckpt"))
    assert output(loaded, KNOWN)["checkpoint.load_path"] == "./ckpt"


def test_data_and_weights_that_need_more_than_a_file_are_noted() -> None:
    notes = converted(edited(LLAMA, ("seed: 3", "seed: 3\nload_checkpoint: ./ckpt")), KNOWN).notes
    assert any("input_columns is [input_ids]" in note for note in notes)
    assert any("load_checkpoint names ./ckpt" in note for note in notes)
    ready = edited(LLAMA, ('["input_ids"]', '["input_ids", "labels"]'))
    assert not any("input_columns is" in note for note in converted(ready, KNOWN).notes)


def test_use_legacy_is_explained_when_the_model_is_translated() -> None:
    conversion = converted("use_legacy: True\n" + LLAMA, KNOWN)
    found = next(entry.outcome for entry in conversion.entries if entry.graph == "use_legacy")
    assert (found.fate, found.effect) == (Fate.DROPPED, Effect.NONE)
    assert "model_type llama" in found.why


def test_a_config_json_does_not_complete_a_legacy_model() -> None:
    conversion = converted(LLAMA, Options(samples=800, hf_config={"model_type": "qwen3", "head_dim": 7}))
    assert any("--hf-config does not count" in note for note in conversion.notes)
    assert not any(entry.pynative == "model.head_dim" for entry in conversion.entries)


def test_deepseek_with_its_experts() -> None:
    read = output(DEEPSEEK)
    expected = {
        "model_type": "deepseek_v3", "architectures": "DeepseekV3ForCausalLM", "num_hidden_layers": 4,
        "n_routed_experts": 8, "num_experts_per_tok": 2, "n_shared_experts": 1, "moe_intermediate_size": 48,
        "first_k_dense_replace": 1, "scoring_func": "sigmoid", "moe_router_enable_expert_bias": True,
        "moe_router_bias_update_rate": 0.001, "norm_topk_prob": True, "routed_scaling_factor": 1.5,
        "num_nextn_predict_layers": 1, "mtp_loss_scaling_factor": 0.3, "n_group": 0, "topk_group": 0,
        "moe_aux_loss_coeff": 0.0, "multi_latent_attention": True, "qk_layernorm": True,
        "position_embedding_type": "rope", "scaling_factor": 1.0, "rotary_scaling_factor": 1.0,
        "kv_lora_rank": 512, "q_lora_rank": 1536, "initializer_range": 0.006, "compute_dtype": "bfloat16",
    }  # fmt: skip
    assert {key: read[f"model.{key}"] for key in expected} == expected


def test_defaults_of_experts_differ_from_the_familys() -> None:
    lines = (
        "use_gating_sigmoid: True",
        "balance_via_topk_bias: True",
        "topk_bias_update_rate: 0.001",
        "routed_scaling_factor: 1.5",
    )
    conversion = converted(edited(DEEPSEEK, *((f"  {line}\n", "") for line in lines)))
    for key, value in {
        "scoring_func": "softmax", "moe_router_score_function": "softmax", "moe_router_enable_expert_bias": False,
        "moe_router_bias_update_rate": 0.0, "routed_scaling_factor": 1.0,
    }.items():  # fmt: skip
        assert entry_of(conversion, f"model.{key}") == (Fate.DEFAULT, Effect.NONE, value)


def test_a_legacy_balance_loss_changes_training() -> None:
    text = edited(
        DEEPSEEK, ("use_gmm: True", 'use_gmm: True\n  aux_loss_types: ["expert"]\n  aux_loss_factors: [0.01]')
    )
    assert any("balance losses of a legacy router (expert 0.01)" in why for why in refusals(converted(text)))
    lossy = converted(text, Options(allow_lossy=True))
    assert entry_of(lossy, "model.moe_aux_loss_coeff") == (Fate.COMPUTED, Effect.TRAINING, 0.01)
    assert output(text, Options(allow_lossy=True))["model.moe_router_load_balancing_type"] == "aux_loss"


def test_dropped_tokens_change_training() -> None:
    text = edited(DEEPSEEK, ("use_gmm: True", "use_gmm: False"))
    assert any("capacity_factor 1.5 drops tokens" in why for why in refusals(converted(text)))


def test_yarn_is_the_default_of_deepseek() -> None:
    text = edited(DEEPSEEK, ('    extend_method: "None"\n', ""))
    assert any("extend_method YARN" in why for why in refusals(converted(text)))


def test_layers_of_multi_token_prediction_count_among_the_stages() -> None:
    stages = (
        "parallel_config:\n  data_parallel: 1\n  pipeline_stage: 2\n  micro_batch_num: 2\n"
        "recompute_config:\n  recompute: [1, 2]\nmoe_config:"
    )
    text = edited(DEEPSEEK, ("moe_config:", stages), ("vocab_size: 512", "vocab_size: 512\n    offset: [0, 1]"))
    assert output(text)["recompute.full_recompute_layer"] == [0, "2-3"]


def test_old_names_of_schedules() -> None:
    for name, known in {
        "cosine": "CosineWithWarmUpLR", "polynomial": "PolynomialWithWarmUpLR",
        "constant_with_warmup": "ConstantWarmUpLR", "linear": "LinearWithWarmUpLR",
    }.items():  # fmt: skip
        conversion = converted(edited(LLAMA, ("CosineWithWarmUpLR", name)), KNOWN)
        assert entry_of(conversion, "lr_scheduler.type") == (Fate.RENAMED, Effect.NONE, known)


def test_optimizers_without_bias_correction_change_training() -> None:
    old = "type: FP32StateAdamWeightDecay\n  beta1: 0.9\n  beta2: 0.95"
    text = edited(LLAMA, ("type: AdamW\n  betas: [0.9, 0.95]\n  eps: 1.e-8", old))
    assert any("(1 - 0.9) / √(1 - 0.95) = 0.447 times AdamW's" in why for why in refusals(converted(text, KNOWN)))
    conversion = converted(text, Options(samples=800, allow_lossy=True))
    assert entry_of(conversion, "optimizer.type") == (Fate.COMPUTED, Effect.TRAINING, "AdamW")
    assert entry_of(conversion, "optimizer.eps") == (Fate.DEFAULT, Effect.NONE, 1e-6)
    fused = edited(LLAMA, ("type: AdamW", "type: FusedAdamW"))
    assert entry_of(converted(fused, KNOWN), "optimizer.type") == (Fate.RENAMED, Effect.NONE, "AdamW")
