"""The configuration of a Qwen3-MoE model: Qwen3's, and which layers have which experts."""

from collections.abc import Mapping
from dataclasses import replace

from msmigrate.problems import UserError
from msmigrate.pynative.model import Model
from msrt.config.problem import shown
from msrt.models.gqa.config import GQAConfig, hf_config, hf_shape, section_config, section_shape
from msrt.models.gqa.shape import GQAExpertShape
from msrt.models.gqa.traits import Traits
from msrt.models.hf import EXPERTS, ignored_settings
from msrt.models.section import bias_update_rate, mixture, moe_layers, precision, router
from msrt.nn.moe import MoESpec

TRAITS = Traits(
    model_type="qwen3_moe",
    qk_norm=True,
    hf_values={"use_sliding_window": (False, None)},
    without_effect={"qk_layernorm": "Qwen3 always has norms on queries and keys."},
)

NOT_READ: Mapping[str, tuple[object, ...]] = {
    "scoring_func": ("softmax",),
    "n_shared_experts": (0,),
    "shared_expert_intermediate_size": (0,),
    "routed_scaling_factor": (1.0,),
    "n_group": (1, 0),
    "topk_group": (1, 0),
    "first_k_dense_replace": (0,),
    "moe_layer_freq": (1,),
}
"""Keys of other families that transformers' class leaves alone, and what is computed whatever they say."""


def from_hf(values: Mapping[str, object]) -> GQAConfig:
    """The model of a Hugging Face config.json, in transformers' arithmetic; see `models.gqa.config.hf_shape`."""
    named = [{"n_routed_experts": values[name]} for name in EXPERTS if name in values]
    read = {name: value for name, value in values.items() if name not in NOT_READ}
    shape = hf_shape({**read, **(named[0] if named else {})}, TRAITS, GQAExpertShape)
    dense = values.get("mlp_only_layers") or []
    if not isinstance(dense, list) or not all(isinstance(layer, int) for layer in dense):
        raise UserError(f"model.mlp_only_layers is {shown(dense)}; it must be a list of layer numbers.")
    moe = MoESpec(
        shape.hidden_size, shape.moe_intermediate_size, 0, router(shape, "softmax"), expert_bias=False, balance=None
    )
    layers, dense_model = _sparse_layers(shape, tuple(dense)), hf_config(values, TRAITS, shape)
    remarks = dense_model.remarks + ignored_settings(values, NOT_READ)
    return replace(dense_model, moe=moe, moe_layers=layers, remarks=remarks)


def from_model_section(model: Model) -> GQAConfig:
    """The model of a pynative.yaml's `model:` section, in MindFormers' arithmetic.

    MindFormers has no PyNative class of the family: its router and experts are taken with the defaults of its Graph
    mode (softmax scores, no expert bias), and `decoder_sparse_step` and `mlp_only_layers` as transformers reads them.
    """
    shape = section_shape(model, TRAITS, GQAExpertShape)
    return replace(
        section_config(model, TRAITS, shape),
        moe=mixture(shape, model, default_score="softmax", default_bias=False),
        moe_layers=_section_layers(shape, model),
        bias_update_rate=bias_update_rate(model),
        precision=precision(model, experts=True),
    )


def _sparse_layers(shape: GQAExpertShape, dense: tuple[int, ...]) -> tuple[int, ...]:
    """Layers with experts: every decoder_sparse_step-th one, the `dense` ones left out."""
    step = shape.decoder_sparse_step
    return tuple(n for n in range(shape.num_hidden_layers) if (n + 1) % step == 0 and n not in dense)


def _section_layers(shape: GQAExpertShape, model: Model) -> tuple[int, ...]:
    by_qwen = _sparse_layers(shape, model.mlp_only_layers or ())
    by_mindformers = moe_layers(shape, model.moe_layer_freq)
    every = tuple(range(shape.num_hidden_layers))
    if every not in (by_qwen, by_mindformers) and by_qwen != by_mindformers:
        raise UserError(
            f"model.decoder_sparse_step and model.mlp_only_layers give experts to the layers {list(by_qwen)}, "
            f"model.first_k_dense_replace and model.moe_layer_freq to {list(by_mindformers)}: keep one of the pairs."
        )
    return by_qwen if by_mindformers == every else by_mindformers
