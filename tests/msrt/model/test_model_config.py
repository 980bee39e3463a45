"""What the config makes of a model section and of a config.json: every key, every refusal."""

from dataclasses import replace

import pytest

from msmigrate.problems import UserError
from msmigrate.pynative.keys import Use, specs_of
from msmigrate.pynative.model import Model
from msrt.models import build_model, config_from_hf, config_from_model_section, keys_without_effect, parameter_count
from msrt.models.config import DecoderConfig
from msrt.models.deepseek_v3.section_keys import without_effect

from . import tiny_model
from .test_rotary_positions import from_hf
from .tiny_families import FAMILIES, section
from .tiny_model import SECTION

OTHER_VALUES: dict[str, object] = {
    "vocab_size": 23, "seq_length": 12, "hidden_size": 24, "intermediate_size": 14, "num_hidden_layers": 3,
    "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 8, "max_position_embeddings": 9,
    "hidden_act": "gelu", "gated_linear_unit": False, "add_bias_linear": True, "attention_bias": True,
    "tie_word_embeddings": True, "untie_embeddings_and_output_weights": False, "rms_norm_eps": 1e-2,
    "qk_layernorm": False, "initializer_range": 0.5, "multi_latent_attention": False, "q_lora_rank": 3,
    "kv_lora_rank": 3, "qk_rope_head_dim": 2, "qk_nope_head_dim": 3, "v_head_dim": 3,
    "position_embedding_type": "rope", "rope_theta": 77.0, "scaling_factor": 3.0, "rotary_scaling_factor": 3.0,
    "beta_fast": 4.0, "beta_slow": 2.0, "mscale": 2.0, "mscale_all_dim": 2.0,
    "rope_scaling": {"type": "yarn", "factor": 7.0}, "original_max_position_embeddings": 5,
    "attention_dropout": 0.1, "hidden_dropout": 0.1, "params_dtype": "bfloat16", "compute_dtype": "bfloat16",
    "layernorm_compute_dtype": "bfloat16", "softmax_compute_dtype": "bfloat16", "rotary_dtype": "bfloat16",
    "router_dense_type": "bfloat16", "moe_router_dtype": "bfloat16", "first_k_dense_replace": 2,
    "moe_layer_freq": (0, 1), "n_routed_experts": 12, "num_experts_per_tok": 4, "n_shared_experts": 2,
    "moe_intermediate_size": 7, "moe_shared_expert_intermediate_size": 8, "scoring_func": "softmax",
    "moe_router_score_function": "sqrtsoftplus", "moe_router_pre_softmax": True, "norm_topk_prob": False,
    "routed_scaling_factor": 3.0, "n_group": 2, "topk_group": 1, "moe_router_enable_expert_bias": False,
    "moe_router_bias_update_rate": 0.5, "moe_router_load_balancing_type": "aux_loss", "moe_aux_loss_coeff": 0.2,
    "moe_token_dispatcher_type": "alltoall", "decoder_sparse_step": 2, "mlp_only_layers": (0,),
    "num_nextn_predict_layers": 1, "mtp_loss_scaling_factor": 0.25,
}  # fmt: skip
"""A value unlike that of every section below for every key that some family uses."""

BASES: dict[str, Model] = {
    "deepseek_v3": replace(SECTION, rotary_scaling_factor=None, scaling_factor=None),
    **{name: section(name, position_embedding_type="yarn", mscale=1.0, mscale_all_dim=0.5) for name in FAMILIES},
}
"""A section of each family; those that count on it complete it: YaRN's factor, shared experts, scores with a bias."""

FACTORS = ("scaling_factor", "rotary_scaling_factor")

COMPLETED: dict[str, dict[str, object]] = {
    "moe_shared_expert_intermediate_size": {"n_shared_experts": 1},
    "moe_router_enable_expert_bias": {"scoring_func": "sigmoid", "moe_router_enable_expert_bias": True},
    "moe_layer_freq": {"first_k_dense_replace": 0},
    "topk_group": {"n_group": 4, "topk_group": 2},
    "n_group": {"n_group": 4, "topk_group": 2},
    "scoring_func": {"scoring_func": "sigmoid"},
}


def read_or_refused(given: Model) -> DecoderConfig | str:
    """The config of a section, or why it has none."""
    try:
        return config_from_model_section(given)
    except UserError as refused:
        return str(refused)


def used_keys() -> list[str]:
    named = ("model_type", "architectures")
    return [name for name, spec in specs_of(Model).items() if spec.key.use is Use.USED and name not in named]


