"""What is said of sequences longer than those that a model is made for."""

from collections.abc import Callable

from msrt.config.refusals import beyond_positions
from msrt.models.registry import ModelConfig


def note_length(config: ModelConfig, length: int, what: str, note: Callable[[str], None]) -> None:
    """Tells `note` when `length`, the tokens of `what`, is above the model's max_position_embeddings."""
    longest = config.max_positions
    if longest is not None and length > longest:
        note(beyond_positions(longest, f"the {length} tokens of {what}"))
