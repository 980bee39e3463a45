"""What a model makes of a micro-batch's columns before it computes."""

import numpy as np
from mindspore import Tensor

from msmigrate.problems import UserError
from msrt.models.api import TokenCounts
from msrt.ops.autograd import Array, Ints, array, tensor

IGNORED = -100
"""Label left out of the loss."""

_EMPTY = 1e-8
"""Keeps a micro-batch without counted tokens from dividing by zero: its loss is 0 (as MindFormers has it)."""


def positions(input_ids: Tensor, position_ids: Tensor | None) -> Ints:
    """Positions (batch, seq), 0, 1, … when none are given."""
    if position_ids is not None:
        return array(position_ids)
    return np.broadcast_to(np.arange(input_ids.shape[1], dtype=np.int32), input_ids.shape)


def checked_ids(ids: Tensor, column: str, vocab_size: int, max_sequence: int | None) -> None:
    """Raises UserError for ids outside the vocabulary, which a gather would answer with zeros, and long sequences."""
    if max_sequence is not None and ids.shape[1] > max_sequence:
        raise UserError(f"A sample has {ids.shape[1]} tokens; model.seq_length is {max_sequence}.")
    _check_range(array(ids), column, vocab_size)


def _check_range(ids: Ints, column: str, vocab_size: int) -> None:
    low, high = int(ids.min(initial=0)), int(ids.max(initial=0))
    if low < 0 or high >= vocab_size:
        raise UserError(
            f"{column} holds the token {low if low < 0 else high}; model.vocab_size {vocab_size} has the tokens 0 to "
            f"{vocab_size - 1}. The data was made with another vocabulary."
        )


def shifted_left(column: Tensor) -> Tensor:
    """What stands one position later, 0 at the end: (batch, seq) of any type gives the same shape."""
    values = array(column)
    moved = np.zeros_like(values)
    moved[:, :-1] = values[:, 1:]
    return tensor(moved)


def masked_labels(
    labels: Tensor, loss_mask: Tensor | None, vocab_size: int, tokens: float | None = None
) -> tuple[Tensor, Tensor]:
    """Labels (batch · seq,) with ignored ones at 0, and each token's share of the loss, float32 of the same shape.

    Shares are 1 / `tokens` where the loss counts a token; None is their number here, so that the loss is a mean.
    """
    wanted = array(labels).reshape(-1)
    counted = _counted(wanted, None if loss_mask is None else array(loss_mask).reshape(-1))
    targets = np.where(wanted == IGNORED, 0, wanted)
    _check_range(targets, "labels", vocab_size)
    return tensor(targets), tensor(counted / np.float32((counted.sum() if tokens is None else tokens) + _EMPTY))


def count_tokens(labels: Ints, loss_mask: Array) -> TokenCounts:
    """How many tokens of (batch, seq) each loss counts; masks may weigh them."""
    counted = _counted(labels, loss_mask)
    return TokenCounts(float(counted.sum(dtype=np.float64)), float(counted[:, 1:].sum(dtype=np.float64)))


def _counted(labels: Ints, loss_mask: Array | None) -> Array:
    counted: Array = (labels != IGNORED).astype(np.float32)
    return counted if loss_mask is None else counted * loss_mask
