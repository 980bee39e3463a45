"""`msrt generate`: tokens, their choice, their text."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small_hf import CONFIG, YAML, done, hf_folder, invoke, weights, write

from msrt.exchange.source import open_source
from msrt.inference.generate import continued
from msrt.inference.sampling import Sampler
from msrt.inference.text import ByteText, text_of
from msrt.ops.autograd import array, tensor

QWEN3: dict[str, Any] = {
    "architectures": ["Qwen3ForCausalLM"],
    "model_type": "qwen3",
    "num_key_value_heads": 1,
    "head_dim": 8,
    "rope_scaling": None,
}


@pytest.mark.parametrize("changes", [{}, {"q_lora_rank": None, "rope_scaling": None}, QWEN3])
def test_remembered_positions_change_no_score(changes: dict[str, Any], tmp_path: Path) -> None:
    model = open_source(hf_folder(tmp_path / "hf", **changes)).load()
    sequence = [72, 101, 108]
    seen: list[Any] = []

    def best(scores: Any) -> int:
        seen.append(scores)
        return int(scores.argmax())

    tokens = continued(model, list(sequence), best)
    for step in range(12):
        full = array(model.logits(tensor(np.asarray([sequence], np.int32))))[0, -1]
        sequence.append(next(tokens))
        np.testing.assert_allclose(seen[step], full, atol=1e-5)


def test_the_text_is_the_same_for_the_same_seed(tmp_path: Path) -> None:
    folder = hf_folder(tmp_path / "hf")
    done("import", folder, "-o", tmp_path / "c")

    def text(model: Path, *options: object) -> str:
        return done("generate", model, "--prompt", "Hé", "--tokens", 40, *options).stdout

    assert text(folder) == text(tmp_path / "c")
    assert text(folder, "--temperature", 2) == text(folder, "--temperature", 2, "--seed", 0)
    assert text(folder, "--temperature", 2) != text(folder, "--temperature", 2, "--seed", 1)
    assert text(folder, "--temperature", 2, "--top-p", 0) == text(folder)


def test_the_end_of_a_document_ends_the_text(tmp_path: Path) -> None:
    folder = hf_folder(tmp_path / "hf")
    model = open_source(folder).load()
    first = next(continued(model, list(b"x"), Sampler(0, 1, 0)))
    assert first != 256
    tensors = weights(CONFIG)
    tensors["lm_head.weight"][[first, 256]] = tensors["lm_head.weight"][[256, first]]
    write(folder / "model.safetensors", {name: ("F32", value) for name, value in tensors.items()})
    result = done("generate", folder, "--prompt", "x", "--tokens", 63)
    assert result.stdout == "\n"
    assert result.stderr == "note: There is no tokenizer.json: every byte of the text is a token.\n"


def test_bytes_are_text_once_a_character_is_complete() -> None:
    text = ByteText(300)
    assert text.size == 257
    assert [text.put(byte) for byte in "é!".encode()] == ["", "é", "!"]
    assert text.put(0xE4) + text.rest() == "\ufffd"


def test_the_choice_of_a_token() -> None:
    scores = np.log(np.array([0.1, 0.5, 0.15, 0.25], np.float32))
    assert Sampler(0, 1, 0)(scores) == 1
    assert Sampler(0, 1, 0)(np.array([2, 7, 7], np.float32)) == 1

    def shares(temperature: float, top_p: float) -> list[float]:
        sampler = Sampler(temperature, top_p, 3)
        drawn = np.bincount([sampler(scores) for _ in range(4000)], minlength=4) / 4000
        return [float(share) for share in drawn]

    assert shares(1, 1) == pytest.approx([0.1, 0.5, 0.15, 0.25], abs=0.03)
    assert shares(1, 0.7) == pytest.approx([0, 2 / 3, 0, 1 / 3], abs=0.03)
    assert shares(1, 0.4) == [0, 1, 0, 0]
    squares = np.array([0.1, 0.5, 0.15, 0.25]) ** 2
    assert shares(0.5, 1) == pytest.approx(list(squares / squares.sum()), abs=0.03)


def test_a_reader_that_has_gone_away_is_no_failure(tmp_path: Path) -> None:
    folder = hf_folder(tmp_path / "hf")
    command = [sys.executable, "-m", "msrt", "generate", str(folder), "--prompt", "x", "--tokens", "1000000"]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3] / "src")}
    process = subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace"
    )
    assert process.stdout is not None
    process.stdout.close()
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 0
    assert "below the 1000001 tokens of --prompt and --tokens" in errors
    assert all(line.startswith("note: ") for line in errors.splitlines())


def test_what_cannot_be_continued(tmp_path: Path) -> None:
    folder = hf_folder(tmp_path / "hf")
    empty = invoke("generate", folder, "--prompt", "")
    assert empty.exit_code == 2
    assert "--prompt is empty" in empty.output
    few = hf_folder(tmp_path / "few", vocab_size=128)
    result = invoke("generate", few, "--prompt", "x")
    assert result.exit_code == 1
    assert f"The model in {few} has 128 tokens and no tokenizer.json" in result.output
    assert invoke("generate", tmp_path, "--prompt", "x").exit_code == 3


def test_a_sequence_longer_than_the_models(tmp_path: Path) -> None:
    (tmp_path / "p.yaml").write_text(YAML)
    done("import", hf_folder(tmp_path / "hf"), "-o", tmp_path / "c", "--config", tmp_path / "p.yaml")
    result = invoke("generate", tmp_path / "c", "--prompt", "twelve bytes", "--tokens", 21)
    assert result.exit_code == 1
    assert "together 33, more than the model's 32 (model.seq_length); lower --tokens to 20." in result.output
    done("generate", tmp_path / "c", "--prompt", "twelve bytes", "--tokens", 20)


def test_a_tokenizer_of_hugging_face(tmp_path: Path) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    folder = hf_folder(tmp_path / "hf", vocab_size=128, eos_token_id=[3, 4])
    words = {"<unk>": 0, "hello": 1, "wide": 2, "world": 3}
    made = tokenizers.Tokenizer(tokenizers.models.WordLevel(words, unk_token="<unk>"))
    made.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    made.save(str(folder / "tokenizer.json"))
    text = text_of(folder, 128, folder)
    assert text.encode("hello world") == [1, 3]
    assert text.size == 4
    assert text.ends == {3, 4}
    assert text.put(1) + text.put(2) + text.rest() == "hello wide"
    result = done("generate", folder, "--prompt", "hello", "--tokens", 6)
    assert set(result.stdout.split()) <= set(words)
    assert "note:" not in result.output
    (folder / "tokenizer.json").write_text("{}")
    broken = invoke("generate", folder, "--prompt", "hello")
    assert broken.exit_code == 3
    assert f"{folder / 'tokenizer.json'} is no tokenizer" in broken.output
