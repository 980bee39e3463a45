"""run.json: what a run was asked to do, the numbers that follow, and with which versions."""

import json
import os
import platform
import secrets
import sys
from dataclasses import asdict
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from msmigrate.problems import UnreadableError
from msmigrate.pynative import Config
from msmigrate.yaml.source import write_whole
from msrt.config.resolve import Resolved

FILE = "run.json"
DISTRIBUTIONS = ("msmigrate", "mindspore", "numpy")


def write_run_json(folder: Path, config: Config, numbers: Resolved, config_file: str) -> Path:
    """The path of the run.json written into `folder`: whole or not at all.

    It holds `version` (1, of this format), `run_id`, `started` (UTC), `command`, `config_file`, `config` (every key,
    defaults filled in), `numbers` (degrees, accumulation, steps, …), `world_size`, `versions` and `host` (processor
    and cores). Raises `UnreadableError` when it cannot be written.
    """
    started = datetime.now(UTC)
    content = {
        "version": 1,
        "run_id": f"{started:%Y%m%d-%H%M%S}-{secrets.token_hex(3)}",
        "started": started.isoformat(timespec="seconds"),
        "command": sys.argv,
        "config_file": config_file,
        "config": asdict(config),
        "numbers": asdict(numbers),
        "world_size": numbers.world_size,
        "versions": {"python": platform.python_version(), **{name: _version(name) for name in DISTRIBUTIONS}},
        "host": {"machine": platform.machine(), "cores": os.cpu_count()},
    }
    path = folder / FILE
    write_whole(str(path), (json.dumps(content, indent=2, ensure_ascii=False) + "\n").encode())
    return path


def read_vocab_size(run: Path) -> int | None:
    """model.vocab_size of the run in folder `run`; None when there is no run.json or the config did not give it.

    Raises `UnreadableError` when run.json is there and is not what `write_run_json` writes.
    """
    path = run / FILE
    if not path.is_file():
        return None
    try:
        size = json.loads(path.read_text(encoding="utf-8"))["config"]["model"]["vocab_size"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UnreadableError(f"{path} is damaged ({type(error).__name__}: {error}).") from error
    return size if isinstance(size, int) else None


def _version(distribution: str) -> str | None:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return None
