"""Hugging Face folders with something wrong in them: each fault is one sentence, in the words of the user's files."""

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small_hf import CONFIG, bits, done, hf_folder, invoke, weights, write

from msmigrate.json_text import parse_json
from msmigrate.problems import UnreadableError, UserError
from msrt.models import config_from_hf
from msrt.models.hf import EXPERTS
from msrt.weights.safetensors import all_finite, read_header

MODEL = "model.safetensors"
INDEX = "model.safetensors.index.json"
LINEAR = {"rope_type": "linear", "factor": 2.0}
QWEN = {"model_type": "qwen3_moe", "num_hidden_layers": 2, "num_experts_per_tok": 2}


def deepseek(**changes: Any) -> Any:
    return config_from_hf({**CONFIG, **changes})


def test_two_rotary_settings_are_taken_when_they_agree_alone() -> None:
    agreeing = {"rope_parameters": {**LINEAR, "rope_theta": 10000.0}, "rope_scaling": {"type": "linear", "factor": 2}}
    assert deepseek(**agreeing).rotary == deepseek(rope_scaling=LINEAR).rotary
    with pytest.raises(UserError, match="rope_type 'default' in rope_parameters and 'linear' in rope_scaling"):
        deepseek(rope_parameters={"rope_type": "default"}, rope_scaling=LINEAR)
    with pytest.raises(UserError, match="rope_parameters is 3; it must be a mapping"):
        deepseek(rope_parameters=3)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"rms_norm_eps": -1.0}, "^rms_norm_eps is -1.0; it must be at least 0"),
        ({"rms_norm_eps": math.nan}, "^rms_norm_eps is nan; it must be a finite number"),
        ({"initializer_range": math.inf}, "^initializer_range is inf; it must be a finite"),
        ({"rope_theta": 0}, "^rope_theta is 0; it must be at least 1"),
        ({"routed_scaling_factor": math.nan}, "^routed_scaling_factor is nan"),
        ({"vocab_size": 10**5000}, "^vocab_size is an integer of about 5000 digits; it must be at most 2,147,483,647"),
        ({"num_hidden_layers": 10**9}, "^num_hidden_layers is 1,000,000,000; it must be at most 10,000"),
        ({"rope_scaling": {"type": "linear", "factor": 0}}, "factor is 0; it must be above 0"),
        ({"rope_scaling": {"type": "linear", "factor": math.nan}}, "factor must be a finite number"),
        ({"rope_scaling": {"type": "yarn", "factor": 2, "beta_fast": -1}}, "beta_fast is -1; it must be above 0"),
        ({"rope_scaling": {"type": "yarn", "factor": 2}, "rope_theta": 1}, "rope_theta is 1; with YaRN .* above 1"),
    ],
)
def test_numbers_beyond_bounds_are_refused_by_their_key(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        deepseek(**changes)


def test_an_epsilon_of_zero_is_taken() -> None:
    assert deepseek(rms_norm_eps=0).rms_norm_eps == 0


@pytest.mark.parametrize("name", EXPERTS)
def test_messages_name_a_key_as_the_file_does(name: str) -> None:
    with pytest.raises(UserError, match=rf"^num_experts_per_tok is 2 but .* 1 experts \({name}\)"):
        config_from_hf({**QWEN, name: 1})


def test_keys_that_transformers_does_not_read_are_told() -> None:
    assert deepseek(scoring_func="sigmoid", topk_method="noaux_tc", moe_layer_freq=1).remarks == ()
    remarks = deepseek(scoring_func="softmax", topk_method="greedy", moe_layer_freq=2).remarks
    asked = ['scoring_func: "softmax"', 'topk_method: "greedy"', "moe_layer_freq: 2"]
    assert all(f"has {key}, which" in remark for key, remark in zip(asked, remarks, strict=True))
    qwen = config_from_hf({**QWEN, "routed_scaling_factor": 2.5})
    assert "routed_scaling_factor: 2.5" in qwen.remarks[0]
    assert qwen.moe is not None
    assert qwen.moe.router.routed_scaling_factor == 1.0


def test_layers_of_multi_token_prediction_without_weights_are_told(tmp_path: Path) -> None:
    result = done("import", hf_folder(tmp_path / "hf", num_nextn_predict_layers=1), "-o", tmp_path / "c")
    assert "note: config.json has num_nextn_predict_layers: 1; transformers has no multi-token" in result.output


@pytest.mark.parametrize("dtype", ["F32", "BF16", "F16"])
def test_values_that_are_not_finite_are_told_by_tensor(dtype: str, tmp_path: Path) -> None:
    folder, tensors = hf_folder(tmp_path / "hf"), weights(CONFIG)
    tensors["model.layers.0.mlp.up_proj.weight"][1, 2] = math.inf
    tensors["lm_head.weight"][0, 0] = math.nan
    write(folder / MODEL, {name: (dtype, bits(value, dtype)) for name, value in tensors.items()})
    result = done("import", folder, "-o", tmp_path / "c")
    told = sorted(
        result.output.partition("2 tensors hold NaN or infinite values, kept as they are: ")[2].split("\n")[0]
    )
    assert told == sorted("lm_head.weight, model.layers.0.mlp.up_proj.weight.")


def test_the_largest_finite_bfloat16_is_finite() -> None:
    assert all_finite(np.array([0x7F7F, 0xFF7F, 0], np.uint16), "BF16")
    assert not all_finite(np.array([0xFF80], np.uint16), "BF16")


def test_a_model_far_beyond_its_files_is_refused_before_it_is_made(tmp_path: Path) -> None:
    folder = hf_folder(tmp_path / "hf")
    (folder / "config.json").write_text(json.dumps({**CONFIG, "vocab_size": 2**31 - 1, "hidden_size": 2**31 - 1}))
    result = invoke("import", folder, "-o", tmp_path / "c")
    assert result.exit_code == 1
    assert "model.embed_tokens.weight is (257, 16), the model needs (2147483647, 2147483647)." in result.output


def two_shards(folder: Path, change: Callable[[dict[str, Any]], object] = lambda index: None) -> Path:
    hf_folder(folder)
    (folder / MODEL).unlink()
    tensors = {name: ("F32", value) for name, value in weights(CONFIG).items()}
    halves = (sorted(tensors)[::2], sorted(tensors)[1::2])
    for file, names in zip("ab", halves, strict=True):
        write(folder / f"{file}.safetensors", {name: tensors[name] for name in names})
    files = {name: f"{file}.safetensors" for file, names in zip("ab", halves, strict=True) for name in names}
    index = {"weight_map": files}
    change(index)
    (folder / INDEX).write_text(json.dumps(index))
    return folder


def test_an_index_that_fits_is_taken(tmp_path: Path) -> None:
    done("import", two_shards(tmp_path / "hf"), "-o", tmp_path / "c")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda index: index["weight_map"].update({"lm_head.weight": "b.safetensors"}), "lm_head.weight is in a.safe"),
        (lambda index: index["weight_map"].pop("lm_head.weight"), "lm_head.weight in a.safetensors is not listed"),
        (lambda index: index["weight_map"].update({"more": "a.safetensors"}), "more is not in a.safetensors"),
        (
            lambda index: index["weight_map"].update({"more": "../a.safetensors"}),
            "../a.safetensors, outside the folder",
        ),
        (lambda index: index["weight_map"].update({"more": 3}), "is no index: expected a weight_map of tensor names"),
        (lambda index: index.clear(), "is no index: expected a weight_map of tensor names"),
    ],
)
def test_an_index_against_the_files(change: Callable[[dict[str, Any]], object], message: str, tmp_path: Path) -> None:
    result = invoke("import", two_shards(tmp_path / "hf", change), "-o", tmp_path / "c")
    assert result.exit_code == 3
    assert message in result.output


