"""Reading and writing `.bin` + `.idx`."""

import fcntl
import pickle
import struct
import subprocess
import sys
from pathlib import Path
from typing import IO

import numpy as np
import pytest
from corpora import write_corpus

from msmigrate.problems import Exit, UnreadableError, UserError
from msrt.data import IndexedDataset, IndexedWriter, token_dtype

ELEMENT_TYPES = {1: "u1", 2: "i1", 3: "<i2", 4: "<i4", 5: "<i8", 6: "<f8", 7: "<f4", 8: "<u2"}


def files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize(("code", "dtype"), ELEMENT_TYPES.items())
def test_reads_every_element_type(tmp_path: Path, code: int, dtype: str) -> None:
    tokens = np.array([5, 6, 7, 8, 9], dtype)
    size = tokens.dtype.itemsize
    header = b"MMIDIDX\0\0" + struct.pack("<QBQQ", 1, code, 3, 3)
    body = struct.pack("<3i", 2, 0, 3) + struct.pack("<3q", 0, 2 * size, 2 * size) + struct.pack("<3q", 0, 1, 3)
    (tmp_path / "c.idx").write_bytes(header + body)
    (tmp_path / "c.bin").write_bytes(tokens.tobytes())
    corpus = IndexedDataset(tmp_path / "c")
    assert [corpus.get(i).tolist() for i in range(len(corpus))] == [[5, 6], [], [7, 8, 9]]
    assert corpus.get(2, 1, 2).tolist() == [8, 9]
    assert corpus.dtype == np.dtype(dtype)
    assert corpus.document_indices.tolist() == [0, 1, 3]


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int16", "int32", "int64", "uint16"])
def test_written_corpus_reads_back(tmp_path: Path, dtype: str) -> None:
    with IndexedWriter(tmp_path / "c", np.dtype(dtype)) as writer:
        writer.add_document([1, 2, 3])
        writer.add_document([4, 5, 6, 7], lengths=[1, 3])
        writer.add_document([])
    corpus = IndexedDataset(tmp_path / "c")
    assert [corpus.get(i).tolist() for i in range(4)] == [[1, 2, 3], [4], [5, 6, 7], []]
    assert corpus.sequence_lengths.tolist() == [3, 1, 3, 0]
    assert corpus.document_indices.tolist() == [0, 1, 3, 4]
    assert files(tmp_path) == ["c.bin", "c.idx"]


def test_documents_written_together_are_those_written_one_by_one(tmp_path: Path) -> None:
    documents = [[1, 2, 3], [], [4], [5, 6]]
    write_corpus(tmp_path / "one", documents, "uint16")
    with IndexedWriter(tmp_path / "many", np.dtype("uint16")) as writer:
        writer.add_documents(np.array([1, 2, 3]), np.array([3, 0]))
        writer.add_documents(np.array([4, 5, 6]), np.array([1, 2]))
    for suffix in (".bin", ".idx"):
        assert (tmp_path / f"many{suffix}").read_bytes() == (tmp_path / f"one{suffix}").read_bytes()


def test_element_type_follows_the_vocabulary() -> None:
    assert token_dtype(65499) == np.uint16
    assert token_dtype(65500) == np.int32


def test_range_outside_a_sequence(tmp_path: Path) -> None:
    corpus = IndexedDataset(write_corpus(tmp_path / "c", [[1, 2, 3], [4, 5]]))
    with pytest.raises(IndexError, match=r"\[2, 4\) of sequence 0.* only 3"):
        corpus.get(0, 2, 2)


def test_missing_files_are_named(tmp_path: Path) -> None:
    write_corpus(tmp_path / "c", [[1]])
    (tmp_path / "c.bin").unlink()
    with pytest.raises(UnreadableError) as error:
        IndexedDataset(tmp_path / "c")
    assert str(tmp_path / "c.bin") in str(error.value)
    assert str(tmp_path / "c.idx") not in str(error.value)
    assert error.value.status == Exit.UNREADABLE


@pytest.mark.parametrize("suffix", [".bin", ".idx"])
def test_prefix_with_a_suffix_is_refused(tmp_path: Path, suffix: str) -> None:
    write_corpus(tmp_path / "c", [[1]])
    with pytest.raises(UserError, match=rf"drop \{suffix}"):
        IndexedDataset(f"{tmp_path}/c{suffix}")


def test_foreign_index(tmp_path: Path) -> None:
    write_corpus(tmp_path / "c", [[1]])
    (tmp_path / "c.idx").write_bytes(b"TNTIDX\0\0" + bytes(100))
    with pytest.raises(UnreadableError, match=r"not a Megatron index: it starts with b'TNTIDX"):
        IndexedDataset(tmp_path / "c")


@pytest.mark.parametrize(("offset", "value", "message"), [(9, 2, "version 2"), (17, 9, "code 9"), (18, 250, "250 seq")])
def test_damaged_header(tmp_path: Path, offset: int, value: int, message: str) -> None:
    write_corpus(tmp_path / "c", [[1, 2], [3]])
    raw = bytearray((tmp_path / "c.idx").read_bytes())
    raw[offset] = value
    (tmp_path / "c.idx").write_bytes(raw)
    with pytest.raises(UnreadableError, match=message):
        IndexedDataset(tmp_path / "c")


