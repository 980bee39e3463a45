"""The `msrt` command as a user meets it: statuses, messages, files."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from msrt.commands import app
from msrt.train.folder import claimed

ROOT = Path(__file__).parents[3]
TINY = """\
checkpoint:
  enable_save: False
training: {steps: 6, local_batch_size: 2, global_batch_size: 4, seed: 1, deterministic: True}
lr_scheduler: {type: ConstantWarmUpLR, learning_rate: 5.0e-3, warmup_ratio: 0}
train_dataset:
  dataloader:
    type: BlendedMegatronDatasetDataLoader
    sizes: [24, 0, 0]
    config:
      split: "1, 0, 0"
      seq_length: 16
      create_attention_mask: False
      eod: 256
      data_path: ["1", "corpus"]
    column_names: ["input_ids", "labels", "loss_mask", "position_ids"]
model:
  model_type: deepseek_v3
  architectures: DeepseekV3ForCausalLM
  vocab_size: 257
  seq_length: 16
  hidden_size: 16
  intermediate_size: 32
  num_hidden_layers: 2
  num_attention_heads: 2
  max_position_embeddings: 16
  q_lora_rank: 8
  kv_lora_rank: 8
  qk_rope_head_dim: 4
  qk_nope_head_dim: 4
  v_head_dim: 4
  compute_dtype: float32
  num_nextn_predict_layers: 0
  position_embedding_type: rope
  first_k_dense_replace: 1
  n_routed_experts: 4
  num_experts_per_tok: 2
  n_shared_experts: 1
  n_group: 1
  topk_group: 1
  moe_intermediate_size: 16
  moe_router_load_balancing_type: seq_aux_loss
  moe_aux_loss_coeff: 0.001
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with tiny.yaml and its corpus."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tiny.yaml").write_text(TINY)
    (tmp_path / "text.txt").write_text("to be, or not to be, that is the question. " * 40)
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "metrics.jsonl").write_text('{"step": 1, "loss": 3.0}\n')
    return tmp_path


def invoke(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments))


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "msrt", *arguments]


def environment(**more: str) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT / "src"), **more}


