"""A run that is taken up again is the run that never stopped, bit for bit."""

import json
from pathlib import Path

import pytest
from tiny_run import metrics, prepare, saved_steps, tensor_digests, train

from msrt.checkpoint.read import open_checkpoint

SECOND, LAST = "saved/iteration_00000002", 6


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    prepare(tmp_path)


@pytest.mark.parametrize(
    "settings",
    [
        (),
        ("checkpoint.async_save=true", "checkpoint.prefix=null"),
        ("optimizer.type=Muon",),
        ("model.params_dtype=bfloat16", "model.compute_dtype=bfloat16"),
        ("optimizer.type=Muon", "model.params_dtype=float16", "model.compute_dtype=float16"),
        (
            "model.num_nextn_predict_layers=1",
            "model.mtp_loss_scaling_factor=0.3",
            "train_dataset.num_parallel_workers=2",
        ),
    ],
)
def test_resumed_steps_weights_and_optimizer_are_those_of_the_straight_run(settings: tuple[str, ...]) -> None:
    train("straight", *settings)
    train("resumed", *settings, "checkpoint.save_path=again", resume=SECOND)
    straight, resumed = metrics("straight"), metrics("resumed")
    assert list(resumed) == [3, 4, 5, 6]
    assert resumed == {step: straight[step] for step in resumed}
    assert len({row["loss"] for row in straight.values()}) == LAST
    digests = tensor_digests("again", LAST)
    assert digests == tensor_digests("saved", LAST)
    assert digests != tensor_digests("saved", 2)
    prefix = "" if "checkpoint.prefix=null" in settings else "checkpoint-"
    assert sorted(digests) == [f"{prefix}{kind}-0000000-0000001.safetensors" for kind in ("model", "opt")]


def test_16_bit_parameters_are_stored_as_such_with_float32_masters() -> None:
    train("run", "model.params_dtype=bfloat16", "model.compute_dtype=bfloat16", "training.steps=1")
    tensors = open_checkpoint(Path("saved")).metadata.tensors
    name = "decoder.layers.1.mlp.experts.weight1"
    kinds = {
        name: "BF16",
        f"main_param.{name}": "F32",
        f"adam_m.{name}": "F32",
        "decoder.layers.1.mlp.router.weight": "F32",
    }
    assert {name: tensors[name].dtype for name in kinds} == kinds
    assert "main_param.decoder.layers.1.mlp.router.weight" not in tensors


def test_a_resumed_run_in_the_same_folder_cuts_its_metrics_back_and_goes_on() -> None:
    train("run")
    before, identity = metrics("run"), json.loads(Path("run", "run.json").read_text())["run_id"]
    with Path("run", "metrics.jsonl").open("a") as file:
        file.write('{"step": 7, "lo')  # what a crash leaves
    Path("run/metrics.jsonl").write_text(
        Path("run/metrics.jsonl").read_text().replace('"step": 1,', '"step": 1,"mark": 1,')
    )
    result = train("run", resume="saved/iteration_00000004")
    assert "saved/iteration_00000004 is restored" in result.stderr
    assert "the next step is 5, after 8 samples" in result.stderr
    after = metrics("run")
    assert after[1].pop("mark") == 1  # kept, not computed again
    assert after == before
    about = json.loads(Path("run", "run.json").read_text())
    assert about["run_id"] == identity
    assert about["resumed"] == {"from": "saved/iteration_00000004", "step": 4}


def test_metrics_of_another_run_are_not_gone_on_with() -> None:
    train("run", "training.steps=2")
    train("other", "training.steps=1", "checkpoint.enable_save=false")
    assert "holds an earlier run" in train("other", resume="auto").stderr
    assert list(metrics("other")) == [3, 4, 5, 6]


def test_auto_begins_anew_without_a_checkpoint_and_ends_at_once_when_all_is_done() -> None:
    assert "there is no checkpoint in saved yet; the run begins at step 1" in train("run", resume="auto").stderr
    assert list(metrics("run")) == [1, 2, 3, 4, 5, 6]
    done = train("run", resume="auto")
    assert (
        done.stdout == "Nothing to do: the checkpoint saved/iteration_00000006 is at step 6, and training.steps is 6.\n"
    )


