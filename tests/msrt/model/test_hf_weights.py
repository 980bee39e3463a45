"""Hugging Face tensors into parameters and back, and every way in which they may not fit."""

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from safetensors.numpy import load_file, save_file

from msmigrate.problems import UnreadableError, UserError
from msrt.models.deepseek_v3.model import DeepSeekV3
from msrt.weights.hf import import_hf
from msrt.weights.layout import InterleavedRows, Rows, StackedExperts
from msrt.weights.names import to_hub
from msrt.weights.safetensors import read_header

from . import tiny_model

Tensors = dict[str, NDArray[np.float32]]


def exported(built: DeepSeekV3) -> Tensors:
    parts = to_hub(built.name_table(), tiny_model.parameters(built))
    return {name: np.ascontiguousarray(part) for name, part in parts.items()}


def load(built: DeepSeekV3, source: Path) -> None:
    import_hf(dict(built.parameters_and_names()), built.name_table(), source)


def test_layouts_by_hand() -> None:
    gate, up = np.array([[1, 2], [3, 4]], np.float32), np.array([[5, 6], [7, 8]], np.float32)
    assert InterleavedRows().join([gate, up])[:, 0].tolist() == [1, 5, 3, 7]
    assert Rows((2, 2)).join([gate, up])[:, 0].tolist() == [1, 3, 5, 7]
    stacked = StackedExperts(2).join([gate, up, np.float32(10) * gate, np.float32(10) * up])
    assert stacked.shape == (2, 2, 4)
    assert stacked[0].tolist() == [[1, 3, 5, 7], [2, 4, 6, 8]]
    assert stacked[1, 0].tolist() == [10, 30, 50, 70]


@pytest.mark.parametrize("changes", [{}, {"q_lora_rank": None}, {"qk_layernorm": False, "tie_word_embeddings": True}])
def test_every_parameter_comes_back_from_its_tensors(changes: dict[str, object], tmp_path: Path) -> None:
    built, other = tiny_model.model(3, **changes), tiny_model.model(99, **changes)
    tensors = exported(built)
    names = sorted(tensors)
    save_file({name: tensors[name] for name in names[::2]}, tmp_path / "a.safetensors")
    save_file({name: tensors[name] for name in names[1::2]}, tmp_path / "b.safetensors")
    load(other, tmp_path)
    before, after = tiny_model.parameters(built), tiny_model.parameters(other)
    assert before.keys() == after.keys()
    for name, value in before.items():
        np.testing.assert_array_equal(after[name], value, err_msg=name)


def test_hub_names_of_a_layer_with_experts() -> None:
    names = {name.removeprefix("model.layers.1.") for name in exported(tiny_model.model()) if "layers.1." in name}
    assert {"self_attn.q_a_proj.weight", "self_attn.kv_a_proj_with_mqa.weight", "mlp.gate.weight"} <= names
    assert {"mlp.gate.e_score_correction_bias", "mlp.experts.7.up_proj.weight"} <= names
    assert "self_attn.q_proj.weight" not in names


def test_gradients_of_some_parameters_map_alone() -> None:
    built = tiny_model.model()
    grad = np.arange(20 * 12, dtype=np.float32).reshape(20, 12)
    mapped = to_hub(built.name_table(), {"decoder.layers.0.mlp.linear_fc1.weight": grad})
    assert sorted(mapped) == ["model.layers.0.mlp.gate_proj.weight", "model.layers.0.mlp.up_proj.weight"]
    np.testing.assert_array_equal(mapped["model.layers.0.mlp.up_proj.weight"], grad[1::2])


def test_missing_unexpected_and_misshapen_tensors_are_all_listed_and_nothing_changes(tmp_path: Path) -> None:
    built = tiny_model.model()
    tensors = exported(tiny_model.model(seed=5))
    del tensors["lm_head.weight"]
    tensors["model.layers.9.input_layernorm.weight"] = np.zeros(12, np.float32)
    tensors["model.norm.weight"] = np.zeros(13, np.float32)
    save_file(tensors, tmp_path / "model.safetensors")
    before = {name: value.copy() for name, value in tiny_model.parameters(built).items()}
    with pytest.raises(UserError) as caught:
        load(built, tmp_path / "model.safetensors")
    message = str(caught.value)
    assert "1 tensor is missing: lm_head.weight." in message
    assert "1 tensor is unexpected: model.layers.9.input_layernorm.weight." in message
    assert "model.norm.weight is (13,), the model needs (12,)" in message
    for name, value in tiny_model.parameters(built).items():
        np.testing.assert_array_equal(value, before[name])


def test_long_lists_are_cut(tmp_path: Path) -> None:
    save_file({"x": np.zeros(1, np.float32)}, tmp_path / "model.safetensors")
    with pytest.raises(UserError, match=r"\d+ tensors are missing: .* and \d+ more\."):
        load(tiny_model.model(), tmp_path)


def test_two_files_with_the_same_tensor_are_refused(tmp_path: Path) -> None:
    for name in "ab":
        save_file({"lm_head.weight": np.zeros(1, np.float32)}, tmp_path / f"{name}.safetensors")
    with pytest.raises(UserError, match=r"both hold lm_head\.weight"):
        load(tiny_model.model(), tmp_path)


@pytest.mark.parametrize("kind", ["F32", "F16", "BF16", "F64"])
def test_every_float_type_is_read_as_float32(kind: str, tmp_path: Path) -> None:
    values = np.array([[1.5, -2.0], [0.0, 96.0]], np.float32)
    stored = {
        "F32": values, "F16": values.astype(np.float16), "F64": values.astype(np.float64),
        "BF16": (values.view(np.uint32) >> 16).astype(np.uint16),
    }[kind]  # fmt: skip
    path = tmp_path / "x.safetensors"
    save_file({"first": np.zeros(3, np.float32), "x": stored}, path)
    if kind == "BF16":
        # safetensors' numpy side has no bfloat16: rename the type in a file of 16-bit integers.
        raw = path.read_bytes()
        header = int.from_bytes(raw[:8], "little") + 1
        path.write_bytes(header.to_bytes(8, "little") + raw[8:].replace(b'"U16"', b'"BF16"'))
    loaded = read_header(path)["x"].load()
    assert loaded.dtype == np.float32
    np.testing.assert_array_equal(loaded, values)


def test_files_that_are_no_safetensors(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    with pytest.raises(UnreadableError, match="cannot be read"):
        read_header(path)
    with pytest.raises(UnreadableError, match=r"holds no \*\.safetensors file"):
        load(tiny_model.model(), tmp_path)
    path.write_bytes(b"\xff" * 40)
    with pytest.raises(UnreadableError, match="does not begin with the length of a header"):
        read_header(path)
    path.write_bytes((4).to_bytes(8, "little") + b"nope")
    with pytest.raises(UnreadableError, match="not JSON"):
        read_header(path)
    save_file({"x": np.zeros(100, np.float32)}, path)
    path.write_bytes(path.read_bytes()[:-8])
    with pytest.raises(UnreadableError, match="cut short"):
        read_header(path)
    save_file({"x": np.zeros(3, np.int32)}, path)
    with pytest.raises(UnreadableError, match="of type I32"):
        read_header(path)["x"].load()
    assert load_file(path)["x"].dtype == np.int32