def test_a_file_is_no_folder_to_import(tmp_path: Path) -> None:
    folder = hf_folder(tmp_path / "hf")
    result = invoke("import", folder / MODEL, "-o", tmp_path / "c")
    assert result.exit_code == 3
    assert "is a file; expected a folder with config.json and safetensors files." in result.output


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"<html><body>not found</body></html>", "file: it does not begin with the length of a header"),
        (b"", "file: it does not begin with"),
        ((99).to_bytes(8, "little") + b"{}", "is cut short: its header has 99 bytes, and 2 are there"),
        ((2).to_bytes(8, "little") + b"[]", "its header is a list"),
        ((8).to_bytes(8, "little") + b'{"a": 1}', "does not give 'a' a dtype, a shape and two data_offsets"),
    ],
)
def test_what_is_no_safetensors_file(content: bytes, message: str, tmp_path: Path) -> None:
    (tmp_path / MODEL).write_bytes(content)
    with pytest.raises(UnreadableError, match=message):
        read_header(tmp_path / MODEL)


def test_a_header_of_a_huge_shape_allocates_nothing(tmp_path: Path) -> None:
    header = json.dumps({"a": {"dtype": "F32", "shape": [2**50], "data_offsets": [0, 4]}}).encode()
    (tmp_path / MODEL).write_bytes(len(header).to_bytes(8, "little") + header + b"1234")
    with pytest.raises(UnreadableError, match="damaged: 4 bytes for"):
        read_header(tmp_path / MODEL)["a"].raw()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"{", "name:1:2: not JSON: Expecting property name"),
        (b'"\xff"', "name: not JSON: byte 0xff at 1 is not UTF-8"),
        (b"[" * 100_000, "name: its lists and objects are nested too deep"),
        (b"9" * 5000, "name: it has an integer of several thousand digits"),
    ],
)
def test_what_is_no_json_is_told_without_python(text: bytes, message: str) -> None:
    with pytest.raises(UnreadableError, match=message):
        parse_json(text, "name")


@pytest.mark.parametrize("text", ["[]", "{}", '{"version": 1, "tensors": [], "files": {}}', '{"version": 1}'])
def test_a_foreign_metadata_json_is_told_what_it_should_have(text: str, tmp_path: Path) -> None:
    done("import", hf_folder(tmp_path / "hf"), "-o", tmp_path / "c")
    (tmp_path / "c" / "iteration_00000000" / "metadata.json").write_text(text)
    result = invoke("export", tmp_path / "c", "-o", tmp_path / "back")
    assert result.exit_code == 3
    assert "expected a version, tensors with shape, dtype and pieces, and files with bytes" in result.output


def test_logits_that_are_not_finite_are_told(tmp_path: Path) -> None:
    folder, tensors = hf_folder(tmp_path / "hf"), weights(CONFIG)
    tensors["lm_head.weight"][7] = math.nan
    write(folder / MODEL, {name: ("F32", value) for name, value in tensors.items()})
    write(tmp_path / "in.safetensors", {"input_ids": ("I32", np.array([[1, 2, 3]], np.int32))})
    result = done("probe", folder, "--input", tmp_path / "in.safetensors", "-o", tmp_path / "out.safetensors")
    assert "note: 3 of the 771 values of logits are not finite" in result.output
    result = invoke("generate", folder, "--prompt", "a")
    assert result.exit_code == 1
    assert "1 of the 257 scores of the next token are not finite" in result.output
    assert "Warning" not in result.output
