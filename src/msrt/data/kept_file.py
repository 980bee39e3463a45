"""Files kept between runs for speed alone: one that cannot be read or written costs time, and never the run."""

import logging
from pathlib import Path
from uuid import uuid4

from msmigrate.yaml.source import shown_path

log = logging.getLogger(__name__)


def read_kept(path: Path) -> bytes | None:
    """What an earlier run kept in `path`; None, with a warning unless the file is just absent, if it cannot be read."""
    try:
        return path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        log.warning("%s cannot be read: %s. The run goes on without it.", shown_path(str(path)), error.strerror)
        return None


def keep(path: Path, data: bytes | memoryview) -> None:
    """Writes `data` to `path`, whole or not at all; a warning says why not, and no temporary file stays."""
    temporary = path.with_name(f".{path.name}.{uuid4().hex}.tmp")  # ranks of other hosts may share process ids
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            temporary.write_bytes(data)
            # Ranks that start together write the same bytes; the last rename wins and harms nobody.
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        log.warning(
            "%s cannot be written: %s. The run goes on without it; the next one will do the same work again.",
            shown_path(str(path)),
            error.strerror or error,
        )
