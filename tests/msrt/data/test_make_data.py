"""Text files turned into a corpus."""

import json
import os
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msmigrate.problems import Exit, UnreadableError, UserError
from msrt.data import BytesTokenizer, IndexedDataset, Made, make_data


def texts_of(prefix: Path) -> list[list[int]]:
    corpus = IndexedDataset(prefix)
    return [corpus.get(index).tolist() for index in range(len(corpus))]


@given(st.text())
def test_bytes_tokenizer_round_trip(text: str) -> None:
    tokenizer = BytesTokenizer()
    ids = tokenizer.encode(text)
    assert ids.tolist() == list(text.encode())
    assert tokenizer.decode([*ids, tokenizer.eod]) == text


def test_bytes_tokenizer_ids() -> None:
    tokenizer = BytesTokenizer()
    assert (tokenizer.eod, tokenizer.vocab_size) == (256, 257)
    assert tokenizer.decode([0xE4, 65]) == "\ufffdA"
    for foreign in (257, -1):
        with pytest.raises(ValueError, match=f"token id {foreign}"):
            tokenizer.decode([foreign])


def test_text_file_is_one_document(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes("ab\r\n\n\n语".encode())
    (tmp_path / "b.TXT").write_bytes(b"c")
    made = make_data([tmp_path / "a.txt", tmp_path / "b.TXT"], tmp_path / "new" / "c", append_eod=True)
    first = [*"ab\r\n\n\n语".encode(), 256]
    assert texts_of(tmp_path / "new" / "c") == [first, [ord("c"), 256]]
    files = (tmp_path / "new" / "c.bin", tmp_path / "new" / "c.idx")
    assert made == Made(documents=2, tokens=len(first) + 2, dtype="uint16", files=files, eod=256)


def test_each_json_line_is_a_document(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    lines = ['\ufeff{"text": "a\\nb"}', "", '{"id": 3, "text": "语"}', '{"text": ""}', '{"text": "c"}']
    (tmp_path / "a.jsonl").write_text("\n".join(lines), encoding="utf-8")
    made = make_data([tmp_path / "a.jsonl"], tmp_path / "c", append_eod=False)
    assert texts_of(tmp_path / "c") == [list(b"a\nb"), list("语".encode()), [ord("c")]]
    assert (made.documents, made.tokens) == (3, 7)
    assert "a.jsonl has 1 line with an empty text; it is left out" in caplog.text


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b'{"text": "a"', "not a JSON object"),
        (b'{"text": 3}', "text is a number, not a string"),
        (b'{"txt": "a"}', r"the keys \['txt'\], without text"),
        (b'{"text": null}', "text is null, not a string"),
        (b'["a"]', "a list, not an object"),
        (b'{"text": "\xff"}', "not a JSON object in UTF-8"),
        (b'{"text": "a\\ud800"}', "half a surrogate pair at character 1"),
        (b"[" * 100_000, "not a JSON object"),
    ],
)
def test_bad_line_is_named(tmp_path: Path, line: bytes, message: str) -> None:
    (tmp_path / "a.jsonl").write_bytes(b'{"text": "fine"}\n\n' + line + b"\n")
    with pytest.raises(UnreadableError, match=rf"a\.jsonl:3: .*{message}") as error:
        make_data([tmp_path / "a.jsonl"], tmp_path / "c", append_eod=True)
    assert error.value.status == Exit.UNREADABLE
    assert [path.name for path in tmp_path.iterdir()] == ["a.jsonl"]


def test_inputs_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "empty.txt").write_bytes(b"")
    (tmp_path / "blank.jsonl").write_text('{"text": ""}\n\n')
    (tmp_path / "latin.txt").write_bytes(b"c\naf\xe9")
    (tmp_path / "a.md").write_text("a")
    (tmp_path / "folder.txt").mkdir()
    for name, message in {
        "folder.txt": "holds no .txt and .jsonl",
        "none.txt": "There is no file",
        "a.md": 'ends in ".md"; text is read from .txt and .jsonl',
        "empty.txt": "holds no text",
        "blank.jsonl": "holds no text",
        "latin.txt": r"latin\.txt:2: not UTF-8: byte 4 is 0xe9",
    }.items():
        with pytest.raises(UnreadableError, match=message) as error:
            make_data([tmp_path / name], tmp_path / "c", append_eod=True)
        assert name in str(error.value)
    assert not list(tmp_path.glob("c.*"))


def test_wrong_use(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a")
    with pytest.raises(UserError, match="No input is given") as error:
        make_data([], tmp_path / "c", append_eod=True)
    assert error.value.status == Exit.USAGE
    with pytest.raises(UserError, match=r"--eod-token </s> does not go with the bytes tokenizer, whose end is 256"):
        make_data([tmp_path / "a.txt"], tmp_path / "c", append_eod=True, eod_token="</s>")
    with pytest.raises(UserError, match=r"drop \.bin"):
        make_data([tmp_path / "a.txt"], tmp_path / "new" / "c.bin", append_eod=True)
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]


