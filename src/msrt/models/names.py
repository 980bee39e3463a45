"""The parameters that all families have, and the Hugging Face tensors that each is made of."""

from collections.abc import Sequence

from msrt.models.config import DecoderConfig
from msrt.nn.moe import MoESpec
from msrt.weights.layout import InterleavedRows, Layout, Same, StackedExperts
from msrt.weights.names import NameRow

Row = tuple[str, tuple[str, ...], Layout]
"""A parameter of a decoder layer, its Hugging Face tensors, both by their names within the layer, and the layout."""

NORMS: tuple[Row, ...] = (
    ("input_layernorm.weight", ("input_layernorm.weight",), Same()),
    ("pre_mlp_layernorm.weight", ("post_attention_layernorm.weight",), Same()),
)


def decoder_names(
    config: DecoderConfig, attention: Sequence[Row], ignored: tuple[str, ...] = ()
) -> tuple[NameRow, ...]:
    """One row per kind of parameter of the model; `attention` are the family's, in every layer.

    `ignored` are beginnings of names of tensors that a file may hold and the model has no use for.
    """
    every = tuple(range(config.num_hidden_layers))
    dense = tuple(layer for layer in every if layer not in config.moe_layers)
    of_mtp = [f"model.layers.{layer}." for layer in config.mtp_layers]
    embeddings = tuple(f"{layer}embed_tokens.weight" for layer in of_mtp)
    heads = tuple(f"{layer}shared_head.head.weight" for layer in of_mtp)
    tied = ("lm_head.weight", *heads) if config.tie_word_embeddings else ()
    head = [] if tied else [NameRow("output_layer.weight", ("lm_head.weight",), Same(), copies=heads)]
    return (
        NameRow(
            "embedding.word_embeddings.weight",
            ("model.embed_tokens.weight",),
            Same(),
            copies=(*embeddings, *tied),
            ignored=ignored,
        ),
        *layer_names("decoder.layers.{layer}.", [*NORMS, *attention], every),
        *layer_names("decoder.layers.{layer}.", mlp_names("mlp"), dense),
        *routed_names("decoder.layers.{layer}.", config.moe, config.moe_layers),
        NameRow("decoder.final_layernorm.weight", ("model.norm.weight",), Same()),
        *head,
        *_mtp_names(config, attention),
    )


def _mtp_names(config: DecoderConfig, attention: Sequence[Row]) -> list[NameRow]:
    """The rows of the multi-token prediction layer, whose number on the hub is that behind the main model's."""
    place, layers = "mtp.layers.0.", config.mtp_layers
    inner = place + "transformer_layer."
    joint: list[Row] = [(f"{name}.weight", (f"{name}.weight",), Same()) for name in ("enorm", "hnorm", "eh_proj")]
    joint.append(("final_layernorm.weight", ("shared_head.norm.weight",), Same()))
    dense = mlp_names("mlp") if config.mtp_moe is None else []
    return [
        *layer_names(place, joint, layers),
        *layer_names(inner, [*NORMS, *attention, *dense], layers),
        *routed_names(inner, config.mtp_moe, layers),
    ]


def layer_names(place: str, rows: Sequence[Row], layers: tuple[int, ...], experts: int = 1) -> list[NameRow]:
    """`rows` of the `layers`, whose parameters have names that start with `place`."""
    return [
        NameRow(place + ours, tuple(f"model.layers.{{layer}}.{name}" for name in hub), layout, layers, experts)
        for ours, hub, layout in rows
    ]


def mlp_names(path: str) -> list[Row]:
    """The rows of a dense MLP at `path`."""
    return [
        (f"{path}.linear_fc1.weight", (f"{path}.gate_proj.weight", f"{path}.up_proj.weight"), InterleavedRows()),
        (f"{path}.linear_fc2.weight", (f"{path}.down_proj.weight",), Same()),
    ]


def routed_names(place: str, moe: MoESpec | None, layers: tuple[int, ...]) -> list[NameRow]:
    """The rows of the mixture of experts in `layers`."""
    if moe is None:
        return []
    rows: list[Row] = [("mlp.router.weight", ("mlp.gate.weight",), Same())]
    if moe.expert_bias:
        rows.append(("mlp.expert_bias", ("mlp.gate.e_score_correction_bias",), Same()))
    if moe.shared_intermediate_size:
        rows += mlp_names("mlp.shared_experts")
    one = "mlp.experts.{expert}."
    experts: list[Row] = [
        ("mlp.experts.weight1", (f"{one}gate_proj.weight", f"{one}up_proj.weight"), StackedExperts(2)),
        ("mlp.experts.weight2", (f"{one}down_proj.weight",), StackedExperts(1)),
    ]
    return layer_names(place, rows, layers) + layer_names(place, experts, layers, moe.router.num_experts)
