"""`msrt probe` as a user meets it: what it writes, what it refuses, whose arithmetic it uses."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from safetensors.numpy import load_file, save_file
from small_hf import YAML, done, hf_folder, invoke

Arrays = dict[str, NDArray[Any]]
IDS = np.random.default_rng(5).integers(0, 257, (2, 9))
LABELS = np.roll(IDS, -1, axis=1)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return hf_folder(tmp_path / "hf", "BF16")


def probed(model: Path, target: Path, tensors: Arrays, *options: object) -> Arrays:
    save_file(tensors, target.with_suffix(".in"))
    done("probe", model, "--input", target.with_suffix(".in"), "-o", target, *options)
    answers: Arrays = load_file(target)
    return answers


def masked(everywhere: float, at_one_place: float) -> Arrays:
    mask = np.full(IDS.shape, everywhere, np.float32)
    mask[1, 3] = at_one_place
    return {"input_ids": IDS, "labels": LABELS, "loss_mask": mask}


def test_tokens_alone_give_logits_alone(folder: Path, tmp_path: Path) -> None:
    answers = probed(folder, tmp_path / "out", {"input_ids": IDS, "logits": np.zeros(3), "more": np.zeros(2, np.int16)})
    assert {name: value.shape for name, value in answers.items()} == {"logits": (2, 9, 257)}


def test_the_loss_by_hand_with_ignored_labels_and_a_mask(folder: Path, tmp_path: Path) -> None:
    labels = LABELS.copy()
    labels[0, :3] = -100
    mask = np.array([[1, 1, 1, 1, 0, 0, 1, 1, 1], [0] * 4 + [1] * 5], np.float32)
    answers = probed(folder, tmp_path / "out", {"input_ids": IDS, "labels": labels, "loss_mask": mask})
    scores = answers["logits"].astype(np.float64)
    log_probs = scores - np.log(np.exp(scores).sum(-1, keepdims=True))
    expected = -np.take_along_axis(log_probs, np.maximum(labels, 0)[..., None], -1)[..., 0]
    expected[labels == -100] = 0
    np.testing.assert_allclose(answers["token_loss"], expected, atol=1e-5)
    assert not answers["token_loss"][0, :3].any()
    assert answers["loss"] == pytest.approx((expected * mask).sum() / mask.sum(), abs=1e-5)
    ignored = probed(folder, tmp_path / "none", {"input_ids": IDS, "labels": 0 * labels - 100}, "--grads")
    assert ignored["loss"] == 0
    assert not any(value.any() for name, value in ignored.items() if name.startswith("grad."))


def test_gradients_are_those_of_the_loss(folder: Path, tmp_path: Path) -> None:
    """Against a finite difference along the output matrix, with ignored labels that the mask counts."""
    labels = LABELS.copy()
    labels[:, ::3] = -100
    tensors = {"input_ids": IDS, "labels": labels, "loss_mask": np.ones((2, 9), np.bool_)}
    answers = probed(folder, tmp_path / "out", tensors, "--hidden", "--grads")
    final = answers["hidden.final_norm"].reshape(-1, 16).astype(np.float64)
    shares = np.exp(answers["logits"].reshape(-1, 257).astype(np.float64))
    shares /= shares.sum(-1, keepdims=True)
    shares[np.arange(18), np.maximum(labels, 0).reshape(-1)] -= 1
    shares[labels.reshape(-1) == -100] = 0
    np.testing.assert_allclose(answers["grad.lm_head.weight"], shares.T @ final / 18, atol=1e-6)
    assert "grad.model.layers.1.mlp.gate.e_score_correction_bias" not in answers


def test_a_config_computes_as_mindformers_does(folder: Path, tmp_path: Path) -> None:
    same, other = tmp_path / "same.yaml", tmp_path / "other.yaml"
    same.write_text(YAML)
    # MindFormers takes the softmax scale from mscale, transformers from mscale_all_dim.
    other.write_text(YAML.replace("mscale: 1.0\n", "mscale: 4.0\n", 1).replace("all_dim: 1.0", "all_dim: 4.0"))
    tensors = {"input_ids": IDS}
    plain = probed(folder, tmp_path / "plain", tensors)["logits"]
    np.testing.assert_allclose(probed(folder, tmp_path / "same", tensors, "--config", same)["logits"], plain, atol=1e-5)
    moved = probed(folder, tmp_path / "other", tensors, "--config", other)["logits"]
    assert np.abs(moved - plain).max() > 1e-3
    done("import", folder, "-o", tmp_path / "checkpoint", "--config", same)
    through = probed(tmp_path / "checkpoint", tmp_path / "through", tensors)["logits"]
    np.testing.assert_allclose(through, plain, atol=1e-5)
    overridden = probed(tmp_path / "checkpoint", tmp_path / "overridden", tensors, "--config", other)["logits"]
    np.testing.assert_array_equal(overridden, moved)


@pytest.mark.parametrize(
    ("tensors", "options", "message"),
    [
        ({"labels": LABELS}, [], "has no input_ids; expected integers of shape (batch, seq)"),
        ({"input_ids": IDS[0]}, [], "has input_ids of shape (9,); expected (batch, seq)"),
        ({"input_ids": IDS.astype(np.float32)}, [], "has input_ids of type F32; expected I32 or I64"),
        ({"input_ids": IDS, "labels": LABELS[:1]}, [], "has labels of shape (1, 9); expected input_ids' (2, 9)"),
        ({"input_ids": IDS}, ["--grads"], "--grads needs labels in the input"),
        ({"input_ids": IDS + 1000}, [], "model.vocab_size 257 has the tokens 0 to 256"),
        ({"input_ids": IDS, "labels": LABELS + 2**40}, [], "expected 32-bit integers"),
        (masked(0, 0), [], "has a loss_mask of 18 zeros: there is no token to take the loss of"),
        (masked(1, -2), [], "has a loss_mask with -2.0 at (1, 3), the first of 1 entries"),
        (masked(1, np.nan), [], "has a loss_mask with nan at (1, 3), the first of 1 entries"),
        (masked(1, np.inf), [], "has a loss_mask with inf at (1, 3), the first of 1 entries"),
        ({"input_ids": IDS}, ["--workers", "2"], "--workers is 2; probe runs on one rank"),
    ],
)
def test_input_that_cannot_be_answered(
    folder: Path, tmp_path: Path, tensors: Arrays, options: list[str], message: str
) -> None:
    save_file(tensors, tmp_path / "in")
    result = invoke("probe", folder, "--input", tmp_path / "in", "-o", tmp_path / "out", *options)
    assert result.exit_code == 1
    assert message in result.output
    assert not (tmp_path / "out").exists()


def test_files_that_cannot_be_read_or_written(folder: Path, tmp_path: Path) -> None:
    save_file({"input_ids": IDS}, tmp_path / "in")
    missing = invoke("probe", folder, "--input", tmp_path / "none", "-o", tmp_path / "out")
    assert missing.exit_code == 3
    assert f"{tmp_path / 'none'} cannot be read: No such file or directory." in missing.output
    nowhere = invoke("probe", folder, "--input", tmp_path / "in", "-o", tmp_path / "no" / "out")
    assert nowhere.exit_code == 3
    assert f"{tmp_path / 'no' / 'out'} cannot be written: No such file or directory." in nowhere.output


def test_no_file_that_is_read_is_replaced(folder: Path, tmp_path: Path) -> None:
    save_file({"input_ids": IDS}, tmp_path / "in")
    (tmp_path / "model.yaml").write_text(YAML)
    (tmp_path / "link").symlink_to(tmp_path / "in")
    options = ("--input", tmp_path / "in", "--config", tmp_path / "model.yaml")
    for name in ("in", "link", "model.yaml", "hf/model.safetensors"):
        before = (tmp_path / name).read_bytes()
        result = invoke("probe", folder, *options, "-o", tmp_path / name)
        assert result.exit_code == 2, result.output
        assert f"-o {tmp_path / name} is " in result.output
        assert (tmp_path / name).read_bytes() == before
    (tmp_path / "earlier").write_text("answers")
    done("probe", folder, *options, "-o", tmp_path / "earlier")
    assert load_file(tmp_path / "earlier")["logits"].shape == (2, 9, 257)


def test_more_tokens_than_the_model_is_made_for_are_worth_a_note(tmp_path: Path) -> None:
    folder = hf_folder(tmp_path / "hf", rope_scaling=None, max_position_embeddings=8)
    save_file({"input_ids": IDS}, tmp_path / "in")
    save_file({"input_ids": IDS[:, :8]}, tmp_path / "short")
    result = done("probe", folder, "--input", tmp_path / "in", "-o", tmp_path / "out")
    assert "note: model.max_position_embeddings is 8, below the 9 tokens of the input;" in result.stderr
    assert "note:" not in done("probe", folder, "--input", tmp_path / "short", "-o", tmp_path / "out").stderr