@pytest.mark.parametrize("family", sorted(BASES))
@pytest.mark.parametrize("name", used_keys())
def test_every_key_changes_the_model_or_is_named_as_without_effect_or_refused(name: str, family: str) -> None:
    base = replace(BASES[family], **COMPLETED.get(name, {}))  # type: ignore[arg-type]  # any key of the section
    if name not in FACTORS and family != "deepseek_v3":
        base = replace(base, scaling_factor=2.0)
    changed = replace(base, **{name: OTHER_VALUES[name]})  # type: ignore[arg-type]  # any key of the section
    assert getattr(base, name) != OTHER_VALUES[name]
    after = read_or_refused(changed)
    if isinstance(after, str):
        assert name in after
        return
    if name in keys_without_effect(changed):
        assert after == config_from_model_section(base)
        return
    if name in FACTORS and family != "deepseek_v3":
        base = replace(base, **{name: 2.0})  # type: ignore[arg-type]  # YaRN needs one
    assert after != config_from_model_section(base)


def test_keys_without_effect_are_listed_only_when_given() -> None:
    assert without_effect(SECTION) == {}
    given = replace(SECTION, num_key_value_heads=3, use_flash_attention=True, moe_token_dispatcher_type="alltoall")
    assert set(without_effect(given)) == {"num_key_value_heads", "use_flash_attention", "moe_token_dispatcher_type"}
    assert all(reason.endswith(".") for reason in without_effect(given).values())


REFUSALS: list[tuple[dict[str, object], str]] = [
    ({"n_group": 3}, r"n_group is 3, which does not divide the 8 experts .*: 8 = 3 × 2 \+ 2"),
    ({"topk_group": 5}, "topk_group is 5; it must be from 1 to the 4 groups"),
    ({"n_group": 8}, "n_group is 8 for 8 experts: .* at most 4"),
    ({"num_experts_per_tok": 9, "n_group": 0}, "num_experts_per_tok is 9 but there are only 8 experts"),
    ({"num_experts_per_tok": 6}, "6, but 2 groups .* of 2 experts hold 4"),
    ({"num_experts_per_tok": 3}, r"3, which is not a multiple of model.topk_group \(2\)"),
    ({"first_k_dense_replace": 3}, "first_k_dense_replace is 3 but the model has only 2 layers"),
    ({"num_nextn_predict_layers": 1}, "mtp_loss_scaling_factor is missing, and .*layers is 1: the weight"),
    ({"num_nextn_predict_layers": 2}, "num_nextn_predict_layers is 2; it must be 0 or 1"),
    ({"qk_rope_head_dim": 5}, "qk_rope_head_dim is 5; .* even"),
    ({"hidden_size": 0}, "hidden_size is 0; it must be at least 1"),
    ({"hidden_size": "12"}, "hidden_size is '12'; it must be an integer"),
    ({"norm_topk_prob": 1}, "norm_topk_prob is 1; it must be true or false"),
    ({"scaling_factor": 2.0}, "scaling_factor is 2.0 and model.rotary_scaling_factor is 4.0: two names"),
    ({"moe_layer_freq": 2}, "first_k_dense_replace is 1 and model.moe_layer_freq is 2"),
    ({"moe_layer_freq": 3, "first_k_dense_replace": 0}, "moe_layer_freq is 3; it must be from 1 to the 2 layers"),
    ({"moe_layer_freq": (1,)}, "lists 1 values; .* each of the 2 layers"),
    ({"moe_layer_freq": (1, 0)}, r"first_k_dense_replace \(1\) name different dense layers"),
    ({"moe_router_load_balancing_type": "sub_seq_aux_loss"}, "is sub_seq_aux_loss and model.moe_aux_loss_coeff is 0.1"),
    ({"moe_router_load_balancing_type": None}, "its default"),
    ({"tie_word_embeddings": True, "untie_embeddings_and_output_weights": True}, "both true"),
    ({"attention_bias": True}, "attention_bias is true"),
    ({"model_type": "qwen3"}, "model_type is 'qwen3'"),
]


@pytest.mark.parametrize(("changes", "message"), REFUSALS)
def test_refused(changes: dict[str, object], message: str) -> None:
    with pytest.raises(UserError, match=message):
        tiny_model.config(**changes)


def test_all_problems_are_told_at_once() -> None:
    with pytest.raises(UserError) as caught:
        tiny_model.config(n_group=3, qk_rope_head_dim=5)
    assert len(str(caught.value).splitlines()) == 2


def test_both_names_of_a_setting_may_agree() -> None:
    assert tiny_model.config(scaling_factor=4.0) == tiny_model.config()


