"""Items made ahead of their use by a thread."""

import threading
from collections import deque
from collections.abc import Iterable
from types import TracebackType
from typing import Generic, Self, TypeVar

T = TypeVar("T")


class Prefetcher(Generic[T]):
    """The items of an iterable in order, up to `size` of them made ahead by a thread; 0 makes each when asked for.

    An exception in the iterable appears at the place where its item would have been. `close`, or the end of a `with`
    block, stops the thread; a closed prefetcher has no more items.
    """

    def __init__(self, items: Iterable[T], size: int) -> None:
        self._items = iter(items)
        self._size = size
        self._ready: deque[T] = deque()
        self._error: BaseException | None = None
        self._finished = self._closed = False
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        if size > 0:
            self._thread = threading.Thread(target=self._fill, name="prefetch", daemon=True)
            self._thread.start()

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> T:
        if self._closed:
            raise StopIteration
        if self._thread is None:
            return next(self._items)
        with self._changed:
            self._changed.wait_for(lambda: self._ready or self._finished or self._closed)
            if self._ready:
                self._changed.notify_all()
                return self._ready.popleft()
        if self._error is not None:
            raise self._error
        raise StopIteration

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Stops the thread after the item it is making; may be called again."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join()

    def _fill(self) -> None:
        try:
            for item in self._items:
                if not self._hand_over(item):
                    return
        except BaseException as error:  # raised again in the thread that asks for the item
            self._error = error
        finally:
            with self._changed:
                self._finished = True
                self._changed.notify_all()

    def _hand_over(self, item: T) -> bool:
        """Puts `item` among the ready ones, then waits for room for another; False once closed."""
        with self._changed:
            if not self._closed:
                self._ready.append(item)
                self._changed.notify_all()
            self._changed.wait_for(lambda: self._closed or len(self._ready) < self._size)
            return not self._closed