@pytest.mark.parametrize("size", [0, 5, 20, 33, 81])
def test_truncated_index_gives_both_sizes(tmp_path: Path, size: int) -> None:
    write_corpus(tmp_path / "c", [[1, 2], [3]])
    raw = (tmp_path / "c.idx").read_bytes()
    assert len(raw) == 34 + 2 * 12 + 3 * 8
    (tmp_path / "c.idx").write_bytes(raw[:size])
    needed = 34 if size < 34 else len(raw)
    with pytest.raises(UnreadableError, match=rf"truncated: {size} bytes.* {needed}\."):
        IndexedDataset(tmp_path / "c")


@pytest.mark.parametrize("size", [0, 11])
def test_truncated_tokens_give_both_sizes(tmp_path: Path, size: int) -> None:
    write_corpus(tmp_path / "c", [[1, 2], [3]])
    raw = (tmp_path / "c.bin").read_bytes()
    (tmp_path / "c.bin").write_bytes(raw[:size])
    with pytest.raises(UnreadableError, match=rf"has {size} bytes.* byte 12"):
        IndexedDataset(tmp_path / "c")


def test_documents_that_do_not_end_at_the_last_sequence(tmp_path: Path) -> None:
    write_corpus(tmp_path / "c", [[1, 2], [3]])
    raw = (tmp_path / "c.idx").read_bytes()
    (tmp_path / "c.idx").write_bytes(raw[:-8] + struct.pack("<q", 1))
    with pytest.raises(UnreadableError, match="end at sequence 1, but it lists 2"):
        IndexedDataset(tmp_path / "c")


@pytest.mark.parametrize(("boundaries", "at", "value"), [((1, 1, 2), 0, 1), ((0, 3, 2), 2, 2), ((0, -1, 2), 1, -1)])
def test_document_boundaries_that_go_back(
    tmp_path: Path, boundaries: tuple[int, int, int], at: int, value: int
) -> None:
    write_corpus(tmp_path / "c", [[1, 2], [3]])
    raw = (tmp_path / "c.idx").read_bytes()
    (tmp_path / "c.idx").write_bytes(raw[:-24] + struct.pack("<3q", *boundaries))
    with pytest.raises(UnreadableError, match=rf"c\.idx is damaged: document boundary {at} is sequence {value}"):
        IndexedDataset(tmp_path / "c")


@pytest.mark.parametrize("more", [1, 3, 100])
def test_index_that_is_too_long(tmp_path: Path, more: int) -> None:
    write_corpus(tmp_path / "c", [[1, 2], [3]])
    with (tmp_path / "c.idx").open("ab") as file:
        file.write(bytes(more))
    with pytest.raises(UnreadableError, match=rf"damaged: {82 + more} bytes, but 2 sequences and 3 .* take 82"):
        IndexedDataset(tmp_path / "c")


def test_modes_of_a_multimodal_index_are_passed_over(tmp_path: Path) -> None:
    write_corpus(tmp_path / "c", [[1, 2], [3]])
    with (tmp_path / "c.idx").open("ab") as file:
        file.write(bytes(2))
    assert IndexedDataset(tmp_path / "c").get(1).tolist() == [3]


