"""What a check has to say about one place of a file."""

import difflib
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

from msmigrate.yaml.nodes import Span


class Severity(StrEnum):
    """How much a finding matters."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class Finding:
    """One sentence about one key; `span` is None for a value that no file holds, such as an override."""

    code: str
    name: str
    severity: Severity
    path: str
    """The file."""
    key: str
    """Dotted path of the key, empty for the file as a whole."""
    span: Span | None
    message: str
    help: str | None = None

    def __str__(self) -> str:
        """`file:line:col: error: message [code]; help`, the form of terminals."""
        place = f"{self.path}:{self.span.start.line}:{self.span.start.column}" if self.span else self.path
        advice = f"; {self.help}" if self.help else ""
        return f"{place}: {self.severity}: {self.message}{advice} [{self.code}]"


_ALIKE = 0.75
"""Letters in common, twice, over the letters of both words."""


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known word that `word` probably means, or None when none is near."""
    meant, letters = _plain(word)
    alike: dict[str, str] = {}
    for name in known:  # a bound on the letters in common spares most comparisons, which are slow
        plain, others = _plain(name)
        common = min(len(plain) - len(others - letters), len(meant) - len(letters - others))
        if 2 * common >= _ALIKE * (len(plain) + len(meant)):
            alike[plain] = name
    found = difflib.get_close_matches(meant, alike, n=1, cutoff=_ALIKE)
    return alike[found[0]] if found else None


@lru_cache(maxsize=4096)
def _plain(word: str) -> tuple[str, frozenset[str]]:
    """A word without what is easily mistaken, and its letters."""
    plain = word.lower().replace("-", "_")
    return plain, frozenset(plain)
