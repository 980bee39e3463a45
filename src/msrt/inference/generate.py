"""Continuing a sequence of tokens."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from msrt.nn.cache import Memory
from msrt.ops.autograd import Array, array, tensor


def continued(model: Any, prompt: Sequence[int], choose: Callable[[Array], int]) -> Iterator[int]:
    """Tokens behind `prompt`, without end, each chosen by `choose` from the scores (vocab,) of all that stands before.

    `model` is a `models.api.Model`; its attention layers keep what they computed for earlier positions, so that a
    token costs one position. Raises UserError for a prompt outside the vocabulary.
    """
    memory, past = Memory(model), 0
    new = np.asarray([prompt], np.int32)
    while True:
        positions = np.arange(past, past + new.shape[1], dtype=np.int32)[None]
        with memory.used():
            logits = model.logits(tensor(new), tensor(positions))
        token = choose(array(logits)[0, -1])
        yield token
        past += new.shape[1]
        new = np.asarray([[token]], np.int32)
