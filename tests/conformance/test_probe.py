"""`msrt probe` against transformers' numbers, from the command line alone."""

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from safetensors.numpy import load_file, save_file
from typer.testing import CliRunner

from msrt.commands import app

# Tolerances of the golden READMEs.
HIDDEN, LOSS, GRADIENT = 2e-5, 5e-6, 1e-5

MODELS = ["deepseek_v3_yarn_qlora", "deepseek_v3_noqlora", "qwen3", "qwen3_moe", "llama"]
Arrays = dict[str, NDArray[Any]]


@pytest.fixture(params=MODELS)
def folder(shared: Path, request: pytest.FixtureRequest) -> Path:
    """The folder of a reference model."""
    return shared / "golden" / str(request.param)


def probed(model: Path, given: Path, target: Path, *options: str) -> Arrays:
    result = CliRunner().invoke(app, ["probe", str(model), "--input", str(given), "-o", str(target), *options])
    assert result.exit_code == 0, result.output
    answers: Arrays = load_file(target)
    assert {value.dtype for value in answers.values()} == {np.dtype(np.float32)}
    return answers


def assert_close(answers: Arrays, golden: Arrays, names: list[str], tolerance: float) -> None:
    for name in names:
        np.testing.assert_allclose(answers[name], golden[name], rtol=0, atol=tolerance, err_msg=name)


def assert_gradients(answers: Arrays, expected: Arrays) -> None:
    ours = {name.removeprefix("grad."): value for name, value in answers.items() if name.startswith("grad.")}
    assert ours.keys() == expected.keys()
    for name, grad in expected.items():
        np.testing.assert_allclose(ours[name], grad, rtol=0, atol=GRADIENT * np.abs(grad).max(), err_msg=name)


@pytest.mark.parametrize("style", ["", ".hub_style"])
def test_every_answer_is_that_of_transformers(folder: Path, style: str, tmp_path: Path) -> None:
    model, golden = tmp_path / "model", load_file(folder / "golden.safetensors")
    model.mkdir()
    shutil.copy(folder / f"config{style}.json", model / "config.json")
    (model / "model.safetensors").symlink_to(folder / "model.safetensors")
    answers = probed(model, folder / "golden.safetensors", tmp_path / "out.safetensors", "--hidden")
    assert answers["loss"] == pytest.approx(float(golden["loss_masked"]), abs=LOSS)
    inner = [name for name in golden if name.startswith(("hidden.", "router.")) and "tokens_per_expert" not in name]
    indices = [name for name in inner if name.endswith("topk_indices")]
    assert answers.keys() == {"logits", "token_loss", "loss", *inner}
    assert_close(answers, golden, indices, 0)
    assert_close(answers, golden, ["logits", "token_loss", *(set(inner) - set(indices))], HIDDEN)


def test_loss_and_gradients_without_a_mask(folder: Path, tmp_path: Path) -> None:
    golden = load_file(folder / "golden.safetensors")
    given = tmp_path / "in.safetensors"
    save_file({"input_ids": golden["input_ids"], "labels": golden["labels"].astype(np.int64)}, given)
    answers = probed(folder, given, tmp_path / "out.safetensors", "--grads")
    assert answers["loss"] == pytest.approx(float(golden["loss"]), abs=LOSS)
    assert_gradients(answers, load_file(folder / "grads.safetensors"))


def test_a_checkpoint_answers_as_the_folder_it_was_imported_from(folder: Path, tmp_path: Path) -> None:
    imported = CliRunner().invoke(app, ["import", str(folder), "-o", str(tmp_path / "checkpoint")])
    assert imported.exit_code == 0, imported.output
    given = folder / "golden.safetensors"
    direct = probed(folder, given, tmp_path / "direct.safetensors", "--hidden", "--grads")
    through = probed(tmp_path / "checkpoint", given, tmp_path / "through.safetensors", "--hidden", "--grads")
    assert direct.keys() == through.keys()
    for name, value in direct.items():
        np.testing.assert_array_equal(through[name], value, err_msg=name)
    exported = CliRunner().invoke(app, ["export", str(tmp_path / "checkpoint"), "-o", str(tmp_path / "hf")])
    assert exported.exit_code == 0, exported.output
    before, after = load_file(folder / "model.safetensors"), load_file(tmp_path / "hf" / "model.safetensors")
    assert before.keys() == after.keys()
    for name, value in before.items():
        np.testing.assert_array_equal(after[name], value, err_msg=name)
    assert (tmp_path / "hf" / "config.json").read_bytes() == (folder / "config.json").read_bytes()
