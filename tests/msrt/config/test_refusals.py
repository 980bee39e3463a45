from collections.abc import Mapping
from dataclasses import dataclass, replace

import pytest

from msmigrate.problems import Exit, UnreadableError, UserError
from msmigrate.pynative import Config, Model
from msmigrate.pynative.sections import Checkpoint, LoraConfig, LrScheduler, Optimizer, Parallelism, Recompute, Training
from msrt.config.problem import Problem, about_file, refuse, shown
from msrt.config.refusals import judge

QUIET = Config(
    checkpoint=Checkpoint(enable_save=False), lr_scheduler=LrScheduler(type="ConstantWarmUpLR", warmup_ratio=0.1)
)


@dataclass(frozen=True)
class At:
    line: int | None
    column: int | None


def keys(config: Config, world: int = 1) -> list[str]:
    return [problem.key for problem in judge(config, {}, world).problems]


def notes(config: Config, given: Mapping[str, At] | None = None) -> str:
    return "\n".join(judge(config, given or {}, 1).notes)


def test_defaults_are_not_refused_and_need_no_note() -> None:
    verdict = judge(QUIET, {}, 1)
    assert (verdict.problems, verdict.notes) == ((), ())


def test_refused_keys_are_named_with_their_values() -> None:
    config = replace(
        QUIET, parallelism=Parallelism(context_parallel=2, pipeline_parallel=4), model=Model(softmax_scale=0.1)
    )
    assert keys(config) == ["parallelism.context_parallel", "parallelism.pipeline_parallel", "model.softmax_scale"]
    assert judge(config, {}, 1).problems[0].message.startswith("is 2, which msrt does not have")


@pytest.mark.parametrize(
    "model",
    [
        Model(use_sliding_window=False),
        Model(moe_z_loss_coeff=0.0),
        Model(partial_rotary_factor=1.0),
        Model(layer_types=("full_attention", "full_attention")),
        Model(pet_config={}),
    ],
)
def test_values_that_switch_a_feature_off_are_accepted(model: Model) -> None:
    assert keys(replace(QUIET, model=model)) == []


@pytest.mark.parametrize(
    "model",
    [
        Model(use_sliding_window=True),
        Model(moe_z_loss_coeff=1e-3),
        Model(partial_rotary_factor=0.5),
        Model(layer_types=("full_attention", "sliding_attention")),
        Model(pet_config={"pet_type": "lora"}),
    ],
)
def test_values_that_switch_a_feature_on_are_refused(model: Model) -> None:
    assert len(keys(replace(QUIET, model=model))) == 1


def test_a_refused_section_is_reported_once() -> None:
    assert keys(replace(QUIET, lora_config=LoraConfig(target_modules=".*"))) == ["lora_config"]


def test_what_is_not_built_yet_is_refused() -> None:
    assert keys(QUIET, world=2) == [""]


def test_a_prefix_that_is_a_path_is_refused() -> None:
    assert keys(replace(QUIET, checkpoint=Checkpoint(enable_save=False, prefix="a/b"))) == ["checkpoint.prefix"]


def test_keys_without_effect_become_one_note() -> None:
    given = {
        path: At(1, 1) for path in ("monitor", "monitor.train_state.local_loss", "model.use_cache", "training.steps")
    }
    assert notes(QUIET, given) == "2 keys change nothing here: model.use_cache, monitor.train_state.local_loss."
    assert notes(QUIET, {"model.use_cache": At(1, 1)}) == "1 key changes nothing here: model.use_cache."


def test_keys_of_another_optimizer_become_one_note() -> None:
    given = {"optimizer.momentum": At(1, 1), "optimizer.ns_steps": At(2, 1), "optimizer.eps": At(3, 1)}
    assert notes(QUIET, given) == "without effect with optimizer.type AdamW: optimizer.momentum, optimizer.ns_steps."
    assert notes(replace(QUIET, optimizer=Optimizer(type="Muon")), given) == ""


@pytest.mark.parametrize(
    ("config", "sentence"),
    [
        (replace(QUIET, checkpoint=Checkpoint()), "checkpoint.save_path is empty, at which MindFormers stops"),
        (replace(QUIET, checkpoint=Checkpoint(save_path="s", no_save_optim=True)), "training cannot go on from them"),
        (
            replace(QUIET, checkpoint=Checkpoint(False, load_path="old", no_load_optim=True)),
            "checkpoint.no_load_optim is true: of old only the weights are loaded; step, learning rate and data start",
        ),
        (
            replace(QUIET, checkpoint=Checkpoint(False, load_path="old", load_balanced=True, load_worker_number=4)),
            "without effect on one rank: checkpoint.load_balanced, checkpoint.load_worker_number.",
        ),
        (
            replace(QUIET, checkpoint=Checkpoint(save_path="s", remove_redundancy=True)),
            "without effect on one rank: checkpoint.remove_redundancy.",
        ),
        (replace(QUIET, recompute=Recompute(mode="full")), "changes memory, not numbers"),
        (replace(QUIET, training=Training(max_norm=0.0)), "multiplies every gradient by 0"),
        (
            replace(QUIET, lr_scheduler=LrScheduler(type="ConstantWarmUpLR", warmup_ratio=0.0004)),
            "warmup_ratio 0.0004 of 1000 steps is 0 warm-up steps; the smallest ratio with an effect is 0.001.",
        ),
        (
            replace(QUIET, lr_scheduler=LrScheduler(type="ConstantWarmUpLR", warmup_steps=2000)),
            "lr_scheduler.warmup_steps is 2000, more than the 1000 of training.steps",
        ),
        (
            replace(QUIET, model=Model(max_position_embeddings=512)),
            "max_position_embeddings is 512, below the seq_length",
        ),
        (
            replace(QUIET, model=Model(model_type="deepseek_v3", architectures="Other")),
            "model.architectures is Other; model.model_type deepseek_v3 is DeepseekV3ForCausalLM here.",
        ),
        (replace(QUIET, model=Model(seq_length=2**20)), "model.seq_length is 1048576, and train_dataset."),
        (replace(QUIET, model=Model(initializer_range=0.0)), "model.initializer_range is 0"),
    ],
)
def test_remarks(config: Config, sentence: str) -> None:
    assert sentence in notes(config)


def test_problems_are_placed_in_file_override_or_default() -> None:
    given = {"a.b": At(7, 3), "a.c": At(None, None)}
    with pytest.raises(UserError) as caught:
        refuse(
            [Problem("a.b", "one."), Problem("a.c", "two."), Problem("a.d", "three."), Problem("", "four.")],
            "x.yaml",
            given,
        )
    assert str(caught.value).splitlines() == [
        "x.yaml:7:3: a.b: one.",
        "--set a.c: two.",
        "x.yaml: a.d (default): three.",
        "x.yaml: four.",
    ]


def test_a_message_gets_the_files_name_and_keeps_its_status() -> None:
    with pytest.raises(UserError, match=r"^x\.yaml: one\.\nx\.yaml: two\.$") as caught, about_file("x.yaml"):
        raise UnreadableError("one.\ntwo.")
    assert caught.value.status == Exit.UNREADABLE


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "missing"), ((), "[]"), (True, "true"), (0.5, "0.5"), ("a", "'a'"), ({"a": None}, '{"a": null}')],
)
def test_values_are_shown_as_a_config_spells_them(value: object, text: str) -> None:
    assert shown(value) == text
