"""`--set`: the entry of its key tells both values and what changes, once; nothing wins over it in silence."""

import pytest
from graph_text import converted, edited, output

from msmigrate.convert_files import read_overrides
from msmigrate.mapping.outcome import Effect, Fate
from msmigrate.options import Options
from msmigrate.problems import UsageError
from msmigrate.yaml.scalars import Value

SEEDED = edited(("      eod: 1\n", "      eod: 1\n      seed: 1234\n"))
STOPPED = edited(("  epochs: 2\n", "  epochs: 2\n  stop_step: 20\n"), ("ConstantWarmUpLR", "CosineWithWarmUpLR"))


def told(text: str, key: str, value: Value) -> list[tuple[str | None, Effect, str]]:
    """Entries of a key that `--set` gives: the graph key, the effect, the reason."""
    entries = converted(text, Options(overrides={key: value})).entries
    return [(entry.graph, entry.outcome.effect, entry.outcome.why) for entry in entries if entry.pynative == key]


@pytest.mark.parametrize(
    ("key", "value", "before"),
    [
        ("training.seed", 8, "7"),
        ("training.max_norm", 2.0, "1.0"),
        ("training.local_batch_size", 4, "2"),
        ("optimizer.weight_decay", 0.1, "0.05"),
        ("optimizer.type", "Muon", "AdamW"),
        ("lr_scheduler.learning_rate", 1e-3, "0.0004"),
        ("lr_scheduler.type", "LinearWithWarmUpLR", "ConstantWarmUpLR"),
        ("lr_scheduler.warmup_ratio", 0.5, "0.05"),
        ("lr_scheduler.warmup_steps", 9, "5"),
        ("train_dataset.dataloader.config.seed", 9, "1234 (1234 is the readers' default seed of the sample order)"),
        ("train_dataset.dataloader.config.eod", 2, "1"),
        ("model.num_hidden_layers", 7, "6"),
        ("training.deterministic", True, "False, the default"),
    ],
)
def test_a_new_value_changes_training_and_says_so_once(key: str, value: Value, before: str) -> None:
    changing = [why for _, effect, why in told(SEEDED, key, value) if effect is Effect.TRAINING]
    assert len(changing) == 1
    assert changing[0].startswith(f"--set {key}=")
    assert changing[0].endswith(f", instead of {before}")
    assert output(SEEDED, Options(overrides={key: value}))[key] == value


@pytest.mark.parametrize(
    ("key", "value"),
    [("training.seed", 7), ("train_dataset.dataloader.config.seed", 1234), ("training.deterministic", False)],
)
def test_the_value_that_held_before_changes_nothing(key: str, value: Value) -> None:
    assert [effect for _, effect, _ in told(SEEDED, key, value)] == [Effect.NONE]


def test_what_does_not_decide_what_is_learnt_does_not_change_training() -> None:
    for key, value in (("train_dataset.num_parallel_workers", 2), ("checkpoint.prefix", "x")):
        assert Effect.TRAINING not in [effect for _, effect, _ in told(SEEDED, key, value)]


def test_steps_that_replace_a_refused_length_are_told_in_one_line() -> None:
    assert converted(STOPPED).refusals
    entries = told(STOPPED, "training.steps", 100)
    (changing,) = [why for _, effect, why in entries if effect is Effect.TRAINING]
    assert changing == "--set training.steps=100, instead of 20"
    assert {why for _, effect, why in entries if effect is Effect.NONE} == {"--set training.steps decides"}
    (refusal,) = converted(STOPPED, Options(overrides={"training.steps": 50})).refusals
    assert "would lay it out for 50" in refusal.outcome.why


def test_a_given_ratio_follows_the_steps_of_set() -> None:
    text = edited(("warmup_steps: 5", "warmup_ratio: 0.1\n  total_steps: 50"))
    assert output(text, Options(overrides={"training.steps": 25}))["lr_scheduler.warmup_ratio"] == 0.2


def test_warm_up_steps_take_the_place_of_the_ratio() -> None:
    for text in (edited(), edited(("warmup_steps: 5", "warmup_ratio: 0.05"))):
        found = output(text, Options(overrides={"lr_scheduler.warmup_steps": 9}))
        assert found["lr_scheduler.warmup_steps"] == 9
        assert "lr_scheduler.warmup_ratio" not in found
    with pytest.raises(UsageError, match=r"warmup_ratio=0\.1 and --set lr_scheduler\.warmup_steps=5"):
        read_overrides(("lr_scheduler.warmup_steps=5", "lr_scheduler.warmup_ratio=0.1"))


def test_the_steps_follow_the_sizes_of_set() -> None:
    options = Options(overrides={"train_dataset.dataloader.sizes": [300, 0, 0]})
    assert output(edited(), options)["training.steps"] == 50


def test_a_choice_in_place_of_a_refusal_changes_training() -> None:
    text = edited(("type: AdamW", "type: Lamb"))
    entries = told(text, "optimizer.type", "AdamW")
    assert [effect for _, effect, _ in entries] == [Effect.TRAINING]
    missing = edited(("    sizes: [600, 0, 0]\n", ""))
    facts = converted(missing, Options(overrides={"training.steps": 10})).entries
    given = [entry.outcome for entry in facts if entry.pynative == "training.steps"]
    assert {(outcome.fate, outcome.effect) for outcome in given} == {(Fate.COMPUTED, Effect.NONE)}