def run(folder: Path, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(*arguments),
        cwd=folder,
        env=environment(**more),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def rows(run_folder: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in (run_folder / "metrics.jsonl").read_text().splitlines()]


def make_corpus(folder: Path) -> None:
    result = invoke("make-data", "text.txt", "-o", "corpus", "--append-eod")
    assert result.exit_code == 0, result.stderr
    assert result.stdout == "1 document, 1721 tokens (uint16)\ncorpus.bin\ncorpus.idx\n"


def test_a_run_leaves_its_files_and_an_equal_run_has_equal_numbers(folder: Path) -> None:
    make_corpus(folder)
    first, second = run(folder, "train", "tiny.yaml"), run(folder, "train", "tiny.yaml", "--output", "again")
    assert first.returncode == second.returncode == 0, first.stderr
    written = folder / "output" / "tiny"
    assert {"metrics.jsonl", "run.json", "loss.png"} <= {item.name for item in written.iterdir()}
    assert len(list(written.glob("events.out.tfevents.*"))) == 1
    steps = rows(written)
    assert [step["step"] for step in steps] == [1, 2, 3, 4, 5, 6]
    assert [step["consumed_samples"] for step in steps] == [4, 8, 12, 16, 20, 24]
    assert all(step["lr"] == 5e-3 and step["tokens"] == 64 for step in steps)
    # 2 micro-batches of 32 tokens, 2 experts each
    # the values of a metrics row are of many types
    assert all(len(counts) == 4 and sum(counts) == 128 for step in steps for counts in step["tokens_per_expert"])  # type: ignore[attr-defined]
    assert float(str(steps[0]["loss"])) == pytest.approx(5.549, abs=0.05)
    assert float(str(steps[-1]["loss"])) < float(str(steps[0]["loss"])) - 0.1
    for step in (*steps, *(again := rows(folder / "again"))):
        del step["step_time_ms"], step["tokens_per_s"]
    assert steps == again
    assert "ln(vocab_size) = 5.5491" in first.stdout
    assert "output/tiny" in first.stdout
    assert "note: Training 6 steps of 64 tokens" in first.stderr
    assert "step 6/6" in first.stderr


def test_ctrl_c_leaves_whole_metrics_and_says_how_far_it_came(folder: Path) -> None:
    make_corpus(folder)
    arguments = command("train", "tiny.yaml", "--set", "training.steps=100000", "--output", "long")
    process = subprocess.Popen(arguments, cwd=folder, env=environment(), stderr=subprocess.PIPE, text=True)
    metrics = folder / "long" / "metrics.jsonl"
    while process.poll() is None and not (metrics.is_file() and metrics.read_text().count("\n") >= 3):
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    done = re.search(r"Interrupted after step (\d+) of 100000; files are in long\.", errors)
    assert done is not None, errors
    # The signal may come between the line of a step and its count.
    assert len(rows(folder / "long")) - int(done[1]) in (0, 1)
    assert int(done[1]) >= 3
    assert "Traceback" not in errors


def test_an_early_ctrl_c_is_answered_while_modules_are_imported(folder: Path) -> None:
    """The signal comes at the import of MindSpore, and again wherever the import is 0.3 and 1 seconds later."""
    make_corpus(folder)
    for delay in (0.0, 0.3, 1.0):
        arguments = [sys.executable, "-v", "-m", "msrt", "train", "tiny.yaml", "--output", f"early{delay}"]
        process = subprocess.Popen(arguments, cwd=folder, env=environment(), stderr=subprocess.PIPE, text=True)
        assert process.stderr is not None
        for line in process.stderr:
            if "mindspore/__init__" in line:
                break
        # What -v goes on to write would fill the pipe.
        threading.Timer(delay, process.send_signal, [signal.SIGINT]).start()
        _, errors = process.communicate(timeout=60)
        assert process.returncode == 130, errors[-2000:]
        assert "Interrupted." in errors
        assert "Traceback" not in errors


def test_a_name_that_is_not_utf8_a_full_output_and_a_broken_error_stream_do_no_harm(folder: Path) -> None:
    make_corpus(folder)
    name = os.fsdecode(b"caf\xe9")
    reader, broken = os.pipe()
    os.close(reader)
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            command("train", "tiny.yaml", "--output", name, "--set", "training.steps=2"),
            cwd=folder,
            env=environment(LC_ALL="C", PYTHONUTF8="0"),
            stdout=full,
            stderr=broken,
            timeout=120,
            check=False,
        )
    os.close(broken)
    assert done.returncode == 3  # of the output
    assert len(rows(folder / name)) == 2
    assert (folder / name / "loss.png").is_file()
    assert json.loads((folder / name / "run.json").read_text())["command"][3:5] == ["--output", name]


@pytest.mark.parametrize("arguments", ["--version", "--help", "plot run", "make-data text.txt -o other --force"])
def test_a_full_or_closed_output_is_one_sentence(folder: Path, arguments: str) -> None:
    msrt = f"{sys.executable} -m msrt {arguments}"
    for line in (f"{msrt} >/dev/full", *([] if arguments == "--help" else [f"{msrt} >&-"])):
        done = subprocess.run(["sh", "-c", line], cwd=folder, env=environment(), capture_output=True, check=False)
        assert done.returncode == 3
        assert re.fullmatch(rb"(Standard output cannot be written|The result cannot be printed): .*\.\n", done.stderr)


def test_a_failure_before_the_first_step_ends_leaves_the_earlier_run_alone(folder: Path) -> None:
    make_corpus(folder)
    for name in ("metrics.jsonl", "run.json", "loss.png"):
        (folder / "run" / name).write_text("old")
    result = invoke("train", "tiny.yaml", "--output", "run", "--set", "model.initializer_range=1.0e+38")
    assert "Stopped at step 1 of 6" in result.stderr
    assert {(folder / "run" / name).read_text() for name in ("metrics.jsonl", "run.json", "loss.png")} == {"old"}


