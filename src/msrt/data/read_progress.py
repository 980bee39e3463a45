"""How making a corpus shows that it is alive: a bar on a terminal, plain lines elsewhere."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

from msrt.data.make_data import Report

SECONDS_BETWEEN_LINES = 2.0


@contextmanager
def read_progress(console: Console) -> Iterator[Report]:
    """A report of bytes read that writes to `console`; the bar is gone at the end of the block."""
    if not console.is_terminal:
        yield PlainLines(console)
        return
    columns = (TextColumn("read"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("read", total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


class PlainLines:
    """A line every `SECONDS_BETWEEN_LINES`, so that short work writes none."""

    def __init__(self, console: Console) -> None:
        self._console, self._last = console, time.monotonic()

    def __call__(self, done: int, total: int | None) -> None:
        now = time.monotonic()
        if now - self._last < SECONDS_BETWEEN_LINES:
            return
        self._last = now
        of_all = "" if total is None else f" of {total / 1e6:.1f}"
        self._console.print(f"read {done / 1e6:.1f}{of_all} MB", highlight=False, soft_wrap=True)
