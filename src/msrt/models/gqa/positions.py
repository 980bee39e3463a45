"""Rotary positions of a model section with grouped-query attention."""

from msmigrate.problems import UserError
from msmigrate.pynative.model import Model
from msrt.config.problem import shown
from msrt.models.gqa.shape import GQAShape
from msrt.models.rope import transformers_rotary
from msrt.models.section import one_of
from msrt.nn.rotary import RotarySpec


def section_rotary(shape: GQAShape, model: Model) -> RotarySpec:
    """The rotation of whole heads that a model section asks for; `rope_scaling` overrides the flat keys.

    Plain positions are MindFormers' as well as transformers'. Stretched ones are transformers': MindFormers' PyNative
    mode has them for MLA only. Raises UserError for a kind that is not computed here.
    """
    return transformers_rotary(
        _settings(model),
        dim=shape.head_width,
        theta=shape.rope_theta,
        max_position_embeddings=shape.max_position_embeddings,
    )


def _settings(model: Model) -> dict[str, object]:
    """The section's settings in Hugging Face's form, empty for plain positions."""
    if model.rope_scaling is not None:
        return dict(model.rope_scaling)
    kind = model.position_embedding_type or "rope"
    if kind == "rope":
        return {}
    if kind != "yarn":
        raise UserError(
            f"model.position_embedding_type is {shown(kind)}; computed here are 'rope' and 'yarn', and the types of "
            "model.rope_scaling."
        )
    factor: float | None = one_of(model, "scaling_factor", "rotary_scaling_factor")
    names = ("original_max_position_embeddings", "beta_fast", "beta_slow", "mscale", "mscale_all_dim")
    return {"type": "yarn", "factor": factor, **{name: getattr(model, name) for name in names}}
