"""Blends of several corpora."""

import math
from collections import Counter
from pathlib import Path

import pytest
from corpora import counting_corpus
from hypothesis import given
from hypothesis import strategies as st

from msmigrate.problems import UserError
from msrt.data.blend import BlendedDataset, BlendRule, blend_by_weight, build_part
from msrt.data.data_path import normalise, parse_data_path
from msrt.data.gpt_dataset import GPTDataset
from msrt.data.sample import GPTConfig
from msrt.data.split import parse_split


@given(st.lists(st.floats(0.01, 10), min_size=1, max_size=5), st.integers(1, 80))
def test_each_sample_goes_to_the_member_furthest_behind(weights: list[float], size: int) -> None:
    shares = normalise(weights)
    found = blend_by_weight(weights, size)
    taken: Counter[int] = Counter()
    for place in range(size):
        behind = [share * max(place, 1) - taken[member] for member, share in enumerate(shares)]
        member = behind.index(max(behind))
        assert (found.members[place], found.samples[place]) == (member, taken[member])
        taken[member] += 1


@given(st.lists(st.integers(1, 60), min_size=1, max_size=5))
def test_lengths_as_weights_use_every_sample_once(sizes: list[int]) -> None:
    found = blend_by_weight(sizes, sum(sizes))
    pairs = list(zip(found.members.tolist(), found.samples.tolist(), strict=True))
    assert sorted(pairs) == [(member, sample) for member, size in enumerate(sizes) for sample in range(size)]


def two_corpora(folder: Path) -> tuple[Path, Path]:
    counting_corpus(folder / "a", [10] * 10, first=1000)
    counting_corpus(folder / "b", [10] * 10, first=2000)
    return folder / "a", folder / "b"


def test_weighted_blend_asks_members_for_their_share_and_a_surplus(tmp_path: Path) -> None:
    a, b = two_corpora(tmp_path)
    data = build_part(parse_data_path([0.3, str(a), 0.7, str(b)]), parse_split("1"), "train", 205, GPTConfig(4))
    assert isinstance(data, BlendedDataset)
    shares = [math.ceil(205 * 0.3), math.ceil(205 * 0.7)]
    assert len(data) == sum(shares)
    assert (
        [member.num_samples for member in data.members] == [math.ceil(share * 1.005) for share in shares] == [63, 145]
    )
    origin = Counter(int(data[index].tokens[0]) // 1000 for index in range(len(data)))
    assert abs(origin[1] - 0.3 * len(data)) <= 1


# Recorded from MindFormers 2.0.0 and 2.1.0 (_get_size_per_split_per_dataset); a blend there is as long as their sum.
@pytest.mark.parametrize(
    ("weights", "size", "members"),
    [
        ((1.0,), 400, [402]),
        ((0.3, 0.7), 205, [62, 145]),
        ((0.2, 0.3, 0.5), 100, [21, 31, 51]),
        ((0.01, 0.99), 150, [2, 150]),
    ],
)
def test_mindformers_puts_the_surplus_into_the_length(
    weights: tuple[float, ...], size: int, members: list[int]
) -> None:
    assert BlendRule.MINDFORMERS.members(weights, size) == members
    assert BlendRule.MINDFORMERS.length(weights, size) == sum(members)
    assert BlendRule.MEGATRON.length(weights, size) == sum(math.ceil(size * weight) for weight in weights)


def test_rules_differ_in_length_and_agree_on_the_samples_before(tmp_path: Path) -> None:
    a, b = two_corpora(tmp_path)
    megatron, mindformers = (
        build_part(parse_data_path([1, str(a), 1, str(b)]), parse_split("1"), "train", 40, GPTConfig(4), rule=rule)
        for rule in BlendRule
    )
    assert megatron is not None
    assert mindformers is not None
    assert (len(megatron), len(mindformers)) == (40, 42)
    for index in range(40):
        assert megatron[index].tokens.tolist() == mindformers[index].tokens.tolist()


def test_one_corpus_with_and_without_a_weight(tmp_path: Path) -> None:
    a, _ = two_corpora(tmp_path)
    plain = build_part(parse_data_path(str(a)), parse_split("1"), "train", 5, GPTConfig(4))
    weighted = build_part(parse_data_path(["1", str(a)]), parse_split("1"), "train", 5, GPTConfig(4))
    assert isinstance(plain, GPTDataset)
    assert isinstance(weighted, BlendedDataset)
    assert (len(plain), len(weighted)) == (24, 5)


def test_prefixes_without_weights_are_used_up(tmp_path: Path) -> None:
    a, b = two_corpora(tmp_path)
    whole = build_part(parse_data_path([str(a), str(b)]), parse_split("1"), "train", None, GPTConfig(4))
    some = build_part(parse_data_path([str(a), str(b)]), parse_split("1"), "train", 7, GPTConfig(4))
    assert whole is not None
    assert some is not None
    assert (len(whole), len(some)) == (48, 7)


def test_part_that_the_split_leaves_out(tmp_path: Path) -> None:
    a, _ = two_corpora(tmp_path)
    assert build_part(parse_data_path(str(a)), parse_split("1,0,0"), "valid", 5, GPTConfig(4)) is None


def test_weights_need_a_size(tmp_path: Path) -> None:
    a, _ = two_corpora(tmp_path)
    with pytest.raises(UserError, match="needs a number of samples"):
        build_part(parse_data_path(["1", str(a)]), parse_split("1"), "train", None, GPTConfig(4))


def test_member_with_too_few_samples(tmp_path: Path) -> None:
    member = GPTDataset(counting_corpus(tmp_path / "a", [9]), range(1), GPTConfig(4), num_samples=None)
    with pytest.raises(UserError, match=r"draws 3 samples from .*a, which gives only 2"):
        BlendedDataset([member], blend_by_weight([1.0], 3))


def test_index_out_of_range(tmp_path: Path) -> None:
    member = GPTDataset(counting_corpus(tmp_path / "a", [9]), range(1), GPTConfig(4), num_samples=None)
    data = BlendedDataset([member], blend_by_weight([1.0], 2))
    for index in (2, -1):
        with pytest.raises(IndexError, match=f"sample {index} of a blend of 2"):
            data[index]
