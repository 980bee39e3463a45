"""Processes that do work in turn, with the order of the results kept."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from processes import living, wait_until

from msmigrate.problems import Exit, UnreadableError, UserError
from msrt.data.workers import WorkerProcesses, in_order


def doubler() -> Callable[[int], int]:
    return double


def double(number: int) -> int:
    if number == 13:
        raise UnreadableError("13 cannot be doubled.")
    time.sleep(0.02 if number % 2 else 0)  # later ones are done earlier
    return 2 * number


def broken() -> Callable[[int], int]:
    raise UserError("Nothing to work with.", status=Exit.USAGE)


def echo() -> Callable[[bytes], bytes]:
    return bytes


def in_turn() -> Callable[[int], int]:
    return lambda _: os.getpid()


@pytest.mark.parametrize("ahead", [0, 1, 7])
def test_results_keep_the_order_of_their_tasks(ahead: int) -> None:
    with WorkerProcesses(doubler, 2, "Worker") as pool:
        assert list(in_order(pool.submit, range(12), ahead)) == list(range(0, 24, 2))


def test_every_process_works_and_all_end_with_the_block() -> None:
    with WorkerProcesses(in_turn, 3, "Worker") as pool:
        found = list(in_order(pool.submit, range(9), 3))
        assert found == pool.pids * 3
        assert os.getpid() not in found
    wait_until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in pool.pids))
    pool.close()


def test_a_task_that_fails_is_an_error_in_its_place() -> None:
    with WorkerProcesses(doubler, 2, "Worker") as pool:
        results = in_order(pool.submit, range(10, 20), 4)
        assert [next(results) for _ in range(3)] == [20, 22, 24]
        with pytest.raises(UserError, match=r"^13 cannot be doubled\.$") as error:
            next(results)
        assert error.value.status == Exit.UNREADABLE


def test_an_error_of_the_preparation_arrives() -> None:
    with WorkerProcesses(broken, 1, "Worker") as pool, pytest.raises(UserError, match="Nothing to work with") as error:
        pool.submit(1)()
    assert error.value.status == Exit.USAGE


def test_large_tasks_and_results_do_not_block_each_other() -> None:
    large = [bytes([number]) * 2**20 for number in range(12)]
    with WorkerProcesses(echo, 2, "Worker") as pool:
        assert list(in_order(pool.submit, large, 12)) == large


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGBUS])
def test_a_process_that_was_killed_is_noticed(number: signal.Signals) -> None:
    with WorkerProcesses(doubler, 2, "Data worker") as pool:
        assert pool.submit(1)() == 2
        os.kill(pool.pids[1], number)
        expected = rf"Data worker 2 of 2 \(process {pool.pids[1]}\) ended by signal {int(number)} \({number.name}\)"
        with pytest.raises(UserError, match=expected):
            pool.submit(2)()


def test_workers_end_when_their_parent_is_killed(tmp_path: Path) -> None:
    """Also those in the middle of a task: here, one that takes an hour."""
    script = tmp_path / "parent.py"
    script.write_text(
        "import time\n"
        "from functools import partial\n"
        "from msrt.data.workers import WorkerProcesses\n"
        "def sleeper(): return time.sleep\n"
        "if __name__ == '__main__':\n"
        "    with WorkerProcesses(sleeper, 2, 'Worker') as pool:\n"
        "        pool.submit(0)()\n"
        "        pool.submit(3600)\n"
        "        print('ready', flush=True)\n"
        "        time.sleep(3600)\n"
    )
    parent = subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, start_new_session=True)
    assert parent.stdout is not None
    assert parent.stdout.readline() == b"ready\n"
    assert len(living(parent.pid)) >= 3
    parent.kill()
    parent.wait()
    wait_until(lambda: not living(parent.pid))
