"""What a check has to say about one place of a file."""

import difflib
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

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


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known word that `word` probably means, or None when none is near."""
    plain = {name.lower().replace("-", "_"): name for name in known}
    found = difflib.get_close_matches(word.lower().replace("-", "_"), plain, n=1, cutoff=0.75)
    return plain[found[0]] if found else None