def test_a_second_run_into_the_same_folder_is_refused_until_the_first_ends(folder: Path) -> None:
    with claimed(Path("run"), print):
        result = invoke("train", "tiny.yaml", "--output", "run")
        assert result.exit_code == 1
        assert "Another run is writing into run;" in result.stderr
    with claimed(Path("run"), print) as again:
        assert again == Path("run")


def test_a_run_that_is_too_large_is_refused_before_it_allocates(folder: Path) -> None:
    make_corpus(folder)
    result = invoke("train", "tiny.yaml", "--set", "model.hidden_size=100000000")
    assert result.exit_code == 1
    assert re.search(
        r"^tiny\.yaml: The model has 91,500,\d+,\d+ parameters, which take at least 1,704\.\d GiB", result.stderr
    )


def test_an_image_that_cannot_be_written_comes_after_the_summary(folder: Path) -> None:
    make_corpus(folder)
    (folder / "run" / "loss.png").mkdir()
    result = invoke("train", "tiny.yaml", "--output", "run", "--set", "training.steps=1")
    assert result.exit_code == 3
    assert result.stdout.startswith("steps  1, 4 samples\n")
    assert result.stderr.endswith("run/loss.png cannot be written: Is a directory\n")


def test_a_run_that_diverges_stops_with_status_1_and_keeps_its_metrics(folder: Path) -> None:
    make_corpus(folder)
    result = run(folder, "train", "tiny.yaml", "--set", "lr_scheduler.learning_rate=1.0e+38", "--output", "out")
    assert result.returncode == 1
    assert re.search(r"Stopped at step [2-6] of 6: loss .*learning rate 1e\+38\.", result.stderr), result.stderr
    assert "Traceback" not in result.stderr
    assert "Warning" not in result.stderr
    assert 1 <= len(rows(folder / "out")) < 6
    assert (folder / "out" / "loss.png").is_file()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--set", "parallelism.tensor_parallel=2"), "tensor_parallel 2 needs at least 2 ranks; this run has 1."),
        (("--set", "model.model_type=gpt9"), "is 'gpt9'; msrt has deepseek_v3, llama, qwen3, qwen3_moe."),
        (("--output", "text.txt"), "--output text.txt is a file; a folder is needed there."),
    ],
)
def test_what_needs_no_mindspore_is_checked_before_it_is_imported(
    folder: Path, arguments: tuple[str, ...], message: str
) -> None:
    script = (
        "import sys; from typer.testing import CliRunner; from msrt.commands import app\n"
        "result = CliRunner().invoke(app, sys.argv[1:])\n"
        "print(result.exit_code, 'mindspore' in sys.modules, 'numpy' in sys.modules, result.stderr)"
    )
    result = subprocess.run(
        [sys.executable, "-c", script, "train", "tiny.yaml", *arguments],
        env=environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    assert re.match(r"[13] False False ", result.stdout)
    assert message in result.stdout


def test_all_problems_are_listed_with_their_places(folder: Path) -> None:
    text = TINY.replace("global_batch_size: 4", "global_batch_size: 3").replace("warmup_ratio: 0", "num_cycles: 1")
    (folder / "bad.yaml").write_text(text + "  softmax_scale: 0.5\n")
    result = invoke("train", "bad.yaml", "--set", "checkpoint.prefix=a/b")
    assert result.exit_code == 1
    assert result.stdout == ""
    expected = [
        "bad.yaml:3:62: training.global_batch_size: global_batch_size 3 is not a multiple of local_batch_size 2",
        "bad.yaml: lr_scheduler.warmup_ratio (default): is not given; ConstantWarmUpLR needs it or warmup_steps.",
        "bad.yaml:43:18: model.softmax_scale: is 0.5, which msrt does not have",
        "--set checkpoint.prefix: is 'a/b'; it begins the names of files: write one without '/'.",
    ]
    for line, start in zip(result.stderr.splitlines(), expected, strict=True):
        assert line.startswith(start)


def test_several_ranks_are_refused_for_now(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "this run has 2 ranks" in invoke("train", "tiny.yaml", "--workers", "2").stderr
    monkeypatch.setenv("MS_WORKER_NUM", "2")
    assert "MS_WORKER_NUM in the environment is 2;" in invoke("train", "tiny.yaml").stderr


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        (("train", "missing.yaml"), 3),
        (("train",), 2),
        (("train", "tiny.yaml", "--no-such-option"), 2),
        (("train", "tiny.yaml", "--set", "training.steps"), 2),
        (("train", "tiny.yaml", "--set", "training.stepz=3"), 1),
        (("train", "tiny.yaml", "--set", "training.steps=many"), 1),
        (("train", "tiny.yaml", "--set", "training.steps=\udcff"), 2),
        (("train", "tiny.yaml", "--set", "training.seed=4294967296"), 1),
        (("train", "tiny.yaml", "--set", "train_dataset.dataloader.config.seed=4294967296"), 1),
        (("train", "tiny.yaml", "--output", ""), 2),
        (("train", "tiny.yaml", "--resume", ""), 2),
        (("train", "tiny.yaml", "--resume", "missing"), 3),
        (("train", "tiny.yaml", "--output", "text.txt"), 3),
        (("train", "tiny.yaml", "--output", "text.txt/inside"), 3),
        (("train", "tiny.yaml", "--output", "/proc/self/inside"), 3),
        (("plot", "run", "-o", "loss.pdf"), 2),
        (("plot", "run", "-o", "text.txt/loss.png"), 3),
        (("plot", "missing"), 3),
        (("make-data", "missing.txt", "-o", "corpus"), 3),
        (("--version",), 0),
        (("--help",), 0),
    ],
)
def test_statuses(folder: Path, arguments: tuple[str, ...], status: int) -> None:
    result = invoke(*arguments)
    assert result.exit_code == status
    assert (result.stdout == "") == (status != 0)


