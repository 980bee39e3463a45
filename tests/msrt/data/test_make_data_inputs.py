"""Folders, compressed files, several processes and existing outputs of make-data."""

import gzip
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from corpora import documents_of
from processes import living, wait_until

from msmigrate.problems import Exit, UnreadableError, UserError
from msrt.data import make_data
from msrt.data.workers import WorkerProcesses


def test_a_folder_is_its_text_files_sorted_by_path(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    folder = tmp_path / "texts"
    (folder / "b").mkdir(parents=True)
    (folder / ".git").mkdir()
    for name, content in {
        "c.txt": "3",
        "a.TXT": "1",
        "b/x.jsonl": '{"text": "2"}',
        "none.txt": "",
        "notes.md": "?",
        ".hidden.txt": "4",
        ".git/x.txt": "5",
    }.items():
        (folder / name).write_text(content)
    made = make_data([folder], tmp_path / "c", append_eod=False)
    assert documents_of(tmp_path / "c") == [[ord("1")], [ord("2")], [ord("3")]]
    assert made.eod is None
    assert "1 empty file in the given folders left out" in caplog.text


def test_folder_without_text(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(UnreadableError, match=r"The folder .*empty holds no \.txt and \.jsonl \(also \.gz\) file"):
        make_data([tmp_path / "empty"], tmp_path / "c", append_eod=True)
    (tmp_path / "empty" / "a.txt").write_text("")
    with pytest.raises(UnreadableError, match="The inputs hold no text"):
        make_data([tmp_path / "empty"], tmp_path / "c", append_eod=True)
    assert not list(tmp_path.glob("c.*"))


def test_gzipped_files(tmp_path: Path) -> None:
    (tmp_path / "a.txt.gz").write_bytes(gzip.compress("语".encode()))
    lines = "".join(json.dumps({"text": str(number)}) + "\n" for number in range(2000))
    (tmp_path / "b.jsonl.gz").write_bytes(gzip.compress(lines.encode()))
    reports: list[tuple[int, int | None]] = []
    make_data(
        [tmp_path / "a.txt.gz", tmp_path / "b.jsonl.gz"],
        tmp_path / "c",
        append_eod=False,
        report=lambda done, total: reports.append((done, total)),
    )
    assert documents_of(tmp_path / "c") == [
        list("语".encode()),
        *(list(str(number).encode()) for number in range(2000)),
    ]
    stored = sum(path.stat().st_size for path in tmp_path.glob("*.gz"))
    assert reports[-1] == (stored, stored)


@pytest.mark.parametrize("content", [b"plain text", gzip.compress(b"some text" * 99)[:-9]])
def test_damaged_gzip(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.txt.gz").write_bytes(content)
    with pytest.raises(UnreadableError, match=r"a\.txt\.gz is not a whole gzip file"):
        make_data([tmp_path / "a.txt.gz"], tmp_path / "c", append_eod=True)


def test_json_key(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"content": "a", "text": "b"}\n{"text": "b"}\n')
    with pytest.raises(UnreadableError, match=r"a\.jsonl:2: an object with the keys \['text'\], without content"):
        make_data([tmp_path / "a.jsonl"], tmp_path / "c", append_eod=False, json_key="content")
    (tmp_path / "a.jsonl").write_text('{"content": "a", "text": "b"}\n')
    make_data([tmp_path / "a.jsonl"], tmp_path / "c", append_eod=False, json_key="content")
    assert documents_of(tmp_path / "c") == [[ord("a")]]


def test_an_existing_corpus_is_kept_unless_forced(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a")
    (tmp_path / "b.txt").write_text("bb")
    make_data([tmp_path / "a.txt"], tmp_path / "c", append_eod=False)
    with pytest.raises(UnreadableError, match=r"c\.bin and .*c\.idx exist already: .* --force") as error:
        make_data([tmp_path / "b.txt"], tmp_path / "c", append_eod=False)
    assert error.value.status == Exit.UNREADABLE
    assert documents_of(tmp_path / "c") == [[ord("a")]]
    make_data([tmp_path / "b.txt"], tmp_path / "c", append_eod=False, force=True)
    assert documents_of(tmp_path / "c") == [[ord("b")] * 2]


def many_lines(path: Path, lines: int) -> Path:
    with path.open("w", encoding="utf-8") as file:
        file.writelines(json.dumps({"text": f"语 {number} " * (number % 7)}) + "\n" for number in range(lines))
    return path


def test_the_number_of_workers_does_not_show(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("msrt.data.text_blocks.SIZE", 2000)
    many_lines(tmp_path / "a.jsonl", 500)
    (tmp_path / "b.txt").write_text("the end")
    made = [
        make_data(
            [tmp_path / "a.jsonl", tmp_path / "b.txt"], tmp_path / f"c{workers}", append_eod=True, workers=workers
        )
        for workers in (1, 3)
    ]
    assert made[0].documents == made[1].documents > 400
    for suffix in (".bin", ".idx"):
        assert (tmp_path / f"c1{suffix}").read_bytes() == (tmp_path / f"c3{suffix}").read_bytes()


def test_a_bad_line_is_named_by_any_worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("msrt.data.text_blocks.SIZE", 1000)
    with many_lines(tmp_path / "a.jsonl", 300).open("a") as file:
        file.write("oops\n")
    for workers in (1, 2):
        with pytest.raises(UserError, match=r"a\.jsonl:301: not a JSON object") as error:
            make_data([tmp_path / "a.jsonl"], tmp_path / "c", append_eod=True, workers=workers)
        assert error.value.status == Exit.UNREADABLE
    assert [path.name for path in tmp_path.iterdir()] == ["a.jsonl"]


def test_a_killed_worker_ends_the_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("msrt.data.text_blocks.SIZE", 100)
    many_lines(tmp_path / "a.jsonl", 500)
    start = WorkerProcesses.submit

    def submit_and_kill(pool: WorkerProcesses[object, object], task: object) -> object:
        os.kill(pool.pids[0], signal.SIGKILL)
        return start(pool, task)

    monkeypatch.setattr(WorkerProcesses, "submit", submit_and_kill)
    with pytest.raises(UserError, match=r"Worker 1 of 2 \(process \d+\) ended by signal 9 \(SIGKILL\)"):
        make_data([tmp_path / "a.jsonl"], tmp_path / "c", append_eod=True, workers=2)
    assert [path.name for path in tmp_path.iterdir()] == ["a.jsonl"]


def test_an_interrupt_leaves_no_output_and_no_worker(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.jsonl")
    code = (
        "import sys; from msrt.data import make_data; make_data(sys.argv[1:2], sys.argv[2], append_eod=True, workers=2)"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path / "pipe.jsonl"), str(tmp_path / "c")],
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    with (tmp_path / "pipe.jsonl").open("wb"):  # opened by the other side once its workers have been started
        time.sleep(0.1)
        os.killpg(process.pid, signal.SIGINT)
        _, errors = process.communicate(timeout=30)
    assert errors.count("KeyboardInterrupt") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["pipe.jsonl"]
    wait_until(lambda: not living(process.pid))
