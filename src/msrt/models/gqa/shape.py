"""The sizes of models with grouped-query attention, and what must hold between them."""

from collections.abc import Iterator
from dataclasses import dataclass

from msrt.models.expert_shape import ExpertShape
from msrt.models.shape import Shape


@dataclass(frozen=True, kw_only=True)
class GQAShape(Shape):
    """Sizes under their Hugging Face names."""

    num_key_value_heads: int | None = None
    """null: as many as query heads."""
    head_dim: int | None = None
    """null: hidden_size / num_attention_heads."""
    attention_bias: bool

    @property
    def groups(self) -> int:
        """Key and value heads."""
        return self.num_attention_heads if self.num_key_value_heads is None else self.num_key_value_heads

    @property
    def head_width(self) -> int:
        return self.hidden_size // self.num_attention_heads if self.head_dim is None else self.head_dim

    def problems(self) -> Iterator[str]:
        """See `Shape.problems`."""
        sizes = [*super().problems(), *self.too_small(1, "num_key_value_heads", "head_dim")]
        yield from sizes
        if sizes:
            return
        heads = self.num_attention_heads
        if heads % self.groups:
            yield (
                f"model.num_key_value_heads is {self.groups}, which does not divide the {heads} query heads "
                f"(model.num_attention_heads): {heads} = {self.groups} × {heads // self.groups} + "
                f"{heads % self.groups}."
            )
        if self.head_dim is None and self.hidden_size % heads:
            yield (
                f"model.num_attention_heads is {heads}, which does not divide model.hidden_size ({self.hidden_size}): "
                "set model.head_dim."
            )
        if self.head_width % 2:
            yield f"model.head_dim is {self.head_width}; lanes rotate in pairs, so it must be even."


@dataclass(frozen=True, kw_only=True)
class GQAExpertShape(GQAShape, ExpertShape):
    """The sizes of a model with experts; the layers of `mlp_only_layers` and those that `decoder_sparse_step` passes
    over have none."""

    decoder_sparse_step: int

    def problems(self) -> Iterator[str]:
        """See `Shape.problems`."""
        yield from super().problems()
        yield from self.too_small(1, "decoder_sparse_step")