def test_a_refused_run_leaves_no_folder(folder: Path) -> None:
    make_corpus(folder)
    (folder / "there").mkdir()
    for output in ("new/inner", "there"):
        result = invoke("train", "tiny.yaml", "--output", output, "--set", "train_dataset.dataloader.sizes=[2, 0, 0]")
        assert result.exit_code == 1
        assert result.stderr == (
            "tiny.yaml: The training data has 2 samples, and one step needs training.global_batch_size 4: raise "
            "train_dataset.dataloader.sizes[0], use more data, or lower training.global_batch_size.\n"
        )
    assert not (folder / "new").exists()
    assert not list((folder / "there").iterdir())


def test_debug_shows_the_traceback_and_keeps_the_status(folder: Path) -> None:
    plain, debug = invoke("train", "missing.yaml"), invoke("train", "missing.yaml", "--debug")
    assert "Traceback" not in plain.stderr
    assert "Traceback" in debug.stderr
    assert debug.exit_code == plain.exit_code == 3


def test_without_the_extra_there_is_one_line(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("msrt.command_line.find_spec", lambda name: None)
    result = invoke("train", "tiny.yaml")
    assert result.exit_code == 1
    assert result.stderr == "training needs the extra: pip install 'msmigrate[train]'\n"


def test_help_shows_what_is_there_only(folder: Path) -> None:
    text = invoke("train", "--help").stdout
    assert "--expert-mesh" in text
    assert "--resume" in text
    for absent in ("--workers", "--rehearse", "--profile"):
        assert absent not in text


def test_plot_draws_characters_or_an_image(folder: Path) -> None:
    for name, last in (("a", 1.0), ("b", 2.0)):
        (folder / name).mkdir()
        lines = [json.dumps({"step": step, "loss": loss}) for step, loss in ((1, 3.0), (2, last))]
        (folder / name / "metrics.jsonl").write_text("\n".join(lines) + "\n")
    drawn = invoke("plot", "a", "b")
    assert drawn.exit_code == 0
    assert "a: loss 3.0000 -> 1.0000" in drawn.stdout
    assert "b: loss 3.0000 -> 2.0000" in drawn.stdout
    image = invoke("plot", "a", "b", "-o", "new/both.png")
    assert image.stdout == "new/both.png\n"
    assert (folder / "new" / "both.png").read_bytes().startswith(b"\x89PNG")
