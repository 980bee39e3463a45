"""A pynative.yaml into dataclasses: names, types and bounds, with places and advice."""

import pytest

from msmigrate.findings import Severity
from msmigrate.problems import UserError
from msmigrate.pynative.load import Loaded, load_config

PYNATIVE = """\
training:
  steps: 10
  max_norm: 1
lr_scheduler:
  type: ConstantWarmUpLR
  learning_rate: 1.e-3
  warmup_ratio: 0
train_dataset:
  dataloader:
    type: BlendedMegatronDatasetDataLoader
    sizes: [10, 0, 0]
model:
  model_type: deepseek_v3
  architectures: DeepseekV3ForCausalLM
  num_layers: 3
recompute:
  mode: full
  full_recompute_layer: [0-1, 3]
"""


def loaded(text: str = PYNATIVE, *overrides: tuple[str, str]) -> Loaded:
    return load_config(text, "p.yaml", overrides)


def test_values_defaults_and_places() -> None:
    found = loaded()
    assert found.config.training.steps == 10
    assert found.config.training.max_norm == 1.0
    assert found.config.training.seed == 42
    assert found.config.train_dataset.dataloader.sizes == (10, 0, 0)
    assert found.config.model.num_hidden_layers == 3
    assert found.config.recompute.full_recompute_layer == ("0-1", 3)
    assert (found.given["training.steps"].line, found.given["training.steps"].column) == (2, 10)
    assert "training.seed" not in found.given


def test_overrides_replace_and_have_no_place() -> None:
    found = loaded(PYNATIVE, ("training.steps", "99"), ("recompute.mode", "None"))
    assert found.config.training.steps == 99
    assert found.config.recompute.mode == "None"
    assert found.given["training.steps"].line is None


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("steps: 10", "stepz: 10", ["p.yaml:2:3", "unknown key `stepz`", "did you mean `steps`"]),
        ("steps: 10", "data_path: x", ["its place is `train_dataset.dataloader.config.data_path`"]),
        ("training:", "trainings:", ["unknown key `trainings`", "`training`"]),
        ("steps: 10", "steps: '10'", ["a text", "an integer", "remove the quotes"]),
        ("steps: 10", "steps: 1.5", ["a number", "an integer"]),
        ("steps: 10", "steps: True", ["a truth value"]),
        ("steps: 10", "steps: 0", ["smallest legal value is 1"]),
        ("steps: 10", "steps:", ["null", "remove the key"]),
        ("1.e-3", "1e-3", ["no decimal point", "write 0.001"]),
        ("1.e-3", ".nan", ["finite"]),
        ("1.e-3", ".inf", ["finite"]),
        ("[0-1, 3]", "[0-1, a]", ["`a`", "a range such as"]),
        ("[0-1, 3]", "[3-1]", ["backwards"]),
        ("[0-1, 3]", "[0-1, 1]", ["behind layer 1"]),
        ("training:\n", "optimizer:\n  betas: [0.9]\ntraining:\n", ["a list of 2"]),
        ("warmup_ratio: 0", "warmup_ratio: 1.2", ["largest legal value is 1"]),
        ("mode: full", "mode: null", ["recompute.mode"]),
        ("mode: full", "mode: all", ["one of None, full, select"]),
        ("[0-1, 3]", "0-1", ["a list"]),
        ("  type: ConstantWarmUpLR\n", "", ["`lr_scheduler.type` is missing"]),
        ("  num_layers: 3\n", "  num_layers: 3\n  num_hidden_layers: 3\n", ["given twice"]),
        ("training:\n  steps: 10\n  max_norm: 1\n", "training: 3\n", ["section of keys"]),
    ],
)
def test_faults(old: str, new: str, words: list[str]) -> None:
    assert PYNATIVE.count(old) == 1
    with pytest.raises(UserError) as caught:
        loaded(PYNATIVE.replace(old, new))
    for word in words:
        assert word in str(caught.value)


def test_all_faults_at_once() -> None:
    text = PYNATIVE.replace("steps: 10", "stepz: 10").replace("1.e-3", "1e-3").replace("mode: full", "mode: all")
    with pytest.raises(UserError) as caught:
        loaded(text)
    assert [line.split(": ")[0] for line in str(caught.value).split("\n")] == [
        "p.yaml:2:3",
        "p.yaml:6:18",
        "p.yaml:17:9",
    ]


def test_a_graph_file_is_named() -> None:
    with pytest.raises(UserError, match="msmigrate convert"):
        loaded("runner_config: {epochs: 1}\n")


def test_the_manuals_second_place_of_a_key() -> None:
    found = loaded(PYNATIVE.replace("train_dataset:\n", "train_dataset:\n  python_multiprocessing: True\n"))
    assert found.config.train_dataset.dataloader.python_multiprocessing is True
    assert [finding.severity for finding in found.findings] == [Severity.WARNING]


@pytest.mark.parametrize(
    "override", [("training.stepz", "1"), ("training", "1"), ("training.steps", "x"), ("a b", "1")]
)
def test_bad_overrides(override: tuple[str, str]) -> None:
    with pytest.raises(UserError, match=r"--set|training\.steps"):
        loaded(PYNATIVE, override)


def test_left_out_and_null_differ_where_null_means_none() -> None:
    assert loaded().config.model.q_lora_rank == 1536
    assert loaded(PYNATIVE.replace("num_layers: 3", "q_lora_rank: null")).config.model.q_lora_rank is None
    assert loaded(PYNATIVE.replace("num_layers: 3", "q_lora_rank: 8")).config.model.q_lora_rank == 8
