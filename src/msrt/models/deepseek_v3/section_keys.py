"""Keys of a pynative.yaml's model section that change nothing in DeepSeek-V3 here, and those it cannot honour."""

from collections.abc import Iterator

from msmigrate.problems import UserError
from msmigrate.pynative.keys import Use, specs_of
from msmigrate.pynative.model import Model

WITHOUT_EFFECT = {
    "num_key_value_heads": "MLA makes keys and values for every query head.",
    "head_dim": "MLA's heads are qk_nope_head_dim + qk_rope_head_dim and v_head_dim wide.",
    "original_max_position_embeddings": "MindFormers takes max_position_embeddings as the length before YaRN.",
    "moe_router_pre_softmax": "MindFormers' PyNative router always scores before it chooses.",
    "moe_token_dispatcher_type": "Every dispatcher gives the same numbers.",
    "mtp_loss_scaling_factor": "There is no MTP layer whose loss it could weigh.",
    "decoder_sparse_step": "A key of Qwen; first_k_dense_replace and moe_layer_freq decide.",
    "mlp_only_layers": "A key of Qwen; first_k_dense_replace and moe_layer_freq decide.",
}
"""Keys that mean something for other families or other readers, and why they change nothing for this one."""


def without_effect(model: Model) -> dict[str, str]:
    """The keys that `model` gives (anything but their default) and that change no number here: key → why."""
    found: dict[str, str] = {}
    for name, spec in specs_of(Model).items():
        if getattr(model, name) == spec.default:
            continue
        if name in WITHOUT_EFFECT:
            found[name] = WITHOUT_EFFECT[name]
        elif spec.key.use is Use.NO_EFFECT:
            found[name] = spec.key.meaning
    return found


def refuse_unsupported(model: Model) -> None:
    """Raises UserError with one sentence for each setting that asks for another network than DeepSeek-V3's."""
    problems = list(_unsupported(model))
    if problems:
        raise UserError("\n".join(problems))


def _unsupported(model: Model) -> Iterator[str]:
    if model.multi_latent_attention is False:
        yield "model.multi_latent_attention is false; DeepSeek-V3 has no other attention than MLA: remove the key."
    if model.gated_linear_unit is False:
        yield "model.gated_linear_unit is false; DeepSeek-V3's MLPs are gated: remove the key."
    if model.add_bias_linear:
        yield "model.add_bias_linear is true; DeepSeek-V3's linear layers have no bias: set it to false."
    if model.attention_bias:
        yield "model.attention_bias is true; DeepSeek-V3's attention has no bias: set it to false."
    for name in ("attention_dropout", "hidden_dropout"):
        if getattr(model, name):
            yield f"model.{name} is {getattr(model, name)}; dropout is not computed here: set it to 0.0."
    if model.tie_word_embeddings and model.untie_embeddings_and_output_weights:
        yield "model.tie_word_embeddings and model.untie_embeddings_and_output_weights are both true: keep one of them."
