"""metrics.jsonl: one JSON object per optimizer step, readable while the run goes on."""

import json
import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from msmigrate.json_text import parse_json
from msmigrate.problems import UnreadableError
from msmigrate.yaml.source import shown_path
from msrt.config.problem import shown

FILE = "metrics.jsonl"


@dataclass(frozen=True, slots=True)
class StepMetrics:
    """The numbers of one optimizer step; the MoE ones are None in a model without experts, `mtp_1_loss`, the mean
    cross entropy of the token after the next, in one without multi-token prediction.

    `loss` is the mean over micro-batches without auxiliary losses, `grad_norm` is before clipping, `tokens` are this
    step's, over all ranks, `consumed_samples` all up to this step. `tokens_per_expert` has one list per MoE layer.
    """

    step: int
    loss: float
    lr: float
    grad_norm: float
    consumed_samples: int
    tokens: int
    step_time_ms: float
    tokens_per_s: float
    load_balancing_loss: float | None = None
    tokens_per_expert: list[list[int]] | None = None
    mtp_1_loss: float | None = None

    def line(self) -> str:
        """One line of JSON without line end; numbers read back to the same bits, those that are not finite are null."""
        known = {name: value for name, value in asdict(self).items() if value is not None}
        return json.dumps({name: _finite_or_none(value) for name, value in known.items()}, allow_nan=False)


def _finite_or_none(value: object) -> object:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def read_metrics(run: Path, note: Callable[[str], None] | None = None) -> list[dict[str, object]]:
    """The steps of a run folder, or of a metrics file itself, as dictionaries.

    A last line that has no line end and is no JSON is what a crash leaves of a step: it is left out, and `note` is
    told.

    Raises `UnreadableError` when there is nothing to read, or naming another line that is not a JSON object.
    """
    path = run / FILE if run.is_dir() else run
    try:
        content = path.read_bytes()
    except OSError as error:
        raise UnreadableError(
            f"{shown_path(str(path))} cannot be read: {error.strerror}. Expected a run folder with {FILE} in it."
        ) from error
    name, lines = shown_path(str(path)), content.splitlines()
    if lines and not content.endswith(b"\n") and not _is_json(lines[-1]):
        if note is not None:
            note(f"{name}:{len(lines)}: the last line is damaged, as a crash leaves it; the run is read without it.")
        lines.pop()
    return [_row(line, f"{name}:{number}") for number, line in enumerate(lines, 1)]


def _is_json(line: bytes) -> bool:
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return False
    return True


def _row(line: bytes, place: str) -> dict[str, object]:
    try:
        row = parse_json(line, place)
    except UnreadableError as error:
        raise UnreadableError(f"{place}: {error.problem}") from error
    if not isinstance(row, dict):
        raise UnreadableError(f"{place}: expected a JSON object, found {shown(row)}.")
    return row
