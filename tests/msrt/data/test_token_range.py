"""Tokens of corpora against the vocabulary."""

import os
from pathlib import Path

import numpy as np
import pytest
from corpora import write_corpus
from hypothesis import given
from hypothesis import strategies as st

from msmigrate.problems import UserError
from msrt.data import IndexedDataset
from msrt.data.token_range import TokenRange, check_tokens, token_range


@given(st.lists(st.integers(-(2**31), 2**31 - 1), min_size=1, max_size=30), st.integers(1, 7))
def test_range_and_first_positions(tmp_path_factory: pytest.TempPathFactory, tokens: list[int], chunk: int) -> None:
    corpus = IndexedDataset(write_corpus(tmp_path_factory.mktemp("range") / "c", [tokens]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("msrt.data.token_range.CHUNK", chunk)
        found = token_range(corpus)
    low, high = min(tokens), max(tokens)
    assert found == TokenRange(low, tokens.index(low), high, tokens.index(high))


def test_every_fault_of_every_corpus_is_named(tmp_path: Path) -> None:
    write_corpus(tmp_path / "good", [[0, 99]])
    write_corpus(tmp_path / "large", [[1, 2], [3, 100, 250]], "uint16")
    write_corpus(tmp_path / "negative", [[7, -1], [-5, 100]])
    prefixes = [str(tmp_path / name) for name in ("good", "large", "negative")]
    check_tokens(prefixes[:1], 100, None)
    with pytest.raises(UserError) as error:
        check_tokens(prefixes, 100, None)
    for part in (
        "large.bin holds the token 250 (position 4, counted in tokens from 0), but model.vocab_size 100 has",
        "set model.vocab_size to 251 or more",
        "negative.bin holds the token 100 (position 3,",
        "negative.bin holds the token -5 (position 2,",
    ):
        assert part in str(error.value)
    assert "good" not in str(error.value)


def test_bytes_behind_the_last_sequence_are_no_tokens(tmp_path: Path) -> None:
    prefix = write_corpus(tmp_path / "c", [[1, 2]])
    with (tmp_path / "c.bin").open("ab") as file:
        file.write(np.int32(500).tobytes() + b"x")
    check_tokens([str(prefix)], 3, None)


def test_corpus_without_tokens(tmp_path: Path) -> None:
    check_tokens([str(write_corpus(tmp_path / "c", [[]]))], 1, None)


def test_a_corpus_is_read_once_until_it_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    prefix, cache = str(write_corpus(tmp_path / "c", [[1, 2, 3]])), tmp_path / "cache"
    found = token_range(IndexedDataset(prefix), cache)
    with monkeypatch.context() as patch:
        patch.setattr("msrt.data.token_range._scan", lambda _: pytest.fail("read again"))
        assert token_range(IndexedDataset(prefix), cache) == found
    write_corpus(tmp_path / "c", [[1, 9, 3]])
    os.utime(tmp_path / "c.bin", ns=(1, 1))
    assert token_range(IndexedDataset(prefix), cache) == TokenRange(1, 0, 9, 1)


@pytest.mark.parametrize("content", [b"", b"[1]", b'{"low": 1}', b'{"low": null}', b"\xff"])
def test_damaged_note_is_made_again(tmp_path: Path, content: bytes, caplog: pytest.LogCaptureFixture) -> None:
    prefix, cache = str(write_corpus(tmp_path / "c", [[1, 2, 3]])), tmp_path / "cache"
    found = token_range(IndexedDataset(prefix), cache)
    (note,) = cache.iterdir()
    note.write_bytes(content)
    assert token_range(IndexedDataset(prefix), cache) == found
    assert f"{note.name} is damaged" in caplog.text
    assert token_range(IndexedDataset(prefix), cache) == found
    assert len(caplog.messages) == 1
