"""Values that are wrong, doubtful or belong elsewhere: what is refused, what is noted, and in which words."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from graph_text import converted, edited, output

from msmigrate.hf_config import read_hf_config
from msmigrate.mapping.outcome import Fate
from msmigrate.options import Options
from msmigrate.problems import UserError
from msmigrate.wording import counted, shown

HUGE = "9" * 400
LOADER = "BlendedMegatronDatasetDataLoader"
COSINE = ("ConstantWarmUpLR", "CosineWithWarmUpLR")
STOP = ("  epochs: 2\n", "  epochs: 2\n  stop_step: 20\n")


@pytest.mark.parametrize("loader", ["MindDataset", "HFDataLoader"])
def test_sizes_tell_the_samples_of_megatron_data_alone(loader: str) -> None:
    refusals = converted(edited((LOADER, loader))).refusals
    assert any("`sizes` belongs to the Megatron loader" in entry.outcome.why for entry in refusals)
    assert any("--samples N" in str(entry.outcome.help) for entry in refusals)
    assert output(edited((LOADER, loader)), Options(samples=120))["training.steps"] == 20


def test_repeat_is_a_factor_of_the_other_loaders_alone() -> None:
    repeated = ("  drop_remainder: True\n", "  drop_remainder: True\n  repeat: 3\n")
    entry = next(e for e in converted(edited(repeated)).entries if e.graph == "train_dataset.repeat")
    assert (entry.outcome.fate, entry.outcome.why) == (Fate.DROPPED, "the Megatron loader does not read it")
    assert output(edited(repeated))["training.steps"] == 100
    assert output(edited(repeated, (LOADER, "MindDataset")), Options(samples=120))["training.steps"] == 60


SHAPES = {
    "ConstantWarmUpLR": (True, ""),
    "LinearWithWarmUpLR": (False, ""),
    "CosineWithWarmUpLR": (False, "\n  decay_steps: 10"),
    "CosineWithRestartsAndWarmUpLR": (False, ""),
    "PolynomialWithWarmUpLR": (False, ""),
    "PolynomialWithWarmUpLR with its own": (True, "\n  decay_steps: 90"),
    "ConstantWithCoolDownLR": (True, "\n  keep_steps: 2\n  decay_steps: 10"),
    "ConstantWithCoolDownLR by a ratio": (False, "\n  decay_steps: 10\n  decay_ratio: 0.1"),
    "WarmUpStableDecayLR": (False, "\n  decay_start_steps: 10"),
    "CosineAnnealingLR": (True, "\n  base_lr: 0.1\n  t_max: 30"),
    "CosineAnnealingWarmRestarts": (True, "\n  base_lr: 0.1\n  t_0: 30"),
}


@pytest.mark.parametrize("name", SHAPES)
def test_an_early_stop_matters_to_schedules_laid_out_for_the_run(name: str) -> None:
    kept, keys = SHAPES[name]
    text = edited(STOP, ("type: ConstantWarmUpLR", f"type: {name.partition(' ')[0]}{keys}"))
    conversion = converted(text)
    assert (conversion.refusals == []) is kept, [entry.outcome.why for entry in conversion.refusals]
    longer = converted(text.replace("  stop_step: 20\n", "").replace(keys or "\x00", f"{keys}\n  total_steps: 900"))
    assert not kept or longer.refusals == []


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("batch_size: 2", "batch_size: 'two'", "`runner_config.batch_size` is two; expected a whole number$"),
        ("batch_size: 2", "batch_size: '2'", "is '2'; expected a whole number; remove the quotes$"),
        ("batch_size: 2", "batch_size: True", "is True; expected a whole number$"),
        ("batch_size: 2", "batch_size: .nan", r"is \.nan; expected a whole number$"),
        ("batch_size: 2", f"batch_size: {HUGE}", r"9… \(400 characters\); expected a whole number up to 10{12}$"),
        ("use_parallel: True", "use_parallel: 'True'", "is 'True'; expected True or False; remove the quotes$"),
        ("use_parallel: True", "use_parallel: '1'", "is '1'; expected True or False$"),
        ("use_clip_grad: True", f"use_clip_grad: True\n  max_grad_norm: {HUGE}", "a finite number$"),
    ],
)
def test_a_wrong_value_is_shown_with_what_was_expected(old: str, new: str, words: str) -> None:
    with pytest.raises(UserError, match=words):
        converted(edited((old, new)))


@pytest.mark.parametrize("mode", ["7", "-1", "True", "semi_auto_parallel", "1.0"])
def test_parallel_mode_is_one_of_four_numbers(mode: str) -> None:
    text = edited() + f"parallel:\n  parallel_mode: {mode}\n"
    with pytest.raises(UserError, match=r"0 \(data_parallel\), 1 \(semi_auto_parallel\), 2 \(auto_parallel\), 3"):
        converted(text)


@pytest.mark.parametrize("key", ["seed: 7", "learning_rate: 4.e-4", "eps: 1.e-8"])
def test_long_values_are_cut(key: str) -> None:
    refusals = converted(edited((key, f"{key.partition(':')[0]}: {HUGE}"))).refusals
    assert refusals
    assert all(HUGE[:100] not in entry.outcome.why for entry in refusals)


def test_words_for_numbers() -> None:
    assert (counted(1, "rank"), counted(2, "rank"), counted(0, "rank")) == ("1 rank", "2 ranks", "0 ranks")
    assert shown("a" * 60) == "a" * 60
    assert shown("a" * 61) == "a" * 59 + "… (61 characters)"


def test_a_list_of_the_wrong_length_is_counted() -> None:
    (refusal,) = converted(edited(("recompute: True", "recompute: [3, 2]"))).refusals
    assert refusal.outcome.why == "the list [3, 2] holds 2 numbers; with 1 pipeline stage it needs 1"


def test_a_norm_of_zero_is_refused_where_the_run_clips() -> None:
    zero = ("use_clip_grad: True", "use_clip_grad: True\n  max_grad_norm: 0.0")
    (refusal,) = converted(edited(zero)).refusals
    assert "every gradient is multiplied by 0" in refusal.outcome.why
    unused = edited(("use_clip_grad: True", "use_clip_grad: False\n  max_grad_norm: 0.0"))
    assert output(unused)["training.max_norm"] == 1e10


def test_samples_of_another_length_and_a_rate_of_nothing_are_noted() -> None:
    text = edited(("    vocab_size: 512\n", "    vocab_size: 512\n    seq_length: 32\n"), ("4.e-4", "0.0"))
    notes = " ".join(converted(text).notes)
    assert "`model.seq_length` is 32 and `train_dataset.dataloader.config.seq_length` is 64" in notes
    assert "`lr_scheduler.learning_rate` is 0: nothing is learnt" in notes


Config = Callable[..., Options]


@pytest.fixture
def config(tmp_path: Path) -> Config:
    """Options with a config.json of the given keys."""

    def make(**keys: object) -> Options:
        path = tmp_path / "config.json"
        path.write_text(json.dumps(keys), encoding="utf-8")
        found, name = read_hf_config(str(path))
        return Options(hf_config=found, hf_config_path=name)

    return make


def test_a_config_of_another_model_type_stops(config: Config) -> None:
    (refusal,) = converted(edited(), config(model_type="qwen3")).refusals
    assert "model_type is deepseek_v3, and " in refusal.outcome.why
    assert refusal.outcome.why.endswith("config.json is of a model of type qwen3")


def test_a_config_of_another_shape_is_noted_key_by_key(config: Config) -> None:
    options = config(model_type="deepseek_v3", architectures=["DeepseekV3ForCausalLM"], hidden_size=64, vocab_size=99)
    (note,) = converted(edited(), options).notes
    assert note.endswith("wins: vocab_size is 512 in the file and 99 there")


def test_a_wrong_type_in_a_config_names_its_file(config: Config) -> None:
    (refusal,) = converted(edited(), config(model_type="deepseek_v3", intermediate_size="wide")).refusals
    assert "config.json: `" in refusal.outcome.why
    assert "`intermediate_size` is `wide`, a text; expected" in refusal.outcome.why.replace("model.", "")
