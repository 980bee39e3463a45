"""YaRN's frequencies, and each place where transformers' and MindFormers' arithmetic differ."""

import math

import numpy as np
import pytest

from msmigrate.problems import UserError
from msrt.models.deepseek_v3.config import DeepSeekV3Config
from msrt.nn.rotary import RotarySpec, Yarn

from . import float64_oracle as oracle
from . import tiny_model

YARN = {
    "type": "yarn", "factor": 8.0, "original_max_position_embeddings": 64, "mscale": 1.0, "mscale_all_dim": 0.5,
    "beta_fast": 8, "beta_slow": 2,
}  # fmt: skip


def from_hf(**changes: object) -> DeepSeekV3Config:
    values: dict[str, object] = {
        "model_type": "deepseek_v3", "vocab_size": 19, "hidden_size": 12, "intermediate_size": 10,
        "num_hidden_layers": 2, "num_attention_heads": 3, "q_lora_rank": 7, "kv_lora_rank": 5, "qk_nope_head_dim": 6,
        "qk_rope_head_dim": 10, "v_head_dim": 5, "max_position_embeddings": 512, "rms_norm_eps": 1e-3,
        "rope_theta": 100.0, "rope_scaling": dict(YARN), "first_k_dense_replace": 1, "n_routed_experts": 8,
        "num_experts_per_tok": 2, "n_group": 4, "topk_group": 2, "moe_intermediate_size": 6,
    }  # fmt: skip
    return DeepSeekV3Config.from_hf({**values, **changes})


def from_section(**changes: object) -> DeepSeekV3Config:
    """The same model in MindFormers' words."""
    words: dict[str, object] = {
        "qk_nope_head_dim": 6, "qk_rope_head_dim": 10, "rope_theta": 100.0, "rms_norm_eps": 1e-3,
        "rotary_scaling_factor": 8.0, "max_position_embeddings": 64, "mscale": 1.0, "mscale_all_dim": 0.5,
        "beta_fast": 8, "beta_slow": 2,
    }  # fmt: skip
    return tiny_model.config(**{**words, **changes})


def test_plain_frequencies_fall_geometrically() -> None:
    np.testing.assert_allclose(RotarySpec(8, 10000.0).inverse_frequencies(), [1, 0.1, 0.01, 0.001], rtol=1e-6)


def test_yarn_keeps_fast_lanes_and_divides_slow_ones() -> None:
    plain = RotarySpec(64, 10000.0).inverse_frequencies()
    stretched = RotarySpec(64, 10000.0, Yarn(40.0, 4096)).inverse_frequencies()
    ratio = stretched / plain
    np.testing.assert_allclose(ratio[:11], 1, rtol=1e-6)
    np.testing.assert_allclose(ratio[23:], 1 / 40, rtol=1e-5)
    assert (np.diff(ratio[10:24]) < 0).all()


def test_yarn_with_equal_bounds_is_a_step() -> None:
    spec = RotarySpec(4, 10000.0, Yarn(4.0, 6))
    ratio = spec.inverse_frequencies() / RotarySpec(4, 10000.0).inverse_frequencies()
    np.testing.assert_allclose(ratio, [1, 0.25], rtol=1e-6)


@pytest.mark.parametrize("config", [from_hf(), from_section(), from_hf(rope_scaling=None)])
def test_frequencies_are_those_of_the_formulas(config: DeepSeekV3Config) -> None:
    np.testing.assert_allclose(config.rotary.inverse_frequencies(), oracle.frequencies(config), rtol=1e-6)


def growth(mscale: float) -> float:
    return 0.1 * mscale * math.log(8.0) + 1


def test_softmax_scale_grows_with_mscale_all_dim_in_one_and_mscale_in_the_other() -> None:
    assert from_hf().attention.softmax_scale == pytest.approx(growth(0.5) ** 2 / 4)
    assert from_section().attention.softmax_scale == pytest.approx(growth(1.0) ** 2 / 4)


