"""Looking at real processes."""

import time
from collections.abc import Callable
from pathlib import Path


def wait_until(reached: Callable[[], bool], seconds: float = 30) -> None:
    """Returns once `reached` is true; fails after `seconds`."""
    deadline = time.monotonic() + seconds
    while not reached() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert reached()


def living(group: int) -> list[int]:
    """The processes of a process group, without those that have ended and wait for their parent to look."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, its_group = stat.read_text().rpartition(")")[2].split()[:3]
        except (FileNotFoundError, ProcessLookupError):
            continue  # it ended just now
        if int(its_group) == group and state not in "ZX":
            found.append(int(stat.parent.name))
    return found
