"""The split setting."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msmigrate.problems import UserError
from msrt.data.split import parse_split


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("1, 0, 0", (range(100), None, None)),
        ("98,2", (range(98), range(98, 100), None)),
        ("99.5,0.5,0", (range(100), range(100, 100), None)),
        ("80, 15, 5", (range(80), range(80, 95), range(95, 100))),
        (" .5 , 1. ", (range(33), range(33, 100), None)),
        ("0, 1, 1", (None, range(50), range(50, 100))),
        ("7", (range(100), None, None)),
    ],
)
def test_parts_of_100_sequences(text: str, parts: tuple[range | None, ...]) -> None:
    assert parse_split(text).sequences(100) == parts


def test_half_rounds_to_even() -> None:
    train, valid, _ = parse_split("1,1").sequences(5)
    assert (train, valid) == (range(2), range(2, 5))
    train, valid, _ = parse_split("1,1").sequences(7)
    assert (train, valid) == (range(4), range(4, 7))


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("-1, 1, 0", '"-1"'),
        ("90,abc5,5", '"abc5"'),
        ("0,0,0", "above 0"),
        ("", '""'),
        ("1,,1", '""'),
        ("1 1", '"1 1"'),
        ("1e-3, 1", '"1e-3"'),
        ("+1", '"+1"'),
        ("nan, 1", '"nan"'),
        ("1/2, 1/2", '"1/2"'),
        ("1,1,1,1", "4 numbers"),
        ("9" * 400, "above 0"),
    ],
)
def test_refused(text: str, named: str) -> None:
    with pytest.raises(UserError) as error:
        parse_split(text)
    assert named in str(error.value)
    assert text in str(error.value)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (None, "split is missing; write "),
        (1, "split is 1; it must be a string of numbers"),
        ((1, 0, 0), r"split is \[1, 0, 0\]; it must be a string of numbers"),
    ],
)
def test_refuses_what_is_not_a_string(value: object, message: str) -> None:
    with pytest.raises(UserError, match=rf"^train_dataset\.dataloader\.config\.{message}"):
        parse_split(value)


@given(
    st.lists(st.floats(0, 100).map(lambda value: round(value, 3)), min_size=1, max_size=3).filter(any),
    st.integers(0, 500),
)
def test_parts_cover_every_sequence_once(weights: list[float], count: int) -> None:
    parts = parse_split(",".join(f"{weight:.3f}" for weight in weights)).sequences(count)
    assert [number for part in parts if part is not None for number in part] == list(range(count))