def test_tokens_that_no_index_describes_are_named(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    write_corpus(tmp_path / "c", [[1, 2], [3]])
    assert caplog.messages == []
    with (tmp_path / "c.bin").open("ab") as file:
        file.write(bytes(8))
    IndexedDataset(tmp_path / "c")
    assert "c.bin has 20 bytes, but its .idx describes only 12: the other 8 are never read" in caplog.text


@pytest.mark.parametrize("pointer", [-4, 2**62, 2**63 - 1])
def test_pointer_outside_the_tokens(tmp_path: Path, pointer: int) -> None:
    write_corpus(tmp_path / "c", [[1, 2], [3]])
    raw = bytearray((tmp_path / "c.idx").read_bytes())
    raw[42:50] = struct.pack("<q", pointer)
    (tmp_path / "c.idx").write_bytes(raw)
    with pytest.raises(UnreadableError, match="the two files do not belong together"):
        IndexedDataset(tmp_path / "c")


def test_a_copy_for_another_process_maps_the_same_files(tmp_path: Path) -> None:
    corpus = IndexedDataset(write_corpus(tmp_path / "c", [[1, 2], [3]]))
    sent = pickle.dumps(corpus)
    assert len(sent) < 500
    assert pickle.loads(sent).get(0).tolist() == [1, 2]


def test_negative_length(tmp_path: Path) -> None:
    write_corpus(tmp_path / "c", [[1, 2], [3]])
    raw = bytearray((tmp_path / "c.idx").read_bytes())
    raw[38:42] = struct.pack("<i", -7)
    (tmp_path / "c.idx").write_bytes(raw)
    with pytest.raises(UnreadableError, match="sequence 1 has length -7"):
        IndexedDataset(tmp_path / "c")


def test_failure_while_writing_keeps_the_older_corpus(tmp_path: Path) -> None:
    write_corpus(tmp_path / "c", [[1, 2]])
    before = (tmp_path / "c.bin").read_bytes(), (tmp_path / "c.idx").read_bytes()
    with pytest.raises(UserError, match="From document 1 on"):
        write_corpus(tmp_path / "c", [[9], [65536]], "uint16")
    assert ((tmp_path / "c.bin").read_bytes(), (tmp_path / "c.idx").read_bytes()) == before
    assert files(tmp_path) == ["c.bin", "c.idx"]


def test_full_disk_keeps_the_older_corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(self: Path, data: bytes) -> int:
        raise OSError(28, "No space left on device")

    write_corpus(tmp_path / "c", [[1, 2]])
    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(UnreadableError, match=r"c\.idx cannot be written: No space left"):
        write_corpus(tmp_path / "c", [[3, 4, 5]])
    assert files(tmp_path) == ["c.bin", "c.idx"]
    assert IndexedDataset(tmp_path / "c").get(0).tolist() == [1, 2]


def test_stop_between_the_two_files_leaves_no_mixture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rename = Path.replace

    def rename_but_no_index(self: Path, target: Path) -> Path:
        if target.suffix == ".idx":
            raise OSError(5, "Input/output error")
        return rename(self, target)

    write_corpus(tmp_path / "c", [[1, 2]])
    monkeypatch.setattr(Path, "replace", rename_but_no_index)
    with pytest.raises(UnreadableError, match="Input/output error"):
        write_corpus(tmp_path / "c", [[3, 4, 5]])
    with pytest.raises(UnreadableError, match=r"c\.idx cannot be found"):
        IndexedDataset(tmp_path / "c")


def test_nothing_is_visible_before_close(tmp_path: Path) -> None:
    writer = IndexedWriter(tmp_path / "c", np.dtype("uint16"))
    writer.add_document([1])
    assert not {"c.bin", "c.idx"} & set(files(tmp_path))
    writer.abort()
    assert files(tmp_path) == []


def test_folder_that_does_not_exist(tmp_path: Path) -> None:
    with pytest.raises(UnreadableError, match=r"c\.bin cannot be written"):
        IndexedWriter(tmp_path / "none" / "c", np.dtype("uint16"))


def test_writer_refuses_what_does_not_fit(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="float32"):
        IndexedWriter(tmp_path / "c", np.dtype("float32"))
    writer = IndexedWriter(tmp_path / "c", np.dtype("uint16"))
    writer.add_document([65535])
    with pytest.raises(
        UserError, match=r"From document 1 on there are token ids from 1 to 65536; uint16 holds 0 to 65535"
    ):
        writer.add_document([1, 65536])
    with pytest.raises(UserError, match="from -1 to 3"):
        writer.add_document([-1, 3])
    with pytest.raises(ValueError, match="add up to 2, but there are 3"):
        writer.add_document([1, 2, 3], lengths=[1, 1])
    with pytest.raises(ValueError, match="integers, not float64"):
        writer.add_document(np.array([1.5]))
    writer.close()
    assert IndexedDataset(tmp_path / "c").get(0).tolist() == [65535]


def test_parts_of_a_killed_writer_are_taken_over(tmp_path: Path) -> None:
    code = (
        "import os, sys, numpy; from msrt.data import IndexedWriter\n"
        "writer = IndexedWriter(sys.argv[1], numpy.dtype('uint16'))\n"
        "writer.add_document(range(60_000))\n"
        "os.kill(os.getpid(), 9)"
    )
    assert subprocess.run([sys.executable, "-c", code, str(tmp_path / "c")], check=False).returncode == -9
    assert files(tmp_path) == ["c.bin.part"]
    write_corpus(tmp_path / "c", [[1, 2]], "uint16")
    assert files(tmp_path) == ["c.bin", "c.idx"]
    assert IndexedDataset(tmp_path / "c").tokens.tolist() == [1, 2]


def test_two_writers_of_one_corpus(tmp_path: Path) -> None:
    writer = IndexedWriter(tmp_path / "c", np.dtype("uint16"))
    writer.add_document([1])
    with pytest.raises(UserError, match=r"c\.bin\.part is being written by another process"):
        IndexedWriter(tmp_path / "c", np.dtype("uint16"))
    writer.close()
    assert IndexedDataset(tmp_path / "c").tokens.tolist() == [1]


def test_a_file_finished_by_another_writer_is_not_emptied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = IndexedWriter(tmp_path / "c", np.dtype("uint16"))
    first.add_document([1, 2])
    lock = fcntl.flock

    def finish_then_lock(file: IO[bytes], operation: int) -> None:
        monkeypatch.setattr(fcntl, "flock", lock)
        first.close()
        lock(file, operation)

    monkeypatch.setattr(fcntl, "flock", finish_then_lock)
    second = IndexedWriter(tmp_path / "c", np.dtype("uint16"))
    assert IndexedDataset(tmp_path / "c").tokens.tolist() == [1, 2]
    second.abort()
    assert files(tmp_path) == ["c.bin", "c.idx"]
