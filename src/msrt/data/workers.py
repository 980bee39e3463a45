"""Work done ahead of its use, in threads or processes, with the order of the results kept."""

import multiprocessing
import os
import queue
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from types import TracebackType
from typing import Generic, Self, TypeVar

from msmigrate.problems import Exit, UserError

Task = TypeVar("Task")
Result = TypeVar("Result")

SECONDS_TO_STOP = 5.0
"""A process that has not gone this long after it was told to is killed."""


def in_order(submit: Callable[[Task], Callable[[], Result]], tasks: Iterable[Task], ahead: int) -> Iterator[Result]:
    """The results of `tasks` in their order, while up to `ahead` later ones are under way.

    `submit` starts a task and returns what waits for its result.
    """
    waiting: deque[Callable[[], Result]] = deque()
    for task in tasks:
        waiting.append(submit(task))
        if len(waiting) > ahead:
            yield waiting.popleft()()
    while waiting:
        yield waiting.popleft()()


class WorkerProcesses(Generic[Task, Result]):
    """`count` processes that each call `make()` once and then its result for their tasks, taken in turn.

    What `submit` returns must be called in the order of the tasks. It raises the `UserError` of a task with its message
    and status, and a `UserError` with the signal or exit code when a process has ended. The processes are started anew
    (not forked, since other threads may hold locks), ignore Ctrl-C, and end at once when this process does, however it
    ends. `what` names them in messages.
    """

    def __init__(self, make: Callable[[], Callable[[Task], Result]], count: int, what: str) -> None:
        self._what, self._turn = what, 0
        context = multiprocessing.get_context("spawn")
        self._connections: list[Connection] = []
        self._processes: list[SpawnProcess] = []
        with _interrupts_held():
            for _ in range(count):
                ours, theirs = context.Pipe()
                process = context.Process(target=_serve, args=(theirs, make), daemon=True)
                process.start()
                theirs.close()  # so that reading from ours ends when the process does
                self._connections.append(ours)
                self._processes.append(process)

    @property
    def pids(self) -> list[int]:
        """The ids of the processes."""
        return [process.pid for process in self._processes if process.pid is not None]

    def submit(self, task: Task) -> Callable[[], Result]:
        """Gives `task` to the next process; call the result to wait for its answer."""
        number = self._turn % len(self._processes)
        self._turn += 1
        try:
            self._connections[number].send(task)
        except OSError as error:
            raise self._ended(number) from error
        return lambda: self._answer(number)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Ends the processes, whatever they are doing; may be called again."""
        for connection in self._connections:
            connection.close()
        for process in self._processes:
            process.join(SECONDS_TO_STOP)
            if process.is_alive():
                process.kill()
                process.join()

    def _answer(self, number: int) -> Result:
        try:
            result, message, status = self._connections[number].recv()
        except (EOFError, OSError) as error:
            raise self._ended(number) from error
        if message is not None:
            raise UserError(message, status=Exit(status))
        found: Result = result
        return found

    def _ended(self, number: int) -> UserError:
        process = self._processes[number]
        process.join(SECONDS_TO_STOP)
        code = process.exitcode
        how = f"with exit code {code}"
        if code is None:
            how = "its connection"
        elif code < 0:
            how = f"by signal {-code} ({signal.Signals(-code).name})"
        return UserError(
            f"{self._what} {number + 1} of {len(self._processes)} (process {process.pid}) ended {how} before its work "
            "was done. Signal 9 is often a lack of memory: use fewer workers; signal 7 a file that became shorter."
        )


@contextmanager
def _interrupts_held() -> Iterator[None]:
    """Ctrl-C waits for the end of the block: a process that is just starting would answer it with a traceback."""
    resource_tracker.ensure_running()  # starting it lets Ctrl-C through again
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _serve(connection: Connection, make: Callable[[], Callable[[Task], Result]]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides what Ctrl-C ends
    tasks: queue.SimpleQueue[Task] = queue.SimpleQueue()
    # A thread of its own always takes tasks in, so that the parent never blocks while this process sends a result, and
    # sees at once when the parent is gone.
    threading.Thread(target=_receive, args=(connection, tasks), daemon=True).start()
    try:
        work = make()
    except UserError as error:
        connection.send((None, str(error), int(error.status)))
        return
    while True:
        task = tasks.get()
        try:
            answer: tuple[Result | None, str | None, int] = (work(task), None, 0)
        except UserError as error:
            answer = (None, str(error), int(error.status))
        try:
            connection.send(answer)
        except OSError:
            return  # nobody waits for it any more


def _receive(connection: Connection, tasks: "queue.SimpleQueue[Task]") -> None:
    while True:
        try:
            tasks.put(connection.recv())
        except (EOFError, OSError):
            os._exit(0)
