"""Arrays kept on disk, with real processes that ask for them together."""

import logging
import os
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from processes import wait_until

from msrt.data.index_cache import Arrays, cached_arrays, digest

ARRAYS: Arrays = {
    "documents": np.arange(7, dtype=np.int32),
    "samples": np.arange(10, dtype=np.int64).reshape(5, 2),
    "none": np.zeros(0, np.uint32),
}

BUILDER = """
import os, sys, time
from pathlib import Path
import numpy as np
from msrt.data.index_cache import cached_arrays
folder, seconds = Path(sys.argv[1]), float(sys.argv[2])
def build():
    with open(folder / "builds", "a") as file:
        file.write(f"{os.getpid()}\\n")
    time.sleep(seconds)
    return {"numbers": np.arange(1000)}
print("ready", flush=True)
sys.stdin.readline()
print(int(cached_arrays(folder / "cache", "numbers", build)["numbers"].sum()), flush=True)
"""


def builder(folder: Path, seconds: float) -> subprocess.Popen[str]:
    """A process that has imported everything and waits for a line."""
    command = [sys.executable, "-c", BUILDER, str(folder), str(seconds)]
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


def go(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_arrays_come_back_mapped_and_read_only(tmp_path: Path) -> None:
    for build in (lambda: ARRAYS, lambda: pytest.fail("built again")):
        found = cached_arrays(tmp_path / "cache", "x", build)
        assert found.keys() == ARRAYS.keys()
        for name, array in found.items():
            assert array.dtype == ARRAYS[name].dtype
            assert np.array_equal(array, ARRAYS[name])
            assert not array.flags.writeable
            assert not array.flags.owndata
    assert names(tmp_path / "cache") == ["x.arrays"]


def test_processes_that_start_together_build_once(tmp_path: Path) -> None:
    processes = [builder(tmp_path, 0.3) for _ in range(4)]
    for process in processes:
        go(process)
    assert [process.communicate(timeout=60)[0] for process in processes] == ["499500\n"] * 4
    assert len((tmp_path / "builds").read_text().splitlines()) == 1
    assert names(tmp_path / "cache") == ["numbers.arrays"]


def test_a_killed_builder_leaves_nothing_that_is_believed(tmp_path: Path) -> None:
    first, second = builder(tmp_path, 3600), builder(tmp_path, 0)
    go(first)
    wait_until(lambda: (tmp_path / "builds").exists())
    go(second)  # waits for the first one
    (tmp_path / "cache" / ".numbers.arrays.0123.tmp").write_bytes(b"half of it")
    os.kill(first.pid, signal.SIGKILL)
    output, _ = second.communicate(timeout=60)
    first.communicate()
    assert output == "499500\n"
    assert len((tmp_path / "builds").read_text().splitlines()) == 2
    wait_until(lambda: names(tmp_path / "cache") == ["numbers.arrays"])


def test_waiting_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    started, finish = threading.Event(), threading.Event()

    def slow() -> Arrays:
        started.set()
        finish.wait()
        return ARRAYS

    one = threading.Thread(target=cached_arrays, args=(tmp_path, "x", slow))
    other = threading.Thread(target=cached_arrays, args=(tmp_path, "x", slow))
    one.start()
    started.wait()
    other.start()
    wait_until(lambda: "Another process is making" in caplog.text)
    finish.set()
    one.join()
    other.join()
    assert re.search(r"Another process is making .*x\.arrays; this one waits", caplog.text)


def cut(whole: bytes) -> bytes:
    return whole[:-1]


def longer(whole: bytes) -> bytes:
    return whole + b"x"


def other_magic(whole: bytes) -> bytes:
    return b"NOTHERE1" + whole[8:]


def flipped(whole: bytes) -> bytes:
    return whole[:-1] + bytes([whole[-1] ^ 1])


def no_table(whole: bytes) -> bytes:
    return whole[:16] + b"[]" + b" " * (whole.index(b"}") - 17) + whole[whole.index(b"}") + 1 :]


@pytest.mark.parametrize(
    "damage", [cut, longer, other_magic, flipped, no_table, lambda whole: whole[:9], lambda _: b""]
)
def test_damage_is_noticed_and_repaired(tmp_path: Path, caplog: pytest.LogCaptureFixture, damage: object) -> None:
    arrays: Arrays = {"numbers": np.arange(100)}
    cached_arrays(tmp_path, "x", lambda: arrays)
    path = tmp_path / "x.arrays"
    whole = path.read_bytes()
    assert callable(damage)
    path.write_bytes(damage(whole))
    found = cached_arrays(tmp_path, "x", lambda: arrays)
    assert np.array_equal(found["numbers"], arrays["numbers"])
    assert path.read_bytes() == whole
    (message,) = caplog.messages
    assert re.search(r"x\.arrays is damaged \(.+\); it is built again", message)


def test_folder_that_cannot_be_written(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "file").write_text("")
    assert cached_arrays(tmp_path / "file" / "cache", "x", lambda: ARRAYS) is ARRAYS
    (message,) = caplog.messages
    assert "cannot be written: Not a directory. The run goes on without it" in message


def test_disk_with_little_space(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    usage = type("Usage", (), {"free": 200})
    monkeypatch.setattr("shutil.disk_usage", lambda _: usage)
    assert cached_arrays(tmp_path, "x", lambda: {"numbers": np.arange(100)})["numbers"].size == 100
    assert "too little to keep sample indices" in caplog.text
    assert names(tmp_path) == []


def test_file_system_without_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def none(*_: object) -> None:
        raise OSError(38, "Function not implemented")

    monkeypatch.setattr("fcntl.flock", none)
    cached_arrays(tmp_path, "x", lambda: ARRAYS)
    assert names(tmp_path) == ["x.arrays"]


def test_no_folder_only_builds(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    assert cached_arrays(None, "x", lambda: ARRAYS) is ARRAYS
    assert caplog.messages == []


def test_a_digest_tells_everything_apart() -> None:
    numbers = np.arange(6)
    different = [
        digest(1, numbers),
        digest(2, numbers),
        digest(1, numbers.reshape(2, 3)),
        digest(1, numbers.astype(np.int32)),
        digest(1, numbers[::-1]),
        digest("1", numbers),
    ]
    assert len(set(different)) == len(different)
    assert digest(1, numbers[::-1]) == digest(1, numbers[::-1].copy())
