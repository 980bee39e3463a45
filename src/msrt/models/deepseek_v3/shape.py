"""The sizes of a DeepSeek-V3 model, and what must hold between them."""

from collections.abc import Iterator
from dataclasses import dataclass

from msrt.models.expert_shape import ExpertShape


@dataclass(frozen=True, kw_only=True)
class DeepSeekV3Shape(ExpertShape):
    """Sizes under their Hugging Face names."""

    q_lora_rank: int | None
    kv_lora_rank: int
    qk_nope_head_dim: int
    qk_rope_head_dim: int
    v_head_dim: int
    num_nextn_predict_layers: int

    def problems(self) -> Iterator[str]:
        """See `Shape.problems`."""
        yield from super().problems()
        yield from self.too_small(
            1, "q_lora_rank", "kv_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim"
        )
        if self.qk_rope_head_dim % 2:
            yield f"model.qk_rope_head_dim is {self.qk_rope_head_dim}; lanes rotate in pairs, so it must be even."
        if self.num_nextn_predict_layers not in (0, 1):
            yield (
                f"model.num_nextn_predict_layers is {self.num_nextn_predict_layers}; it must be 0 or 1: MindFormers "
                "trains at most one layer of multi-token prediction."
            )