def test_softmax_scale_without_yarn_is_plain_in_one_and_scaled_in_the_other() -> None:
    assert from_hf(rope_scaling=None).attention.softmax_scale == pytest.approx(1 / 4)
    rope = from_section(position_embedding_type="rope", rotary_scaling_factor=None, mscale=None, mscale_all_dim=None)
    assert rope.rotary.stretch is None
    assert rope.attention.softmax_scale == pytest.approx((0.0707 * math.log(40) + 1) ** 2 / 4)


def test_the_mscale_ratio_lies_on_cos_and_sin_in_one_and_on_the_angle_in_the_other() -> None:
    ratio = growth(1.0) / growth(0.5)
    positions = np.array([[0, 3]])
    frequencies = from_hf().rotary.inverse_frequencies()
    cos, sin = (t.asnumpy()[0] for t in from_hf().rotary.tables(positions))
    np.testing.assert_allclose(cos[0], ratio, rtol=1e-6)
    np.testing.assert_allclose(sin[1], np.sin(3 * frequencies) * ratio, atol=1e-6)
    cos, sin = (t.asnumpy()[0] for t in from_section().rotary.tables(positions))
    np.testing.assert_allclose(cos[0], 1, rtol=1e-6)
    np.testing.assert_allclose(sin[1], np.sin(3 * frequencies * ratio), atol=1e-6)


def test_the_length_before_yarn_has_a_key_of_its_own_in_one_and_is_max_position_embeddings_in_the_other() -> None:
    assert from_hf().rotary.stretch == Yarn(8.0, 64, 8.0, 2.0)
    assert from_hf(rope_scaling={"type": "yarn", "factor": 8.0}).rotary.stretch == Yarn(8.0, 512, 32.0, 1.0)
    section = from_section(max_position_embeddings=96, original_max_position_embeddings=64)
    assert section.rotary.stretch == Yarn(8.0, 96, 8.0, 2.0)


def test_latent_norms_have_a_fixed_epsilon_in_one_and_rms_norm_eps_in_the_other() -> None:
    assert (from_hf().rms_norm_eps, from_hf().attention.latent_norm_eps) == (1e-3, 1e-6)
    assert from_section().attention.latent_norm_eps == 1e-3


def test_rope_scaling_overrides_the_flat_keys_of_a_section() -> None:
    given = {"type": "yarn", "factor": 5.0, "original_max_position_embeddings": 32, "mscale": 2.0}
    config = from_section(rope_scaling=given)
    assert config.rotary.stretch == Yarn(5.0, 32, 8.0, 2.0)
    assert config.attention.softmax_scale == pytest.approx((0.2 * math.log(5) + 1) ** 2 / 4)
    without_length = from_section(rope_scaling={"rope_type": "yarn", "factor": 5.0})
    assert without_length.rotary.stretch == Yarn(5.0, 16, 8.0, 2.0)


def test_transformers_5_spelling_is_the_same_model() -> None:
    parameters = {**YARN, "rope_type": "yarn", "rope_theta": 100.0}
    del parameters["type"]
    assert from_hf(rope_scaling=None, rope_theta=1.0, rope_parameters=parameters) == from_hf()


def test_other_rotary_scalings_are_refused() -> None:
    with pytest.raises(UserError, match="the type 'longrope'; computed here are default, linear, llama3, yarn"):
        from_hf(rope_scaling={"rope_type": "longrope", "factor": 8.0})
    with pytest.raises(UserError, match="have no factor"):
        from_hf(rope_scaling={"rope_type": "yarn"})
    with pytest.raises(UserError, match="position_embedding_type is 'learned_absolute'"):
        from_section(position_embedding_type="learned_absolute")
    with pytest.raises(UserError, match="mscale is 'one'; it must be a number"):
        from_hf(rope_scaling={**YARN, "mscale": "one"})
