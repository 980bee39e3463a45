"""Parsing: values as PyYAML reads them, places, and clear errors."""

from pathlib import Path

import pytest
import yaml
from graph_text import GRAPH, document
from hypothesis import given
from hypothesis import strategies as st

from msmigrate.problems import UnreadableError
from msmigrate.yaml.document import parse, value_of
from msmigrate.yaml.nodes import dotted, leaves
from msmigrate.yaml.source import read_source, source_from_bytes, write_whole


def refusal(text: str | bytes) -> str:
    data = text if isinstance(text, bytes) else text.encode()
    with pytest.raises(UnreadableError) as caught:
        parse(source_from_bytes("f.yaml", data))
    return str(caught.value)


def test_values_are_pyyamls() -> None:
    assert value_of(document(GRAPH).root) == yaml.safe_load(GRAPH)


CHARACTERS = st.characters(codec="utf-8", exclude_characters="\x85\u2028\u2029")
PLAIN = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(CHARACTERS, max_size=8))
TREES = st.recursive(
    PLAIN,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(CHARACTERS, min_size=1, max_size=4), inner, max_size=3)
    ),
    max_leaves=12,
)


@given(st.dictionaries(st.text(CHARACTERS, min_size=1, max_size=4), TREES, min_size=1, max_size=4), st.booleans())
def test_generated_documents_are_read_as_pyyaml_reads_them(value: dict[str, object], flow: bool) -> None:
    text = yaml.safe_dump(value, default_flow_style=flow, allow_unicode=True)
    assert value_of(document(text).root) == yaml.safe_load(text)


def test_leaves_of_lists_aliases_and_merges() -> None:
    text = "a: &x {b: 1, c: []}\nd: *x\ne: [[1, 2], 3]\nf:\n  - g: 1\n    h: null\n  - i\nk:\n  <<: *x\n"
    found = [dotted(leaf.path) for leaf in leaves(document(text).root)]
    assert found == ["a.b", "a.c", "d", "e", "f[0].g", "f[0].h", "f[1]", "k.<<"]


def test_a_duplicate_key_names_both_lines() -> None:
    message = refusal("a:\n  b: 1\n  c: 2\n  b: 3\n")
    assert "f.yaml:4:3" in message
    assert "line 2" in message
    assert "line 4" in message


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("# nothing\n", "empty"),
        ("", "empty"),
        ("- 1\n", "top level"),
        ("a: 1\n---\nb: 2\n", "second YAML document"),
        ("a: *x\n", "no anchor &x"),
        ("a: &x [*x]\n", "inside its own anchor"),
        ("a: !!python/none 1\n", "tag"),
        ("a:\n\tb: 1\n", "f.yaml:2"),
        ("a: [1\nb: 2\n", "f.yaml:"),
        ("? [1]\n: 2\n", "a key must be one word"),
        ("a: 0b__\n", "no value"),
    ],
)
def test_faults_are_named(text: str, expected: str) -> None:
    assert expected in refusal(text)


def test_depth_counts_mappings_as_the_readers_do() -> None:
    def nested(depth: int) -> str:
        return "".join("  " * level + "k:\n" for level in range(depth - 1)) + "  " * (depth - 1) + "k: 1\n"

    assert parse(source_from_bytes("f.yaml", nested(10).encode()))
    assert "more than 10 mappings" in refusal(nested(11))
    assert "levels" in refusal("a: " + "[" * 100 + "]" * 100)


def test_an_alias_bomb_is_bounded() -> None:
    lines = ["a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
    assert "aliases" in refusal("\n".join(lines) + "\n")


def test_bytes_that_are_not_utf8_are_named() -> None:
    message = refusal(b"a: 1 # " + "数".encode("gbk") + b"\n")
    assert "0xca" in message
    assert "f.yaml:1:8" in message


def test_large_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "big.yaml"
    path.write_bytes(b"a: 1\n" * 500_000)
    with pytest.raises(UnreadableError, match="larger than 2 MB"):
        read_source(str(path))


def test_a_missing_file_and_a_folder(tmp_path: Path) -> None:
    with pytest.raises(UnreadableError, match="No such file"):
        read_source(str(tmp_path / "none.yaml"))
    with pytest.raises(UnreadableError, match="folder"):
        read_source(str(tmp_path))


def test_a_failed_write_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "out.yaml"
    path.write_text("old")
    with pytest.raises(UnreadableError):
        write_whole(str(path), b"new", backup=str(tmp_path / "no" / "folder"))
    assert path.read_text() == "old"
    assert [child.name for child in tmp_path.iterdir()] == ["out.yaml"]
    write_whole(str(path), b"new", backup=str(tmp_path / "out.yaml.bak"))
    assert (path.read_text(), (tmp_path / "out.yaml.bak").read_text()) == ("new", "old")


def test_the_number_of_keys_is_bounded_and_named_as_such() -> None:
    message = refusal("".join(f"k{number}: 1\n" for number in range(10_001)))
    assert "f.yaml:10000:" in message
    assert "20000 keys and values" in message
    assert "aliases" not in message


@pytest.mark.parametrize("text", ["a: 1\nb: x{}y\n", 'a: 1\nb: "{}"\n', "a: 1\nb: # {}\n  1\n"])
@pytest.mark.parametrize(("character", "name"), [("\0", "U+0000 (NUL)"), ("\x1b", "U+001B"), ("\ufffe", "U+FFFE")])
def test_control_characters_have_a_place(text: str, character: str, name: str) -> None:
    column = text.split("\n")[1].index("{") + 1
    assert refusal(text.format(character)).startswith(f"f.yaml:2:{column}: character {name} cannot be part")
