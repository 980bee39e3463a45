"""Progress of making a corpus."""

import io

import pytest
from rich.console import Console

from msrt.data.read_progress import read_progress


def test_plain_lines_when_there_is_no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    written = io.StringIO()
    with read_progress(Console(file=written)) as report:
        for seconds, done in ((1.0, 10), (2.5, 2_500_000), (3.0, 3_000_000), (4.6, 4_000_000)):
            now[0] = 100 + seconds
            report(done, 8_000_000 if done < 4_000_000 else None)
    assert written.getvalue() == "read 2.5 of 8.0 MB\nread 4.0 MB\n"


def test_a_bar_on_a_terminal() -> None:
    written = io.StringIO()
    with read_progress(Console(file=written, force_terminal=True, width=80)) as report:
        report(2_500_000, 8_000_000)
    assert "2.5/8.0 MB" in written.getvalue()
