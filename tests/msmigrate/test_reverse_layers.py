"""Sets of recomputed layers as chunks and counts of graph mode, and back."""

from hypothesis import assume, given
from hypothesis import strategies as st

from msmigrate.mapping.layers import Stages, chunks_of, cut, first_of_each, highest_id, ids_of, per_stage, ranges


def layers_of(counts: object, chunks: int, offset: object, layers: int, extra: int) -> list[int]:
    parts = cut(layers, 1, chunks, offset)  # type: ignore[arg-type]  # lists are invariant
    table = per_stage(counts, 1, chunks, "recompute")  # type: ignore[arg-type]  # the same
    assert isinstance(parts, Stages), parts
    assert not isinstance(table, str), table
    return first_of_each(parts, table, extra)


@given(st.data(), st.integers(1, 40), st.integers(0, 1))
def test_one_set(data: st.DataObject, layers: int, extra: int) -> None:
    ids = sorted(data.draw(st.sets(st.integers(0, layers + extra - 1))))
    chunks = chunks_of(ids)
    assume(len(chunks.starts) <= layers)
    many = len(chunks.starts) > 1
    offset = chunks.offset(layers) if many else 0
    counts = chunks.counts(ids)
    assert layers_of(counts if many else [counts[0]], len(chunks.starts), offset, layers, extra) == ids


@given(st.data(), st.integers(2, 30))
def test_two_sets_share_their_chunks(data: st.DataObject, layers: int) -> None:
    first = sorted(data.draw(st.sets(st.integers(0, layers - 1), min_size=1)))
    second = sorted(data.draw(st.sets(st.integers(0, layers - 1), min_size=1)))
    chunks = chunks_of(first, second)
    assert len(chunks.starts) <= layers
    many = len(chunks.starts) > 1
    offset = chunks.offset(layers) if many else 0
    for ids in (first, second):
        assert layers_of(chunks.counts(ids), len(chunks.starts), offset, layers, 0) == ids


@given(st.sets(st.integers(0, 60)))
def test_ranges_are_read_back(ids: set[int]) -> None:
    written = ranges(sorted(ids))
    assert ids_of(written) == sorted(ids)
    assert highest_id(written) == max(ids, default=-1)
