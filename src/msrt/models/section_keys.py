"""Keys of a pynative.yaml's model section that change nothing in a family, and those that no family can honour."""

from collections.abc import Iterable, Iterator, Mapping

from msmigrate.problems import UserError
from msmigrate.pynative.keys import Use, specs_of
from msmigrate.pynative.model import Model

WITHOUT_EFFECT = {
    "moe_router_pre_softmax": "MindFormers' PyNative router always scores before it chooses.",
    "moe_token_dispatcher_type": "Every dispatcher gives the same numbers.",
}
"""Keys that mean something for other readers, and why they change nothing in any family here."""


def keys_without_effect(model: Model, of_family: Mapping[str, str]) -> dict[str, str]:
    """The keys that `model` gives (anything but their default) and that change no number here: key → why.

    `of_family` has those, with their reasons, that mean something for other families only.
    """
    reasons = {**WITHOUT_EFFECT, **of_family}
    found: dict[str, str] = {}
    for name, spec in specs_of(Model).items():
        if getattr(model, name) == spec.default:
            continue
        if name in reasons:
            found[name] = reasons[name]
        elif spec.key.use is Use.NO_EFFECT:
            found[name] = spec.key.meaning
    return found


def refuse(problems: Iterable[str]) -> None:
    """Raises UserError with all `problems`, one sentence a line; nothing happens without any."""
    told = list(problems)
    if told:
        raise UserError("\n".join(told))


def unsupported(model: Model) -> Iterator[str]:
    """One sentence for each setting that asks for a network that no family here has."""
    if model.gated_linear_unit is False:
        yield f"model.gated_linear_unit is false; the MLPs of {model.model_type} are gated: remove the key."
    if model.add_bias_linear:
        yield f"model.add_bias_linear is true; the linear layers of {model.model_type} have no bias: set it to false."
    for name in ("attention_dropout", "hidden_dropout"):
        if getattr(model, name):
            yield f"model.{name} is {getattr(model, name)}; dropout is not computed here: set it to 0.0."
    if model.tie_word_embeddings and model.untie_embeddings_and_output_weights:
        yield "model.tie_word_embeddings and model.untie_embeddings_and_output_weights are both true: keep one of them."