def test_auto_passes_over_a_damaged_checkpoint() -> None:
    train("straight")
    for name in ("model", "opt"):
        path = Path(f"saved/iteration_00000006/checkpoint-{name}-0000000-0000001.safetensors")
        path.write_bytes(path.read_bytes()[:-1])
    result = train("run", resume="auto")
    assert "the checkpoint of step 6 is passed over: " in result.stderr
    assert metrics("run") == {step: row for step, row in metrics("straight").items() if step > 4}
    assert saved_steps("saved") == [2, 4, 6]
    assert json.loads(Path("saved/iteration_00000006/common.json").read_text())["step_num"] == LAST
    open_checkpoint(Path("saved"))


def test_weights_alone_start_at_step_one() -> None:
    train("first", "training.steps=2")
    result = train(
        "tuned", "checkpoint.load_path=saved", "checkpoint.no_load_optim=true", "checkpoint.enable_save=false"
    )
    assert (
        "of saved only the weights are loaded; step, learning rate and data start from the beginning" in result.stderr
    )
    tuned, first = metrics("tuned"), metrics("first")
    assert list(tuned) == [1, 2, 3, 4, 5, 6]
    assert [tuned[1][name] for name in ("lr", "consumed_samples")] == [0.0, 2]
    assert tuned[1]["loss"] != first[1]["loss"]


def test_another_global_batch_size_goes_on_at_the_samples_consumed() -> None:
    train("first", "training.steps=4")
    first = metrics("first")
    larger = ("training.global_batch_size=3", "training.steps=4", "checkpoint.enable_save=false")
    result = train("second", *larger, resume="auto")
    assert "8 samples are 2 whole steps of this size, and the last 2 of them are consumed once more" in result.stderr
    second = metrics("second")
    assert list(second) == [3, 4]
    assert second[3]["consumed_samples"] == 9
    # In the first run's own folder its first two steps stay: the third had other samples.
    train("first", *larger, resume="saved/iteration_00000004")
    assert list(metrics("first")) == [1, 2, 3, 4]
    assert [row["consumed_samples"] for row in metrics("first").values()] == [2, 4, 9, 12]
    # 2 of 4 warm-up steps lie behind both runs' step 3
    assert second[3]["lr"] == first[3]["lr"]


def test_skipped_steps_in_a_row_count_on() -> None:
    settings = (
        "lr_scheduler.learning_rate=1.0e+38",
        "lr_scheduler.warmup_ratio=0",
        "training.use_skip_step_on_nan=true",
    )
    train("first", *settings, "training.steps=4")
    common = json.loads(Path("saved/iteration_00000004/common.json").read_text())
    progress = common["training"]
    skipped = progress["skipped_in_a_row"]
    assert skipped > 0
    assert (progress["updates"], progress["step"]) == (4 - skipped, 4)
    assert common["consumed_samples"] == 8
    limit = f"training.max_consecutive_skipped_steps={skipped}"
    result = train("second", *settings, limit, resume="saved/iteration_00000004", status=1)
    assert "Stopped at step 5 of 6" in result.stderr
    assert f"after {skipped} skipped updates in a row" in result.stderr


def test_auto_without_a_checkpoint_takes_the_weights_that_the_config_loads() -> None:
    train("first", "training.steps=2")
    settings = ("checkpoint.load_path=saved", "checkpoint.no_load_optim=true", "checkpoint.save_path=tuned-saves")
    train("plain", *settings)
    train("auto", *settings, "checkpoint.enable_save=false", "checkpoint.save_path=none", resume="auto")
    assert metrics("auto") == metrics("plain")
    train("again", *settings, resume="tuned-saves/iteration_00000004")
    assert metrics("again") == {step: row for step, row in metrics("plain").items() if step > 4}
