"""run.json: what a run was asked to do, the numbers that follow, and with which versions."""

import json
import os
import platform
import secrets
import sys
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from msmigrate.json_text import read_json_object
from msmigrate.problems import UnreadableError
from msmigrate.pynative import Config
from msmigrate.yaml.source import shown_path
from msrt.config.resolve import Resolved

FILE = "run.json"
DISTRIBUTIONS = ("msmigrate", "mindspore", "numpy")


@dataclass(frozen=True)
class Resumed:
    """The checkpoint that a run goes on from."""

    folder: Path
    step: int


def new_run_id() -> str:
    """An id that no other run has: the time, and a random part."""
    return f"{datetime.now(UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(3)}"


def read_run_id(run: Path) -> str | None:
    """The id of the run whose files are in the folder `run`; None when no run.json tells."""
    try:
        found = json.loads((run / FILE).read_text(encoding="utf-8"))["run_id"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
    return found if isinstance(found, str) else None


def run_json(
    config: Config, numbers: Resolved, config_file: str, *, run_id: str | None = None, resumed: Resumed | None = None
) -> bytes:
    """What run.json says of a run that starts now, UTF-8.

    It holds `version` (1, of this format), `run_id` (a new one, unless the run goes on with an old one), `resumed`
    (`from` a checkpoint's folder, after its `step`; null for a run that begins anew), `started` (UTC), `command`,
    `config_file`, `config` (every key, defaults filled in), `numbers` (degrees, accumulation, steps, …), `world_size`,
    `versions` and `host` (processor and cores). Bytes of a name that are not UTF-8 are lone surrogates, as JSON
    escapes: Python reads the name back.
    """
    started = datetime.now(UTC)
    content = {
        "version": 1,
        "run_id": new_run_id() if run_id is None else run_id,
        "resumed": None if resumed is None else {"from": _as_utf8(str(resumed.folder)), "step": resumed.step},
        "started": started.isoformat(timespec="seconds"),
        "command": [_as_utf8(argument) for argument in sys.argv],
        "config_file": _as_utf8(config_file),
        "config": asdict(config),
        "numbers": asdict(numbers),
        "world_size": numbers.world_size,
        "versions": {"python": platform.python_version(), **{name: _version(name) for name in DISTRIBUTIONS}},
        "host": {"machine": platform.machine(), "cores": os.cpu_count()},
    }
    return (json.dumps(content, indent=2, ensure_ascii=False) + "\n").encode(errors="backslashreplace")


def _as_utf8(name: str) -> str:
    """A name from the command line read as UTF-8, whatever the locale has made of it."""
    return os.fsencode(name).decode(errors="surrogateescape")


def read_vocab_size(run: Path) -> int | None:
    """model.vocab_size of the run in folder `run`; None when there is no run.json or the config did not give it.

    Raises `UnreadableError` when run.json is there and is not what `run_json` gives.
    """
    path = run / FILE
    if not path.is_file():
        return None
    content: Any = read_json_object(path, "the run's config and numbers")
    try:
        size = content["config"]["model"]["vocab_size"]
    except (KeyError, TypeError) as error:
        raise UnreadableError(f"{shown_path(str(path))} is damaged: it has no config.model.vocab_size.") from error
    return size if isinstance(size, int) else None


def _version(distribution: str) -> str | None:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return None
