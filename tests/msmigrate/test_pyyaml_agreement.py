"""Texts mean here what they mean to PyYAML, the real readers' parser, and what is carried stays as it was typed."""

import datetime
import math
from typing import Any

import pytest
import yaml
from graph_text import converted, document, edited
from graph_trees import graph_files
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from msmigrate.problems import UnreadableError
from msmigrate.yaml.document import value_of
from msmigrate.yaml.scalars import spell

INTEGERS = st.sampled_from(
    ["0", "-0", "+12", "0b1011", "-0b1", "0x1f", "+0XF", "0xFF_FF", "017", "-0_7", "08", "0o17", "1_000", "_1", "1__0",
     "190:20:30", "-1:30", "1:99", "12345678901234567890", "0b", "0x", "0b2", "00"]
)  # fmt: skip
FLOATS = st.sampled_from(
    ["1.", "1.5", "-.5", ".5", "+.5", "1e5", "1.e5", "1.e+5", "1.0E-07", "1_0.2_5", "6.8523015e+5", ".inf", "-.Inf",
     ".nan", ".NaN", "+.INF", "1.e400", "1.0e+400", "190:20:30.15", "1:2.", "._", ".e+1", "1e-5", "1.2.3", "nan",
     "Infinity"]
)  # fmt: skip
WORDS = st.sampled_from(
    ["yes", "Yes", "yEs", "no", "on", "OFF", "y", "N", "true", "TRUE", "tRUE", "~", "null", "Null", "nULL", "", "=",
     "<<",
     "2026-12-01", "2026-1-1", "2026-13-01", "2026-12-01 10:20:30.5 +8", "2026-12-01t10:20:30Z", "24:00", "-", "a-b",
     "?x", ":x", "a:b", "a#b", "%x", "@x", "`x`", "语料", "\U0001f600", "!x", "*x", "a b", "[x", "x]", "{x", "- x"]
)  # fmt: skip
TAGS = st.sampled_from(["", "", "", "", "!!str ", "!!int ", "!!float ", "!!bool ", "!!null ", "! ", "&a "])
CONTENT = st.text(st.sampled_from("ab \t#:'\"\\,[]{}|>-语\U0001f600\xa0n0x41"), max_size=8)


def quoted(content: str, quote: str) -> str:
    """A quoted scalar; in double quotes a backslash starts an escape, valid or not."""
    return f"'{content.replace(chr(39), chr(39) * 2)}'" if quote == "'" else '"' + content.replace('"', '\\"') + '"'


def block(content: list[str], header: str) -> str:
    """A block scalar; blank lines among its lines."""
    return header + "".join(f"\n    {line}" if line.strip() else "\n" for line in content)


LINES = st.lists(st.text("ab #:-语'\"\t", max_size=5), min_size=1, max_size=4).filter(lambda lines: lines[0].strip())
SCALARS = st.one_of(
    st.tuples(TAGS, st.one_of(INTEGERS, FLOATS, WORDS, CONTENT)).map("".join),
    st.builds(quoted, CONTENT, st.sampled_from("'\"")),
    st.builds(block, LINES, st.sampled_from(["|", ">", "|-", ">-", "|+", ">+", "|4  # c"])),
    st.tuples(WORDS, WORDS).map("\n    ".join),
)


class DatesAsText(yaml.SafeLoader):
    """PyYAML with dates read, and kept as their text: no key of these files takes a date."""


def date_text(loader: Any, node: yaml.ScalarNode) -> str:
    found = loader.construct_yaml_timestamp(node)
    assert isinstance(found, datetime.date)
    return str(node.value)


DatesAsText.add_constructor("tag:yaml.org,2002:timestamp", date_text)


def typed(value: object) -> object:
    """A value that compares by type too, and NaN equal to itself; keys as text."""
    if isinstance(value, dict):
        return {str(key): typed(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [typed(inner) for inner in value]
    return type(value), "nan" if isinstance(value, float) and math.isnan(value) else value


def by_pyyaml(text: str) -> object | None:
    """What PyYAML reads; None where it stops, with an error of its own or one of Python's."""
    try:
        return typed(yaml.load(text, Loader=DatesAsText))
    except (yaml.YAMLError, ValueError, LookupError):
        return None


def by_us(text: str) -> object | None:
    try:
        return typed(value_of(document(text).root))
    except UnreadableError:
        return None


@settings(max_examples=600, deadline=None)
@given(SCALARS, st.sampled_from(["key: {}\n", "key: {}", "key: {}  # note\n", "key:\n  - {}\n", "key: [{}, 1]\n"]))
@example("! 1", "key: {}\n")
@example("!!int x", "key: {}\n")
@example("!!null 5", "key: {}\n")
@example("<<", "key: [{}, 1]\n")
@example("1,\t2", "key: [{}, 1]\n")
def test_a_scalar_in_any_style(scalar: str, frame: str) -> None:
    text = frame.format(scalar)
    expected, found = by_pyyaml(text), by_us(text)
    assert found == expected, text


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a: &x 1\nb: &x 2\n", "&x stands twice"),
        ("a: &x. 1\n", "letters, digits"),
        ("a: =\n", "plain `=`"),
        ("a: <<\n", "plain `<<`"),
        ("a: [1,\t2]\n", "a tab stands between the brackets"),
        ("a: !!bool 3\n", "no value"),
    ],
)
def test_what_stops_the_reader_is_refused_with_its_reason(text: str, words: str) -> None:
    assert by_pyyaml(text) is None
    with pytest.raises(UnreadableError, match=words) as caught:
        document(text)
    assert caught.value.line is not None


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(graph_files())
def test_a_whole_graph_file(text: str) -> None:
    expected = by_pyyaml(text)
    assert expected is not None
    assert by_us(text) == expected


