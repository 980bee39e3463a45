"""metrics.jsonl: one JSON object per optimizer step, readable while the run goes on."""

import json
import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from msmigrate.problems import UnreadableError
from msmigrate.yaml.source import shown_path
from msrt.config.problem import shown

FILE = "metrics.jsonl"


@dataclass(frozen=True, slots=True)
class StepMetrics:
    """The numbers of one optimizer step (contract, section 4); the MoE ones are None in a model without experts.

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

    def line(self) -> str:
        """One line of JSON without line end; numbers read back to the same bits, those that are not finite are null."""
        known = {name: value for name, value in asdict(self).items() if value is not None}
        return json.dumps({name: _finite_or_none(value) for name, value in known.items()}, allow_nan=False)


def _finite_or_none(value: object) -> object:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def read_metrics(run: Path) -> list[dict[str, object]]:
    """The steps of a run folder, or of a metrics file itself, as dictionaries.

    A last line without its line end that is no JSON is a step being written: it is left out.

    Raises `UnreadableError` when there is none, or naming the line that is not a JSON object.
    """
    path = run / FILE if run.is_dir() else run
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else f"byte {error.start} is not UTF-8"
        raise UnreadableError(
            f"{shown_path(str(path))} cannot be read: {reason}. Expected a run folder with {FILE} in it."
        ) from error
    return list(_parsed(text, shown_path(str(path))))


def _parsed(text: str, name: str) -> Iterator[dict[str, object]]:
    for number, line in enumerate(text.splitlines(keepends=True), 1):
        try:
            row = json.loads(line)
        except json.JSONDecodeError as error:
            if not line.endswith("\n"):
                return
            raise UnreadableError(f"{name}:{number}: not JSON ({error.msg}).") from error
        if not isinstance(row, dict):
            raise UnreadableError(f"{name}:{number}: expected a JSON object, found {shown(row)}.")
        yield row
