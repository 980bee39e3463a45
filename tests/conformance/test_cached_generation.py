"""Generation that remembers against full forward passes: transformers' and our own."""

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from safetensors.numpy import load_file

from msrt.exchange.source import open_source
from msrt.inference.generate import continued
from msrt.inference.sampling import Sampler
from msrt.ops.autograd import array, tensor

MODELS = ["deepseek_v3_yarn_qlora", "deepseek_v3_noqlora", "qwen3", "qwen3_moe", "llama"]
HIDDEN = 2e-5
"""Tolerance of the golden READMEs."""


@pytest.mark.parametrize("name", MODELS)
def test_scores_on_given_tokens_are_those_of_transformers(shared: Path, name: str) -> None:
    folder = shared / "golden" / name
    golden = load_file(folder / "golden.safetensors")
    ids, prompt = golden["input_ids"][0].tolist(), 5
    seen: list[NDArray[np.float32]] = []

    def follow(scores: NDArray[np.float32]) -> int:
        seen.append(scores)
        return int(ids[prompt + len(seen) - 1])

    tokens = continued(open_source(folder).load(), ids[:prompt], follow)
    for _ in ids[prompt:]:
        next(tokens)
    np.testing.assert_allclose(seen, golden["logits"][0, prompt - 1 : -1], rtol=0, atol=HIDDEN)


@pytest.mark.parametrize("name", MODELS)
def test_every_token_is_the_best_of_the_full_forward_pass(shared: Path, name: str) -> None:
    folder = shared / "golden" / name
    model = open_source(folder).load()
    sequence = load_file(folder / "golden.safetensors")["input_ids"][0, :5].tolist()
    tokens = continued(model, list(sequence), Sampler(temperature=0, top_p=1, seed=0))
    for _ in range(24):
        full = array(model.logits(tensor(np.asarray([sequence], np.int32))))[0, -1]
        sequence.append(next(tokens))
        assert sequence[-1] == full.argmax()
