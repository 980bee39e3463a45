"""`msrt import` and `msrt export`: every bit comes back, and what does not fit is refused with nothing written."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors import safe_open
from small_hf import CONFIG, YAML, bits, done, hf_folder, invoke, stored, weights, weights_of, write

from msmigrate.pynative import Model
from msrt.checkpoint.common import common_of
from msrt.checkpoint.read import open_checkpoint
from msrt.checkpoint.write import TensorFile, all_of, write_checkpoint
from msrt.exchange.export_hf import export_hf_folder
from msrt.exchange.same_model import other_arithmetic
from msrt.exchange.source import open_source, read_model_section
from msrt.models import config_from_hf
from msrt.weights.safetensors_file import TensorSpec

WEIGHTS = "checkpoint-model-0000000-0000001.safetensors"


@pytest.mark.parametrize("dtype", ["F32", "BF16", "F16", "F64"])
def test_every_bit_comes_back_both_ways(dtype: str, tmp_path: Path) -> None:
    folder = hf_folder(tmp_path / "hf", dtype)
    done("import", folder, "-o", tmp_path / "first")
    done("export", tmp_path / "first", "-o", tmp_path / "back")
    assert stored(tmp_path / "back") == stored(folder)
    assert {kind for kind, _, _ in stored(tmp_path / "back").values()} == {dtype}
    assert (tmp_path / "back" / "config.json").read_bytes() == (folder / "config.json").read_bytes()
    done("import", tmp_path / "back", "-o", tmp_path / "second")
    first, second = (tmp_path / name / "iteration_00000000" for name in ("first", "second"))
    assert sorted(path.name for path in first.iterdir()) == sorted(path.name for path in second.iterdir())
    assert (first / WEIGHTS).read_bytes() == (second / WEIGHTS).read_bytes()


def test_the_checkpoint_has_the_contracts_files_and_pynative_names(tmp_path: Path) -> None:
    done("import", hf_folder(tmp_path / "hf", "BF16"), "-o", tmp_path / "c")
    assert (tmp_path / "c" / "latest_checkpointed_iteration.txt").read_text() == "0\n"
    folder = tmp_path / "c" / "iteration_00000000"
    metadata = json.loads((folder / "metadata.json").read_text())
    assert metadata["version"] == 1
    assert metadata["tensors"]["decoder.layers.1.mlp.experts.weight1"] == {
        "shape": [4, 16, 16],
        "dtype": "BF16",
        "pieces": [{"file": WEIGHTS, "offset": [0, 0, 0], "shape": [4, 16, 16]}],
    }
    assert set(metadata["files"]) == {WEIGHTS, "common.json", "hf/config.json"}
    assert json.loads((folder / "common.json").read_text())["global_step"] == 0
    with safe_open(folder / WEIGHTS, "numpy") as file:
        assert set(file.keys()) == set(metadata["tensors"])


def test_exported_files_are_cut_at_a_size_and_have_an_index(tmp_path: Path) -> None:
    folder = hf_folder(tmp_path / "hf", "F16")
    done("import", folder, "-o", tmp_path / "c")
    files = export_hf_folder(tmp_path / "c", tmp_path / "cut", print, shard_bytes=6000)
    assert len(files) > 2
    assert files[0].name == f"model-00001-of-{len(files):05d}.safetensors"
    assert stored(tmp_path / "cut") == stored(folder)
    index = json.loads((tmp_path / "cut" / "model.safetensors.index.json").read_text())
    assert set(index["weight_map"]) == set(stored(folder))
    assert index["metadata"]["total_size"] == sum(len(data) for _, _, data in stored(folder).values())
    with safe_open(files[0], "numpy") as file:
        assert file.metadata() == {"format": "pt"}
    done("import", tmp_path / "cut", "-o", tmp_path / "again")
    assert open_checkpoint(tmp_path / "again").metadata.tensors == open_checkpoint(tmp_path / "c").metadata.tensors
    missing = files[1]
    missing.unlink()
    result = invoke("import", tmp_path / "cut", "-o", tmp_path / "third")
    assert result.exit_code == 3
    assert f"{missing} cannot be read" in result.output


def test_tokenizer_and_generation_settings_go_along(tmp_path: Path) -> None:
    folder = hf_folder(tmp_path / "hf")
    (folder / "tokenizer.json").write_text("{}")
    (folder / "notes.pdf").write_text("no")
    done("import", folder, "-o", tmp_path / "c")
    done("export", tmp_path / "c" / "iteration_00000000", "-o", tmp_path / "back")
    names = {path.name for path in (tmp_path / "back").iterdir()}
    assert names == {"config.json", "tokenizer.json", "model.safetensors"}


def test_tensors_of_two_types_in_one_parameter_become_float32_with_a_note(tmp_path: Path) -> None:
    folder = hf_folder(tmp_path / "hf")
    tensors = {name: ("BF16" if "gate_proj" in name else "F32", value) for name, value in weights(CONFIG).items()}
    write(folder / "model.safetensors", {name: (kind, bits(value, kind)) for name, (kind, value) in tensors.items()})
    result = done("import", folder, "-o", tmp_path / "c")
    assert "are made of tensors of several types; they are kept as F32" in result.output
    kept = open_checkpoint(tmp_path / "c").raw("decoder.layers.0.mlp.linear_fc1.weight")
    gate = weights(CONFIG)["model.layers.0.mlp.gate_proj.weight"]
    np.testing.assert_array_equal(kept[0::2].view(np.uint32), gate.view(np.uint32) & 0xFFFF0000)


def test_multi_token_prediction_goes_along_when_the_config_has_it(tmp_path: Path) -> None:
    yaml = tmp_path / "p.yaml"
    one = "num_nextn_predict_layers: 1\n  mtp_loss_scaling_factor: 0.3"
    yaml.write_text(YAML.replace("num_nextn_predict_layers: 0", one))
    folder = hf_folder(tmp_path / "hf", num_nextn_predict_layers=1)
    tensors = weights_of(read_model_section(str(yaml))[0])
    copy = "model.layers.2.embed_tokens.weight"
    tensors[copy] = tensors["model.embed_tokens.weight"]
    write(folder / "model.safetensors", {name: ("F32", value) for name, value in tensors.items()})
    done("import", folder, "-o", tmp_path / "all", "--config", yaml)
    done("export", tmp_path / "all", "-o", tmp_path / "all_back")
    assert stored(tmp_path / "all_back") == stored(folder)
    result = done("import", folder, "-o", tmp_path / "main")
    extra = [name for name in tensors if name.startswith("model.layers.2.")]
    assert f"note: {len(extra)} tensors that this model has no use for are left out, such as model." in result.output
    done("export", tmp_path / "main", "-o", tmp_path / "main_back")
    assert stored(tmp_path / "main_back").keys() == tensors.keys() - set(extra)


def test_weights_that_do_not_fit_are_listed_and_nothing_is_written(tmp_path: Path) -> None:
    folder = hf_folder(tmp_path / "hf")
    tensors = weights(CONFIG)
    tensors["extra.weight"] = tensors.pop("lm_head.weight")
    write(folder / "model.safetensors", {name: ("F32", value) for name, value in tensors.items()})
    result = invoke("import", folder, "-o", tmp_path / "c")
    assert result.exit_code == 1
    assert "1 tensor is missing: lm_head.weight. 1 tensor is unexpected: extra.weight." in result.output
    assert [path.name for path in tmp_path.iterdir()] == ["hf"]


def test_quantised_weights_are_refused(tmp_path: Path) -> None:
    folder = hf_folder(tmp_path / "hf")
    tensors = {name: ("F32", value) for name, value in weights(CONFIG).items()}
    tensors["lm_head.weight"] = ("I8", tensors["lm_head.weight"][1].astype(np.int8))
    write(folder / "model.safetensors", tensors)
    result = invoke("import", folder, "-o", tmp_path / "c")
    assert result.exit_code == 1
    assert "such as lm_head.weight (I8)" in result.output


def test_the_config_of_the_same_model_is_taken(tmp_path: Path) -> None:
    (tmp_path / "p.yaml").write_text(YAML)
    result = done("import", hf_folder(tmp_path / "hf"), "-o", tmp_path / "c", "--config", tmp_path / "p.yaml")
    assert "note:" not in result.output
    config, section = read_model_section(str(tmp_path / "p.yaml"))
    assert open_source(tmp_path / "c").config == config
    assert section.seq_length == 32


def test_every_key_of_another_model_is_named_with_both_values(tmp_path: Path) -> None:
    yaml = YAML.replace("n_routed_experts: 4", "n_routed_experts: 6").replace("q_lora_rank: 6", "q_lora_rank: null")
    (tmp_path / "p.yaml").write_text(yaml)
    result = invoke("import", hf_folder(tmp_path / "hf"), "-o", tmp_path / "c", "--config", tmp_path / "p.yaml")
    assert result.exit_code == 1
    hub, ours = tmp_path / "hf" / "config.json", tmp_path / "p.yaml"
    assert f"n_routed_experts: 4 in {hub}, 6 in {ours}" in result.output
    assert f"q_lora_rank: 6 in {hub}, null in {ours}" in result.output
    assert "hidden_size" not in result.output
    assert not (tmp_path / "c").exists()


def test_another_arithmetic_is_a_note(tmp_path: Path) -> None:
    (tmp_path / "p.yaml").write_text(YAML.replace("max_position_embeddings: 16", "max_position_embeddings: 64"))
    result = done("import", hf_folder(tmp_path / "hf"), "-o", tmp_path / "c", "--config", tmp_path / "p.yaml")
    assert "original_length: 64 / 16" in result.output


def test_a_checkpoint_of_training_gets_a_config_json(tmp_path: Path) -> None:
    """Such a checkpoint has a model section and no config.json."""
    (tmp_path / "p.yaml").write_text(YAML)
    done("import", hf_folder(tmp_path / "hf"), "-o", tmp_path / "c", "--config", tmp_path / "p.yaml")
    trained = as_trained(tmp_path / "c", tmp_path / "trained", read_model_section(str(tmp_path / "p.yaml"))[1])
    result = done("export", trained, "-o", tmp_path / "out")
    assert "note:" not in result.output
    values = json.loads((tmp_path / "out" / "config.json").read_text())
    assert values["rope_scaling"]["original_max_position_embeddings"] == 16
    assert values["max_position_embeddings"] == 64
    assert values["torch_dtype"] == "float32"
    assert other_arithmetic(open_source(trained).config, config_from_hf(values)) == []
    assert stored(tmp_path / "out") == stored(tmp_path / "hf")


def test_a_config_json_that_computes_something_else_says_so(tmp_path: Path) -> None:
    (tmp_path / "p.yaml").write_text(YAML.replace("mscale: 1.0\n", "mscale: 0.5\n", 1))
    done("import", hf_folder(tmp_path / "hf"), "-o", tmp_path / "c", "--config", tmp_path / "p.yaml")
    trained = as_trained(tmp_path / "c", tmp_path / "trained", read_model_section(str(tmp_path / "p.yaml"))[1])
    result = done("export", trained, "-o", tmp_path / "out")
    assert "attention.softmax_scale" in result.output
    assert "rotary.angle_scale" in result.output


def as_trained(source: Path, target: Path, section: Model) -> Path:
    """The tensors of a checkpoint as step 100 of a run."""
    checkpoint = open_checkpoint(source)
    infos = checkpoint.metadata.tensors
    pieces = [all_of(TensorSpec(name, info.dtype, info.shape)) for name, info in infos.items()]
    file = TensorFile("p-model-0000000-0000001.safetensors", pieces, (checkpoint.raw(name) for name in infos))
    target.mkdir()
    write_checkpoint(target, 100, [file], common_of(100, section, global_batch_size=4), {})
    return target


@pytest.mark.parametrize("command", ["import", "export"])
def test_folders_that_hold_something_are_left_alone(command: str, tmp_path: Path) -> None:
    hf = hf_folder(tmp_path / "hf")
    done("import", hf, "-o", tmp_path / "c")
    source: Any = hf if command == "import" else tmp_path / "c"
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine.txt").write_text("mine")
    result = invoke(command, source, "-o", tmp_path / "full")
    assert result.exit_code == 3
    assert f"{tmp_path / 'full'} exists and is not empty" in result.output
    assert invoke(command, source, "-o", tmp_path / "full" / "mine.txt").exit_code == 3
    assert [path.name for path in (tmp_path / "full").iterdir()] == ["mine.txt"]
    (tmp_path / "empty").mkdir()
    done(command, source, "-o", tmp_path / "empty")


def test_folders_that_are_neither(tmp_path: Path) -> None:
    hf = hf_folder(tmp_path / "hf")
    assert "is a Hugging Face folder already" in invoke("export", hf, "-o", tmp_path / "x").output
    result = invoke("export", tmp_path, "-o", tmp_path / "x")
    assert result.exit_code == 3
    assert "is neither a checkpoint" in result.output
    (hf / "config.json").write_text('{"model_type": "bert"}')
    result = invoke("import", hf, "-o", tmp_path / "x")
    assert result.exit_code == 1
    assert f"{hf / 'config.json'}: model_type is 'bert'; msrt has" in result.output
    (hf / "config.json").unlink()
    assert invoke("import", hf, "-o", tmp_path / "x").exit_code == 3
