"""The order that `dataloader.shuffle: true` deals samples out in: MindSpore's, number for number.

MindSpore's samplers call `std::shuffle` of libstdc++ with `std::mt19937`. The results below were compared with
mindspore 2.10.0: RandomSampler for one data-parallel rank, DistributedSampler for several.
"""

import logging
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from msrt.data.blend import LONG

WORDS = 2**32
"""A Mersenne Twister word is one of this many numbers."""

DRAWN = 2**16
"""Words drawn in one go."""

log = logging.getLogger(__name__)


def shuffled_order(samples: int, seed: int, data_parallel: int) -> NDArray[np.int64]:
    """The (samples,) order of `samples` samples for `data_parallel` ranks, of which rank r reads places r, r + dp, ….

    `seed` is training.seed, which MindFormers hands to mindspore.set_seed. With several ranks MindSpore counts it up by
    one before the first pass. This comes on top of Megatron's own shuffle with dataloader.config.seed. Every pass has
    the same order, since MindFormers makes a new iterator for each.
    """
    if samples > LONG:
        log.warning("Shuffling %d samples takes a while, about 1 s per million.", samples)
    words = _words((seed + (data_parallel > 1)) % WORDS)
    order = list(range(samples))
    for place, partner in _swaps(samples, words):
        order[place], order[partner] = order[partner], order[place]
    return np.asarray(order, np.int64)


def _words(seed: int) -> Iterator[int]:
    twister = np.random.RandomState(seed)
    while True:
        yield from twister.randint(0, WORDS, DRAWN, np.uint32).tolist()


def _swaps(count: int, words: Iterator[int]) -> Iterator[tuple[int, int]]:
    """The swaps of libstdc++'s std::shuffle: each place with one not behind it, two from one word where they fit."""
    if count == 0 or (WORDS - 1) // count < count:
        for place in range(1, count):
            yield place, _below(place + 1, words)
        return
    first = 1
    if count % 2 == 0:
        yield 1, _below(2, words)
        first = 2
    for place in range(first, count, 2):
        both = _below((place + 1) * (place + 2), words)
        yield place, both // (place + 2)
        yield place + 1, both % (place + 2)


def _below(limit: int, words: Iterator[int]) -> int:
    """A number from 0 to limit - 1: libstdc++'s std::uniform_int_distribution before GCC 11."""
    width = (WORDS - 1) // limit
    while (word := next(words)) >= width * limit:
        pass
    return word // width
