"""Items made ahead by a thread."""

import threading
import time
from collections.abc import Callable, Iterator
from itertools import count

import pytest

from msrt.data import Prefetcher


def wait_until(reached: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 10
    while not reached() and time.monotonic() < deadline:
        time.sleep(0.001)
    assert reached()


def prefetch_threads() -> int:
    return sum(thread.name == "prefetch" for thread in threading.enumerate())


@pytest.mark.parametrize("size", [0, 1, 3, 100])
def test_items_keep_their_order(size: int) -> None:
    with Prefetcher(range(50), size) as items:
        assert list(items) == list(range(50))
        assert list(items) == []


@pytest.mark.parametrize("size", [0, 2])
def test_exception_appears_in_its_place(size: int) -> None:
    def broken() -> Iterator[int]:
        yield 1
        yield 2
        raise OSError("disk gone")

    with Prefetcher(broken(), size) as items:
        assert [next(items), next(items)] == [1, 2]
        with pytest.raises(OSError, match="disk gone"):
            next(items)


def test_close_ends_the_thread_of_an_endless_source() -> None:
    before = prefetch_threads()
    items = Prefetcher(count(), 2)
    assert next(items) == 0
    assert prefetch_threads() == before + 1
    items.close()
    assert prefetch_threads() == before
    assert list(items) == []
    items.close()


def test_leaving_the_block_early_ends_the_thread() -> None:
    before = prefetch_threads()
    with pytest.raises(RuntimeError), Prefetcher(count(), 1):
        raise RuntimeError
    assert prefetch_threads() == before


def test_runs_ahead_by_size_and_no_further() -> None:
    made: list[int] = []

    def source() -> Iterator[int]:
        for number in count():
            made.append(number)
            yield number

    with Prefetcher(source(), 3) as items:
        wait_until(lambda: len(made) == 3)
        assert next(items) == 0
        wait_until(lambda: len(made) == 4)
        time.sleep(0.05)
        assert len(made) == 4


def test_size_zero_has_no_thread() -> None:
    before = prefetch_threads()
    with Prefetcher(count(), 0) as items:
        assert [next(items), next(items)] == [0, 1]
        assert prefetch_threads() == before
    assert list(items) == []
