"""Scalars agree with PyYAML, the real readers' parser, on generated texts."""

import datetime
import math
from typing import Any

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from msmigrate.yaml.scalars import Value, is_unsafe_float, resolve_plain, spell, spell_float

NUMBERISH = st.text(alphabet="0123456789+-._eExXobaf:nNiI", min_size=1, max_size=9)
WORDS = st.sampled_from(
    ["yes", "No", "on", "OFF", "true", "False", "null", "~", "Null", "y", "n", ".inf", "-.INF", ".NaN"]
)


def pyyaml_plain(text: str) -> object:
    loader: Any = yaml.SafeLoader("")
    tag = loader.resolve(yaml.ScalarNode, text, (True, False))
    return loader.construct_object(yaml.ScalarNode(tag, text))


def same(left: object, right: object) -> bool:
    if isinstance(left, float) and isinstance(right, float) and math.isnan(left):
        return math.isnan(right)
    return type(left) is type(right) and left == right


@given(NUMBERISH | WORDS)
@example("1e-5")
@example("1.e-8")
@example("0o7")
@example("1_000")
@example("190:20:30.5")
@example("-0x1F")
def test_plain_scalars_mean_what_pyyaml_reads(text: str) -> None:
    try:
        expected = pyyaml_plain(text)
    except (yaml.constructor.ConstructorError, OverflowError):
        return
    except ValueError:
        with pytest.raises(ValueError):
            resolve_plain(text)
        return
    if isinstance(expected, datetime.date):
        expected = text
    assert same(resolve_plain(text), expected)


VALUES: st.SearchStrategy[Value] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(min_size=1, max_size=5), inner, max_size=3),
    max_leaves=6,
)


@given(VALUES)
@example("1e-5")
@example("0-3")
@example("a: b")
@example(" #x")
@example("- x")
@example("它's 好")
@example("2026-12-01")
@example("=")
@example("\ud7ff\x85")
def test_a_spelled_value_is_read_back(value: Value) -> None:
    text = f"key: {spell(value)}\n"
    assert same(yaml.safe_load(text)["key"], value), text


@given(st.floats(allow_nan=False))
def test_a_float_is_a_float_for_yaml_1_1_and_1_2(value: float) -> None:
    text = spell_float(value)
    assert same(pyyaml_plain(text), value)
    if not math.isinf(value):
        assert "." in text.partition("e")[0]


@pytest.mark.parametrize(
    ("text", "unsafe"),
    [
        ("1e-5", True),
        ("1E-2", True),
        ("1.5e3", True),
        ("1.e-8", False),
        ("1.0e-05", False),
        ("10", False),
        ("e5", False),
    ],
)
def test_numbers_that_pyyaml_takes_for_text(text: str, unsafe: bool) -> None:
    assert is_unsafe_float(text) is unsafe
