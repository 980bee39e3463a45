"""Samples read from a corpus, and the cache of their indices."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from corpora import counting_corpus, write_corpus
from hypothesis import given
from hypothesis import strategies as st

from msmigrate.problems import UserError
from msrt.data import IndexedDataset
from msrt.data.gpt_dataset import GPTDataset
from msrt.data.gpt_index import build_gpt_indices, index_bytes
from msrt.data.sample import GPTConfig

LENGTHS = [5, 1, 9, 3, 0, 7, 12, 2]


@given(
    lengths=st.lists(st.integers(0, 12), min_size=1, max_size=8).filter(lambda lengths: sum(lengths) > 8),
    seq_length=st.integers(1, 7),
    samples=st.none() | st.integers(1, 30),
    extra=st.booleans(),
    split=st.sampled_from(["train", "valid"]),
)
def test_samples_are_cuts_of_the_document_stream(
    tmp_path_factory: pytest.TempPathFactory,
    lengths: list[int],
    seq_length: int,
    samples: int | None,
    extra: bool,
    split: str,
) -> None:
    corpus = counting_corpus(tmp_path_factory.mktemp("corpus") / "c", lengths)
    config = GPTConfig(
        seq_length, add_extra_token=extra, drop_last_partial_validation_sequence=False, seed=samples or 0
    )
    data = GPTDataset(corpus, range(len(corpus)), config, num_samples=samples, split=split)
    stream = np.concatenate([corpus.get(int(number)) for number in data.indices.documents])
    whole, rest = divmod(len(stream) - extra, seq_length)
    assert len(data) == whole + (split == "valid" and rest > 0)
    for place, number in enumerate(data.indices.shuffle.tolist()):
        text = stream[number * seq_length : (number + 1) * seq_length + extra]
        tokens = np.zeros(seq_length, np.int64)
        tokens[: len(text)] = text[:seq_length]
        assert data[place].tokens.tolist() == tokens.tolist()
        labels = np.zeros(seq_length, np.int64)
        labels[: len(text) - 1] = text[1:]
        assert data[place].labels.tolist() == labels.tolist()


def test_only_sequences_of_the_part_are_read(tmp_path: Path) -> None:
    corpus = counting_corpus(tmp_path / "c", [10] * 6, first=100)
    data = GPTDataset(corpus, range(2, 4), GPTConfig(4), num_samples=20)
    seen = {int(token) for index in range(len(data)) for token in data[index].tokens}
    assert seen == set(range(120, 140))


def test_index_out_of_range(tmp_path: Path) -> None:
    data = GPTDataset(counting_corpus(tmp_path / "c", LENGTHS), range(8), GPTConfig(4), num_samples=None)
    for index in (len(data), -1):
        with pytest.raises(IndexError, match=f"sample {index}"):
            data[index]


def test_part_too_small_for_a_sample(tmp_path: Path) -> None:
    corpus = counting_corpus(tmp_path / "c", [5, 3])
    with pytest.raises(UserError, match="has 8 tokens, too few for one sample of 9"):
        GPTDataset(corpus, range(2), GPTConfig(8), num_samples=None)
    with pytest.raises(UserError, match="sequences 1 to 1 of 2 hold no token"):
        GPTDataset(corpus, range(1, 1), GPTConfig(2), num_samples=None)


def test_float_corpus_is_refused(tmp_path: Path) -> None:
    prefix = write_corpus(tmp_path / "c", [[1, 2, 3]])
    raw = bytearray((tmp_path / "c.idx").read_bytes())
    raw[17] = 7
    (tmp_path / "c.idx").write_bytes(raw)
    with pytest.raises(UserError, match="holds float32 numbers, not token ids"):
        GPTDataset(IndexedDataset(prefix), range(1), GPTConfig(1), num_samples=None)


def cached(
    corpus: IndexedDataset, folder: Path, *, samples: int = 20, seed: int = 1, seq_length: int = 4
) -> GPTDataset:
    config = GPTConfig(seq_length, seed=seed)
    return GPTDataset(corpus, range(len(corpus)), config, num_samples=samples, cache_dir=folder)


def test_cache_gives_the_same_indices_without_building(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    corpus = counting_corpus(tmp_path / "c", LENGTHS)
    first = cached(corpus, tmp_path / "cache")
    assert len(list((tmp_path / "cache").iterdir())) == 1
    monkeypatch.setattr(GPTDataset, "_build", lambda *_: pytest.fail("built again"))
    second = cached(corpus, tmp_path / "cache")
    for name in ("documents", "samples", "shuffle"):
        one, other = getattr(first.indices, name), getattr(second.indices, name)
        assert one.dtype == other.dtype
        assert np.array_equal(one, other)


def test_cache_is_keyed_by_settings_and_corpus(tmp_path: Path) -> None:
    corpus, folder = counting_corpus(tmp_path / "c", LENGTHS), tmp_path / "cache"
    cached(corpus, folder)
    for changed in ({"samples": 21}, {"seed": 2}, {"seq_length": 5}):
        before = len(list(folder.iterdir()))
        cached(corpus, folder, **changed)
        assert len(list(folder.iterdir())) == before + 1
    cached(counting_corpus(tmp_path / "d", [*LENGTHS[1:], LENGTHS[0]]), folder)
    assert len(list(folder.iterdir())) == 5


def test_damaged_cache_is_built_again(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    corpus, folder = counting_corpus(tmp_path / "c", LENGTHS), tmp_path / "cache"
    cached(corpus, folder)
    (stored,) = folder.iterdir()
    whole = stored.read_bytes()
    stored.write_bytes(whole[:100])
    cached(corpus, folder)
    assert re.search(rf"{stored.name} is damaged .*built again", caplog.text)
    assert len(stored.read_bytes()) == len(whole)


def test_cache_folder_that_cannot_be_made(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "file").write_text("")
    assert len(cached(counting_corpus(tmp_path / "c", LENGTHS), tmp_path / "file" / "cache")) >= 20
    assert "cannot be written: Not a directory. The run goes on without it" in caplog.text


def test_full_disk_is_a_warning_and_leaves_nothing(tmp_path: Path) -> None:
    counting_corpus(tmp_path / "c", LENGTHS)
    code = (
        "import resource, sys; from pathlib import Path\n"
        "from msrt.data import IndexedDataset; from msrt.data.gpt_dataset import GPTDataset\n"
        "from msrt.data.sample import GPTConfig\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))\n"  # each file may have 100 bytes
        "corpus = IndexedDataset(sys.argv[1] + '/c')\n"
        "data = GPTDataset(corpus, range(8), GPTConfig(4), num_samples=20, cache_dir=Path(sys.argv[1], 'cache'))\n"
        "print(data[19].tokens.shape)"
    )
    run = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True)
    assert run.stdout == "(4,)\n"
    (line,) = run.stderr.splitlines()
    assert re.search(r"gpt-index-\w+\.arrays cannot be written: File too large\. The run goes on", line)
    assert list((tmp_path / "cache").iterdir()) == []


def test_large_indices_are_announced_and_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    corpus = counting_corpus(tmp_path / "c", LENGTHS)
    monkeypatch.setattr("msrt.data.gpt_dataset.MAX_BYTES", 1000)
    monkeypatch.setattr("msrt.data.index_cache.MAX_BYTES", 1000)
    cached(corpus, tmp_path / "cache", samples=20)
    assert caplog.messages == []
    assert len(list((tmp_path / "cache").iterdir())) == 1
    cached(corpus, tmp_path / "cache", samples=200)
    assert re.search(r"Putting 200 samples of .*c in order needs .* GiB .*too large to be kept", caplog.text)
    assert len(list((tmp_path / "cache").iterdir())) == 1


def test_more_samples_than_memory_holds(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"needs [\d.]+ GiB of memory, and this machine has [\d.]+ GiB\. Lower .*sizes"):
        cached(counting_corpus(tmp_path / "c", LENGTHS), tmp_path / "cache", samples=10**15)


@given(
    lengths=st.lists(st.integers(1, 40), min_size=1, max_size=8),
    samples=st.none() | st.integers(1, 300),
    seq_length=st.integers(1, 9),
)
def test_announced_size_is_the_size(lengths: list[int], samples: int | None, seq_length: int) -> None:
    sizes, part = np.array(lengths, np.int32), np.arange(len(lengths), dtype=np.int32)
    built = build_gpt_indices(sizes, part, num_samples=samples, seq_length=seq_length, extra=1, seed=1)
    announced = index_bytes(sum(lengths), len(lengths), samples, seq_length)
    # One token more can take one more epoch, and one sample less come out.
    assert abs(built.nbytes - announced) <= 4 * len(lengths) + 12 * (sum(lengths) // seq_length + 2)
