"""Document, sample and shuffle index against an oracle that lays out every token of the stream."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from msrt.data.gpt_index import build_gpt_indices


@dataclass(frozen=True)
class Case:
    lengths: list[int]
    part: range
    num_samples: int | None
    seq_length: int
    extra: int
    seed: int
    drop_last: bool


@dataclass(frozen=True)
class Expected:
    documents: list[int]
    stream: list[tuple[int, int]]
    """(place in documents, token offset) of each token."""
    shuffle: list[int]


def oracle(case: Case) -> Expected:
    per_epoch = sum(case.lengths[sequence] for sequence in case.part)
    epochs = 1
    while case.num_samples is not None and epochs * per_epoch < case.num_samples * case.seq_length + case.extra:
        epochs += 1
    apart = None
    if epochs > 1:
        assert case.num_samples is not None
        before = ((epochs - 1) * per_epoch - case.extra) // case.seq_length
        if case.num_samples - before < int(0.8 * ((per_epoch - case.extra) // case.seq_length)):
            apart = before
    draws = np.random.RandomState(case.seed)
    documents: list[int] = []
    for copies in [epochs] if apart is None else [epochs - 1, 1]:
        documents += shuffled(draws, list(case.part) * copies)
    stream = [(place, at) for place, document in enumerate(documents) for at in range(case.lengths[document])]
    count = 0
    while len(stream) >= (count + 1) * case.seq_length + case.extra:
        count += 1
    if not case.drop_last and len(stream) > count * case.seq_length + case.extra:
        count += 1
    if apart is None:
        return Expected(documents, stream, shuffled(draws, list(range(count))))
    head = shuffled(draws, list(range(apart)))
    return Expected(documents, stream, head + shuffled(draws, list(range(apart, count))))


def shuffled(draws: np.random.RandomState, values: list[int]) -> list[int]:
    draws.shuffle(values)
    return values


@st.composite
def cases(draw: st.DrawFn) -> Case:
    lengths = draw(st.lists(st.integers(0, 12), min_size=1, max_size=9).filter(any))
    start = draw(st.integers(0, len(lengths) - 1))
    part = range(start, draw(st.integers(start + 1, len(lengths))))
    if not sum(lengths[sequence] for sequence in part):
        part = range(len(lengths))
    return Case(
        lengths,
        part,
        draw(st.none() | st.integers(0, 40)),
        draw(st.integers(1, 9)),
        draw(st.integers(0, 1)),
        draw(st.integers(0, 2**32 - 1)),
        draw(st.booleans()),
    )


def build(case: Case) -> Any:
    return build_gpt_indices(
        np.array(case.lengths, np.int32),
        np.arange(case.part.start, case.part.stop, dtype=np.int32),
        num_samples=case.num_samples,
        seq_length=case.seq_length,
        extra=case.extra,
        seed=case.seed,
        drop_last_partial=case.drop_last,
    )


@given(cases())
@example(Case([67] * 3, range(3), 35, 10, 1, 1, True))  # 15 of an epoch's 20 samples: below 80 %, shuffled apart
@example(Case([67] * 3, range(3), 36, 10, 1, 1, True))  # 16 of 20: together
def test_equals_the_oracle(case: Case) -> None:
    expected, found = oracle(case), build(case)
    assert found.documents.tolist() == expected.documents
    assert found.shuffle.tolist() == expected.shuffle
    rows = [tuple(row) for row in found.samples.tolist()]
    assert rows[0] == (0, 0)
    assert len(rows) == len(expected.shuffle) + 1
    last = len(expected.stream) - 1
    for sample, row in enumerate(rows[1:], 1):
        shared = sample * case.seq_length - (1 - case.extra)
        place, offset = expected.stream[min(shared, last)]
        assert row == (place, offset + 1 - case.extra)


@given(cases().filter(lambda case: case.num_samples is not None))
def test_gives_at_least_the_samples_asked_for(case: Case) -> None:
    assert case.num_samples is not None
    assert len(build(case).shuffle) >= case.num_samples


def test_both_kinds_of_last_epoch_occur() -> None:
    """Two epochs of 100 tokens: 13 samples need little of the second (shuffled apart), 19 nearly all of it."""
    apart = build(Case([10] * 10, range(10), 13, 10, 1, 3, True))
    together = build(Case([10] * 10, range(10), 19, 10, 1, 3, True))
    assert sorted(apart.documents[:10].tolist()) == sorted(apart.documents[10:].tolist()) == list(range(10))
    assert sorted(apart.shuffle[:9].tolist()) == list(range(9))
    assert sorted(together.documents[:10].tolist()) != list(range(10))


def test_index_types() -> None:
    found = build(Case([10] * 10, range(10), 13, 10, 1, 3, True))
    assert (found.documents.dtype, found.samples.dtype, found.shuffle.dtype) == (np.int32, np.int32, np.uint32)


def test_part_without_tokens() -> None:
    with pytest.raises(ValueError, match="no token"):
        build(Case([0, 0], range(2), 1, 4, 1, 1, True))
