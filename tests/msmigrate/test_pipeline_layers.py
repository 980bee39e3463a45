"""Layers of per-stage lists, and layer ids as ranges."""

from hypothesis import given
from hypothesis import strategies as st

from msmigrate.mapping.layers import Stages, cut, first_of_each, per_stage, ranges


def test_stages_with_offset_and_interleave() -> None:
    parts = cut(61, 8, 2, [[1, 1, 1, 1, 1, 1, 1, 1], [1, 1, 1, 1, 1, 1, 1, -2]])
    assert isinstance(parts, Stages)
    assert parts.layers == ((4,) * 8, (4, 4, 4, 4, 4, 4, 4, 1))
    assert parts.first_layer(1, 0) == 32


def test_layers_of_a_per_stage_list() -> None:
    parts = cut(8, 2, 1, 0)
    assert isinstance(parts, Stages)
    assert first_of_each(parts, [[2, 1]]) == [0, 1, 4]
    interleaved = cut(64, 2, 2, 0)
    assert isinstance(interleaved, Stages)
    ids = first_of_each(interleaved, [[14, 14], [14, 14]])
    assert ranges(ids) == ["0-13", "16-29", "32-45", "48-61"]


def test_lists_that_do_not_fit_are_explained() -> None:
    assert "2 pipeline stages" in str(per_stage([1, 2, 3], 2, 1, "recompute"))
    assert "pp_interleave_num is 2" in str(per_stage([1, 2], 2, 2, "recompute"))
    assert "holds" not in str(cut(8, 2, 1, [1, 1]))
    assert "10 layers" in str(cut(8, 2, 1, [1, 1]))


@given(st.sets(st.integers(0, 80), min_size=1))
def test_ranges_hold_exactly_the_ids(ids: set[int]) -> None:
    found: list[int] = []
    for part in ranges(sorted(ids)):
        low, _, high = str(part).partition("-")
        found += range(int(low), int(high or low) + 1)
    assert found == sorted(ids)
