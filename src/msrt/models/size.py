"""How many parameters a decoder trains, from its sizes alone."""

from msrt.models.config import DecoderConfig
from msrt.nn.moe import MoESpec


def decoder_parameters(config: DecoderConfig, attention: int) -> int:
    """Trained parameters, `attention` of them in the attention of a layer.

    The expert biases, which no gradient moves, are not counted.
    """
    hidden, layers, routed = config.hidden_size, config.num_hidden_layers, len(config.moe_layers)
    vocabulary = config.vocab_size * hidden * (1 if config.tie_word_embeddings else 2)
    every_layer = attention + 2 * hidden
    dense = mlp_parameters(hidden, config.intermediate_size)
    experts = 0 if config.moe is None else _moe(config.moe)
    main = vocabulary + hidden + layers * every_layer + (layers - routed) * dense + routed * experts
    joint = 3 * hidden + 2 * hidden * hidden
    further = joint + every_layer + (dense if config.mtp_moe is None else experts)
    return main + len(config.mtp_layers) * further


def _moe(spec: MoESpec) -> int:
    experts = spec.router.num_experts
    router = experts * spec.hidden_size
    routed = experts * mlp_parameters(spec.hidden_size, spec.intermediate_size)
    return router + routed + mlp_parameters(spec.hidden_size, spec.shared_intermediate_size)


def mlp_parameters(hidden: int, intermediate: int) -> int:
    """Gate, up and down."""
    return 3 * hidden * intermediate