@pytest.mark.parametrize(
    ("changes", "layers"),
    [
        ({"first_k_dense_replace": 1}, (1, 2, 3)),
        ({"first_k_dense_replace": 0}, (0, 1, 2, 3)),
        ({"first_k_dense_replace": 0, "moe_layer_freq": 2}, (0, 2)),
        ({"first_k_dense_replace": 0, "moe_layer_freq": (0, 1, 1, 0)}, (1, 2)),
        ({"first_k_dense_replace": 2, "moe_layer_freq": (0, 0, 1, 1)}, (2, 3)),
        ({"first_k_dense_replace": 4}, ()),
    ],
)
def test_layers_with_experts(changes: dict[str, object], layers: tuple[int, ...]) -> None:
    assert tiny_model.config(num_hidden_layers=4, **changes).moe_layers == layers


def test_a_model_without_experts_trains() -> None:
    built = tiny_model.model(first_k_dense_replace=2)
    parts = built.loss(*tiny_model.batch())
    assert parts.tokens_per_expert.shape == (0, 8)
    assert float(parts.load_balancing) == float(parts.aux) == 0.0


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"q_lora_rank": None},
        {"qk_layernorm": False},
        {"qk_layernorm": False, "q_lora_rank": None},
        {"tie_word_embeddings": True},
        {"first_k_dense_replace": 0, "n_shared_experts": 0},
        {"first_k_dense_replace": 2},
        {"moe_shared_expert_intermediate_size": 9},
        {"num_nextn_predict_layers": 1, "mtp_loss_scaling_factor": 0.3},
        {"num_nextn_predict_layers": 1, "mtp_loss_scaling_factor": 0.3, "first_k_dense_replace": 2},
    ],
)
def test_parameters_are_counted_without_building_the_model(changes: dict[str, object]) -> None:
    built = tiny_model.model(seed=3, **changes)
    assert parameter_count(built.config) == sum(item.size for item in built.trainable_params())


def test_a_softmax_router_has_no_expert_bias() -> None:
    assert not tiny_model.config(scoring_func="softmax").moe.expert_bias
    assert tiny_model.config().moe.expert_bias


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model_type": "llama"}, "config.json has the model_type 'llama'"),
        ({"attention_bias": True}, "attention_bias: true; only false"),
        ({"rope_interleave": False}, "rope_interleave: false; only true"),
        ({"quantization_config": {"quant_method": "fp8"}}, "quantization_config"),
        ({"hidden_size": None}, "hidden_size is missing; it must be an integer"),
    ],
)
def test_config_json_refused(changes: dict[str, object], message: str) -> None:
    with pytest.raises(UserError, match=message):
        from_hf(**changes)


def test_the_loss_weight_of_multi_token_prediction_needs_its_layer() -> None:
    weighted = replace(SECTION, mtp_loss_scaling_factor=0.5)
    assert without_effect(weighted).keys() == {"mtp_loss_scaling_factor"}
    assert without_effect(replace(weighted, num_nextn_predict_layers=1)) == {}
    assert config_from_model_section(weighted).mtp_loss_scaling_factor is None
    assert tiny_model.config(num_nextn_predict_layers=1, mtp_loss_scaling_factor=0.5).mtp_loss_scaling_factor == 0.5


def test_a_section_silent_on_multi_token_prediction_has_none() -> None:
    silent = replace(SECTION, num_nextn_predict_layers=None)
    found = config_from_model_section(silent)
    assert found.mtp_layers == ()
    assert "MindFormers 2.x would add one layer" in found.remarks[0]
    asked = config_from_model_section(replace(silent, mtp_loss_scaling_factor=0.5))
    assert (asked.mtp_layers, asked.remarks) == ((found.num_hidden_layers,), ())
    assert config_from_model_section(SECTION).remarks == ()


def test_a_config_json_has_no_multi_token_prediction() -> None:
    asked = from_hf(num_nextn_predict_layers=1)
    assert "transformers has no multi-token prediction" in asked.remarks[0]
    assert replace(asked, remarks=()) == from_hf(num_nextn_predict_layers=None) == from_hf()


def test_null_groups_and_shared_experts_mean_none() -> None:
    config = from_hf(n_group=None, topk_group=None, n_shared_experts=None, q_lora_rank=None)
    assert config.moe.router.n_group == config.moe.shared_intermediate_size == 0
    assert config.attention.q_lora_rank is None


def test_families_are_found_by_model_type() -> None:
    with pytest.raises(UserError, match="model_type is 'gpt9'; msrt has deepseek_v3, llama, qwen3, qwen3_moe"):
        config_from_model_section(replace(SECTION, model_type="gpt9"))
    with pytest.raises(UserError, match=r"^model_type is missing"):
        config_from_hf({})
    built = build_model(config_from_model_section(SECTION), seed=1)
    assert float(built.loss(*tiny_model.batch()).total) > 0
    assert keys_without_effect(replace(SECTION, use_flash_attention=True)).keys() == {"use_flash_attention"}
