"""Choosing the next token from its scores."""

import numpy as np
from numpy.typing import NDArray

from msrt.ops.autograd import Array


class Sampler:
    """Draws tokens: the best one at temperature 0, else by softmax(scores / temperature) over the nucleus.

    The nucleus is the smallest set of most likely tokens whose probabilities sum to at least `top_p` (Holtzman et al.,
    2020, section 3.1); it always holds the best token. The same seed and scores give the same tokens.
    """

    def __init__(self, temperature: float, top_p: float, seed: int) -> None:
        self._temperature, self._top_p = temperature, top_p
        self._random = np.random.default_rng(seed)

    def __call__(self, scores: Array) -> int:
        """The token chosen by `scores` (vocab,); of equal best ones the first."""
        if self._temperature == 0:
            return int(np.argmax(scores))
        order = np.argsort(-scores, kind="stable")
        likely = _probabilities(scores[order], self._temperature)
        before = np.cumsum(likely) - likely
        nucleus = likely[: max(1, int(np.searchsorted(before, self._top_p)))]
        return int(self._random.choice(order[: nucleus.size], p=nucleus / nucleus.sum()))


def _probabilities(scores: Array, temperature: float) -> NDArray[np.float64]:
    powers = np.exp((scores.astype(np.float64) - scores.max()) / temperature)
    shares: NDArray[np.float64] = powers / powers.sum()
    return shares