@settings(max_examples=200, deadline=None)
@given(
    st.recursive(
        st.one_of(
            st.none(), st.booleans(), st.integers(), st.floats(), CONTENT, INTEGERS, FLOATS, WORDS, st.text(max_size=6)
        ),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(CONTENT | WORDS, inner, max_size=3),
        max_leaves=6,
    )
)
def test_what_is_spelt_is_read_back(value: Any) -> None:
    for whole in (value, [0, value], {"a": value, "b": [value]}):
        read = yaml.safe_load(f"key: {spell(whole)}  # note\n")["key"]
        assert typed(read) == typed(whole)


COMMENTS = st.sampled_from(["", "  # why", "  #\ttab", "      # 语料: a 'b'", " #"])
ABOVE = st.lists(st.sampled_from(["# above", "# 上面", "#no blank", "# a: 1  # twice"]), max_size=2)
CARRIED: dict[str, tuple[str, str, list[str]]] = {
    "seed": ("seed: 7", "seed", ["7", "0x10", "1_000", "+3"]),
    "eps": ("  eps: 1.e-8", "eps", ["1.e-8", "1.0E-08", "0.00000001", ".5"]),
    "betas": ("  betas: [0.9, 0.98]", "betas",
              ["[0.9, 0.98]", "[ .9,0.98 ]", "[\n    0.9,  # one\n    0.98,\n  ]"]),
    "rate": ("  learning_rate: 4.e-4", "learning_rate", ["4.e-4", "0.000_4", "4.0e-04"]),
    "split": ('      split: "1, 0, 0"', "split",
              ['"1, 0, 0"', "'1, 0, 0'", "1, 0, 0", '"1,\\x20\\u0030, 0"']),
    "paths": ("      data_path: ['1', \"./tokens\"]", "data_path",
              ["['1', \"./tokens\"]", "[ '1','./语料 #x' ]",
               "\n        - '1'   # weight\n        # between\n        - ./语料"]),
    "batch": ("  batch_size: 2", "local_batch_size", ["2", "0b10", "02"]),
    "model_parallel": ("  model_parallel: 2", "tensor_parallel", ["2", "0x2"]),
    "hidden": ("    hidden_size: 64", "hidden_size", ["64", "0x40", "1:4"]),
    "prefix": ('    prefix: "run"', "prefix", ['"run"', "'it''s'", "run", '"\\u8bed # x"']),
}  # fmt: skip


@st.composite
def carried_values(draw: st.DrawFn) -> dict[str, tuple[str, list[str], str]]:
    """For some keys: a spelling, comment lines above, and what stands behind it."""
    chosen = draw(st.lists(st.sampled_from(sorted(CARRIED)), min_size=1, max_size=5, unique=True))
    return {name: (draw(st.sampled_from(CARRIED[name][2])), draw(ABOVE), draw(COMMENTS)) for name in chosen}


def gap(spelling: str) -> str:
    return "" if spelling.startswith("\n") else " "


@settings(max_examples=40, deadline=None)
@given(carried_values())
def test_carried_text_is_the_sources_own(values: dict[str, tuple[str, list[str], str]]) -> None:
    changes = []
    for name, (spelling, above, behind) in values.items():
        line = CARRIED[name][0]
        key = line.partition(":")[0]
        indent = " " * (len(key) - len(key.lstrip()))
        head = "".join(f"{indent}{comment}\n" for comment in above)
        changes.append((f"{line}\n", f"{head}{key}:{gap(spelling)}{spelling}{behind}\n"))
    text = converted(edited(*changes)).text
    assert text is not None
    stripped = [line.strip(" ") for line in text.splitlines()]
    for name, (spelling, above, behind) in values.items():
        carried = f"{CARRIED[name][1]}:{gap(spelling)}{spelling}{behind}"
        expected = [*above, *(line.strip(" ") for line in carried.split("\n"))]
        places = [start for start in range(len(stripped)) if stripped[start : start + len(expected)] == expected]
        assert len(places) == 1, (expected, text)
