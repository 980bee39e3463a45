"""The data_path setting."""

from collections.abc import Sequence

import pytest

from msmigrate.problems import UserError
from msrt.data.data_path import DataPath, normalise, parse_data_path


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("a", DataPath(("a",), None)),
        (["a"], DataPath(("a",), None)),
        (["a", "b/c"], DataPath(("a", "b/c"), None)),
        (["1", "a"], DataPath(("a",), (1.0,))),
        ([1, "a"], DataPath(("a",), (1.0,))),
        ((1, "a", 3.0, "b"), DataPath(("a", "b"), (0.25, 0.75))),
        (["2", "a", "5", "b", "3", "c"], DataPath(("a", "b", "c"), (0.2, 0.5, 0.3))),
    ],
)
def test_forms(value: object, expected: DataPath) -> None:
    assert parse_data_path(value) == expected


@pytest.mark.parametrize(
    ("value", "messages"),
    [
        (
            ["0.7", "d/a.bin", "0.3"],
            ["Weight 0.3 (entry 2) has no path", "Entry 1, d/a.bin, must be a prefix: drop .bin"],
        ),
        (["a.idx"], ["drop .idx"]),
        (["a", "1", "b"], ["path 'a', has no weight"]),
        (["1", "2", "a"], ["Weight 1 (entry 0) has no path"]),
        (["0", "a"], ["Weight 0 (entry 0) must be a finite number above 0"]),
        (["-1", "a"], ["Weight -1"]),
        (["nan", "a"], ["Weight nan"]),
        (["inf", "a"], ["Weight inf"]),
        ([True, "a"], ["Entry 0 is True"]),
        (["1", ""], ["Entry 1 is ''"]),
        ([], ["data_path is []"]),
        (None, ["train_dataset.dataloader.config.data_path is missing"]),
        ((), ["train_dataset.dataloader.config.data_path is []"]),
        ({"a": 1}, ["must be a corpus prefix or a list"]),
    ],
)
def test_refused_with_every_fault(value: object, messages: Sequence[str]) -> None:
    with pytest.raises(UserError) as error:
        parse_data_path(value)
    for message in messages:
        assert message in str(error.value)


def test_many_weights_are_added_as_numpy_adds() -> None:
    # A loop adds these ten to 0.9999999999999999; numpy, and so megatron-core, to 1.0.
    assert normalise([0.1] * 10) == (0.1,) * 10
