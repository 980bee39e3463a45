"""The sizes of a mixture of experts, and what must hold between them."""

from collections.abc import Iterator
from dataclasses import dataclass

from msrt.models.shape import Shape


@dataclass(frozen=True, kw_only=True)
class ExpertShape(Shape):
    """The sizes of a family with experts; the defaults ask for nothing."""

    n_routed_experts: int
    num_experts_per_tok: int
    moe_intermediate_size: int
    norm_topk_prob: bool
    n_shared_experts: int = 0
    routed_scaling_factor: float = 1.0
    n_group: int = 0
    """Expert groups; 0 and 1: the choice is not limited to groups."""
    topk_group: int = 0
    first_k_dense_replace: int = 0
    """Leading layers without experts."""

    def problems(self) -> Iterator[str]:
        """See `Shape.problems`."""
        yield from super().problems()
        yield from self.too_small(1, "n_routed_experts", "num_experts_per_tok", "moe_intermediate_size")
        yield from self.too_small(0, "first_k_dense_replace", "n_shared_experts", "n_group", "topk_group")
        if self.first_k_dense_replace > self.num_hidden_layers:
            yield (
                f"model.first_k_dense_replace is {self.first_k_dense_replace} but the model has only "
                f"{self.num_hidden_layers} layers (model.num_hidden_layers)."
            )
        yield from self._broken_routing()

    def _broken_routing(self) -> Iterator[str]:
        experts, chosen, groups = self.n_routed_experts, self.num_experts_per_tok, self.n_group
        if chosen > experts:
            yield (
                f"model.num_experts_per_tok is {chosen} but there are only {experts} experts "
                f"(model.n_routed_experts): set it to at most {experts}."
            )
        if groups <= 1:
            return
        if experts % groups:
            yield (
                f"model.n_group is {groups}, which does not divide the {experts} experts (model.n_routed_experts): "
                f"{experts} = {groups} × {experts // groups} + {experts % groups}."
            )
            return
        if not 1 <= self.topk_group <= groups:
            yield f"model.topk_group is {self.topk_group}; it must be from 1 to the {groups} groups of model.n_group."
            return
        size = experts // groups
        if size < 2:
            yield (
                f"model.n_group is {groups} for {experts} experts: a group's score is the sum of its two best experts, "
                f"so n_group must be at most {experts // 2} (0 for no groups; left out, DeepSeek-V3 has 8)."
            )
        if chosen > self.topk_group * size:
            yield (
                f"model.num_experts_per_tok is {chosen}, but {self.topk_group} groups (model.topk_group) of {size} "
                f"experts hold {self.topk_group * size}: lower num_experts_per_tok or raise topk_group."
            )
