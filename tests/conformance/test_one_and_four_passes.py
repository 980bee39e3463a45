"""The reference folder's case C30 through the command: four passes of one sequence against one pass of four."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from msrt.commands import app

SPACE = 32
"""Byte that stands for the end of a document where the case asks for masked tokens."""
MASKED = ("train_dataset.dataloader.config.eod_mask_loss=true", f"train_dataset.dataloader.config.eod={SPACE}")
MTP = "model.mtp_loss_scaling_factor=0.3"
"""Adds the layer of multi-token prediction that the files leave out."""


@pytest.fixture
def cases(shared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the case; the working folder has the data that its files name."""
    monkeypatch.chdir(tmp_path)
    # Words get longer from document to document, so that sequences have different numbers of spaces.
    lines = [json.dumps({"text": " ".join(["x" * (1 + number % 9)] * 40)}) for number in range(900)]
    (tmp_path / "text.jsonl").write_text("\n".join(lines))
    (tmp_path / "data").mkdir()
    run("make-data", "text.jsonl", "-o", "data/demo_text_document", "--append-eod")
    return shared / "cases" / "C30"


def run(*arguments: str) -> None:
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0, done.output


def first_step(file: Path, *settings: str) -> dict[str, float]:
    """The first step's numbers."""
    given = ("training.steps=1", "lr_scheduler.warmup_ratio=0", *settings)
    run("train", str(file), "--output", file.stem, *(part for setting in given for part in ("--set", setting)))
    found: dict[str, float] = json.loads(Path(file.stem, "metrics.jsonl").read_text().splitlines()[0])
    return found


@pytest.mark.parametrize(
    ("settings", "agree"),
    [
        ((), True),
        ((MTP,), True),
        ((MTP, *MASKED, "training.loss_normalization=global_tokens"), True),
        ((MTP, *MASKED, "training.loss_normalization=micro_batch"), False),
    ],
)
def test_passes_agree_unless_means_of_masked_tokens_are_averaged(
    cases: Path, settings: tuple[str, ...], agree: bool
) -> None:
    one, four = (first_step(cases / name, *settings) for name in ("one_pass.yaml", "four_passes.yaml"))
    for name in ("loss", "grad_norm", *(["mtp_1_loss"] if MTP in settings else [])):
        assert (one[name] == pytest.approx(four[name], rel=1e-5)) == agree, name
    assert one["load_balancing_loss"] == pytest.approx(four["load_balancing_loss"], rel=1e-5)