def test_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a")
    with pytest.raises(UnreadableError, match=r"folder .* cannot be made"):
        make_data([tmp_path / "a.txt"], tmp_path / "a.txt" / "c", append_eod=True)


@pytest.mark.parametrize("append_eod", [True, False])
def test_batches_join_without_a_seam(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, append_eod: bool) -> None:
    texts = ["ab", "", "语言", "c", "a long one", "d"]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    reports: list[tuple[int, int | None]] = []
    monkeypatch.setattr("msrt.data.text_blocks.SIZE", 10)
    make_data(
        [tmp_path / "a.jsonl"],
        tmp_path / "c",
        append_eod=append_eod,
        report=lambda done, total: reports.append((done, total)),
    )
    assert texts_of(tmp_path / "c") == [[*text.encode(), *[256] * append_eod] for text in texts if text]
    size = (tmp_path / "a.jsonl").stat().st_size
    assert len(reports) == 6
    assert reports == sorted(reports)
    assert reports[-1] == (size, size)


@pytest.mark.parametrize(
    ("prefix", "message"), [("", "is empty: name it"), ("new/", "new/ is a folder"), ("old", "old is a folder: name")]
)
def test_prefix_that_names_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, prefix: str, message: str) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "old").mkdir()
    (tmp_path / "a.txt").write_text("a")
    with pytest.raises(UserError, match=message) as error:
        make_data(["a.txt"], prefix, append_eod=True)
    assert error.value.status == Exit.USAGE
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.txt", "old"]


def test_folder_in_the_place_of_an_output(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a")
    (tmp_path / "c.idx").mkdir()
    with pytest.raises(UnreadableError, match=r"c\.idx cannot be written: it is a folder"):
        make_data([tmp_path / "a.txt"], tmp_path / "c", append_eod=True)


def test_standard_input_is_one_document(tmp_path: Path) -> None:
    code = "import sys; from msrt.data import make_data; print(make_data(['-'], sys.argv[1], append_eod=True).tokens)"
    command = [sys.executable, "-c", code, str(tmp_path / "c")]
    assert subprocess.run(command, input="a\n语".encode(), capture_output=True, check=True).stdout == b"6\n"
    assert texts_of(tmp_path / "c") == [[*"a\n语".encode(), 256]]
    with pytest.raises(UserError, match="- is given more than once"):
        make_data(["-", "-"], tmp_path / "c", append_eod=True)


@pytest.mark.parametrize(("name", "documents"), [("pipe", 1), ("pipe.txt", 1), ("pipe.jsonl", 2)])
def test_pipes_are_read(tmp_path: Path, name: str, documents: int) -> None:
    os.mkfifo(tmp_path / name)
    content = b'{"text": "a"}\n{"text": "b"}\n'
    writer = threading.Thread(target=(tmp_path / name).write_bytes, args=(content,))
    writer.start()
    assert make_data([tmp_path / name], tmp_path / "c", append_eod=False).documents == documents
    writer.join()


def test_what_is_no_text_is_called_by_its_name(tmp_path: Path) -> None:
    (tmp_path / "loop.txt").symlink_to("loop.txt")
    (tmp_path / "plain").write_text("a")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(os.path.relpath(tmp_path / "s.txt"))
    for path, message in {
        "/dev/null": "/dev/null is a device; text is read from files, folders, pipes and standard input",
        str(tmp_path / "s.txt"): "is a socket",
        str(tmp_path / "loop.txt"): "cannot be read: Too many levels of symbolic links",
        str(tmp_path / "plain"): "has no ending; text is read from .txt and .jsonl",
    }.items():
        with pytest.raises(UnreadableError, match=message) as error:
            make_data([path], tmp_path / "c", append_eod=True)
        assert error.value.status == Exit.UNREADABLE


def test_file_that_may_not_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    (tmp_path / "a.txt").write_text("a")
    monkeypatch.setattr("builtins.open", denied)
    with pytest.raises(UnreadableError, match=r"a\.txt cannot be read: Permission denied") as error:
        make_data([tmp_path / "a.txt"], tmp_path / "c", append_eod=True)
    assert error.value.status == Exit.UNREADABLE


@given(st.lists(st.text(min_size=1), min_size=1, max_size=5))
def test_any_text_comes_back(tmp_path_factory: pytest.TempPathFactory, texts: list[str]) -> None:
    folder = tmp_path_factory.mktemp("made")
    (folder / "a.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    make_data([folder / "a.jsonl"], folder / "c", append_eod=True)
    assert [BytesTokenizer().decode(document) for document in texts_of(folder / "c")] == texts
