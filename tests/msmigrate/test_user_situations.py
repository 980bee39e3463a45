"""Situations in which people who migrate a config get hurt: each as a small file, with all that they need to see."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml
from graph_text import GRAPH, edited, flat

from msmigrate.cli import main
from msmigrate.pynative.load import load_config
from msrt.config.schedule import warmup_steps

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Ran:
    """One call of the command: its status, its streams, the keys of the file it wrote, the entries of its report."""

    status: int
    told: str
    text: str | None
    entries: list[dict[str, object]]

    @property
    def keys(self) -> dict[str, object]:
        assert self.text is not None, self.told
        return dict(flat(yaml.safe_load(self.text)))

    def entry(self, graph: str) -> dict[str, object]:
        (found,) = [entry for entry in self.entries if entry["graph"] == graph]
        return found


Convert = Callable[..., Ran]


@pytest.fixture
def convert(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Convert:
    """Runs `msmigrate convert graph.yaml -o out.yaml` on a text, in a folder of its own."""
    monkeypatch.chdir(tmp_path)

    def call(text: str, *options: str) -> Ran:
        Path("graph.yaml").write_text(text, encoding="utf-8")
        outputs = [Path("out.yaml"), Path("report.json")]
        for path in outputs:
            path.unlink(missing_ok=True)
        report = ["--report", "report.json", "--report-format", "json"]
        monkeypatch.setattr(sys, "argv", ["msmigrate", "convert", "graph.yaml", "-o", "out.yaml", *report, *options])
        with pytest.raises(SystemExit) as left:
            main()
        streams = capsys.readouterr()
        assert streams.out == ""
        written, account = (path.read_text(encoding="utf-8") if path.exists() else None for path in outputs)
        assert isinstance(left.value.code, int)
        return Ran(left.value.code, streams.err, written, json.loads(account)["entries"] if account else [])

    return call


def line_of(text: str, piece: str) -> int:
    """The line, from 1, on which a piece of text stands first."""
    return text[: text.index(piece)].count("\n") + 1


def test_micro_batches_without_a_pipeline_do_not_count(convert: Convert) -> None:
    text = edited(("micro_batch_num: 1", "micro_batch_num: 6"), ("  gradient_accumulation_steps: 3\n", ""))
    ran = convert(text)
    assert ran.status == 0
    assert ran.keys["training.local_batch_size"] == 2
    assert ran.keys["training.global_batch_size"] == 2 * 2
    assert ran.keys["training.steps"] == 2 * (600 // 4)
    assert int(300 * float(str(ran.keys["lr_scheduler.warmup_ratio"]))) == 5
    assert f"(line {line_of(text, 'micro_batch_num')}): micro_batch_num 6 has no effect" in ran.told
    assert "global_batch_size is 4" in ran.told
    assert "micro_batch_num 6 has no effect" in str(ran.entry("parallel_config.micro_batch_num")["why"])


def test_accumulation_beside_a_pipeline_does_not_count(convert: Convert) -> None:
    ran = convert(edited(("pipeline_stage: 1", "pipeline_stage: 2"), ("micro_batch_num: 1", "micro_batch_num: 5")))
    assert ran.keys["training.global_batch_size"] == 2 * 2 * 5
    assert "gradient_accumulation_steps 3 has no effect with 2 pipeline stages" in ran.told


def test_stages_go_and_the_batch_stays(convert: Convert) -> None:
    text = edited(
        ("  gradient_accumulation_steps: 3\n", ""),
        ("pipeline_stage: 1", "pipeline_stage: 3"),
        ("micro_batch_num: 1", "micro_batch_num: 5"),
        ("hidden_size: 64", "hidden_size: 64\n    offset: [0, 0, 0]\n    pp_interleave_num: 1"),
    )
    for target in ("2.0", "2.1"):
        ran = convert(text, "--target", target)
        assert ran.status == 0
        assert not [key for key in ran.keys if "pipeline" in key or "interleave_num" in key or "offset" in key]
        assert "stage" not in (ran.text or "")
        assert ran.keys["parallelism.tensor_parallel"] == 2
        assert ran.keys["parallelism.data_parallel_shard"] == -1
        assert ran.keys["training.global_batch_size"] == 2 * 2 * 5
        assert ran.keys["training.steps"] == 2 * (600 // 20)
        assert f"(line {line_of(text, 'pipeline_stage')}): 3 stages are folded" in ran.told
        assert "all 6 layers" in ran.told
        assert "more memory per device" in ran.told
        assert ran.entry("parallel_config.pipeline_stage")["effect"] == "memory"


def test_twenty_nine_warm_up_steps_stay_twenty_nine(convert: Convert) -> None:
    ran = convert(edited(("warmup_steps: 5", "warmup_steps: 29")))
    assert int(100 * (29 / 100)) == 28
    config = load_config(ran.text or "", "out.yaml").config
    assert config.training.steps == 100
    assert warmup_steps(config.lr_scheduler, config.training.steps) == 29


@pytest.mark.parametrize("options", [(), ("--allow-lossy",)])
def test_a_warm_up_longer_than_the_run(convert: Convert, options: tuple[str, ...]) -> None:
    text = edited(("warmup_steps: 5", "warmup_steps: 150"))
    ran = convert(text, *options)
    assert (ran.status, ran.text) == (1, None)
    assert f"graph.yaml:{line_of(text, 'warmup_steps')}:3: refused: `lr_schedule.warmup_steps`" in ran.told
    assert "150 steps does not fit into a run of 100 steps" in ran.told
    assert "--set training.steps=N" in ran.told
    assert convert(text, "--set", "training.steps=300").keys["lr_scheduler.warmup_ratio"] == 0.5


def test_each_epoch_drops_its_last_partial_batch(convert: Convert) -> None:
    ran = convert(edited(("epochs: 2", "epochs: 5"), ("sizes: [600, 0, 0]", "sizes: [611, 0, 0]")))
    assert (5 * 611) // 12 == 254
    assert ran.keys["training.steps"] == 5 * 50
    assert ran.entry("runner_config.epochs")["arithmetic"] == "611 samples // 12 = 50; 5 epochs × 50 = 250"


ENDS = ("warmup_steps: 5", "warmup_steps: 5\n  lr_end: 4.e-5\n  warmup_lr_init: 1.e-7")


def test_the_ends_of_a_decaying_schedule(convert: Convert) -> None:
    text = edited(("type: ConstantWarmUpLR", "type: CosineWithWarmUpLR"), ENDS)
    for target in ("2.0", "2.1"):
        ran = convert(text, "--target", target)
        assert (ran.status, ran.keys["lr_scheduler.lr_end"]) == (0, 4e-5)
        assert ran.keys["lr_scheduler.warmup_lr_init"] == 1e-7
        assert {entry["effect"] for entry in ran.entries if "lr_schedule" in str(entry["graph"])} == {"none"}
    manual = convert(text, "--manual-only")
    assert (manual.status, manual.text) == (1, None)
    for key, old in (("lr_end", "4.0e-05"), ("warmup_lr_init", "1.0e-07")):
        place = f"graph.yaml:{line_of(text, key)}:3: refused: `lr_schedule.{key}`"
        assert any(line.startswith(place) and old in line for line in manual.told.splitlines())
        assert (manual.entry(f"lr_schedule.{key}")["fate"], manual.entry(f"lr_schedule.{key}")["effect"]) == (
            "refused", "training",
        )  # fmt: skip


def test_a_constant_schedule_does_not_miss_its_end(convert: Convert) -> None:
    ran = convert(edited(("warmup_steps: 5", "warmup_steps: 5\n  lr_end: 4.e-4")), "--manual-only")
    assert ran.status == 0
    assert (ran.entry("lr_schedule.lr_end")["fate"], ran.entry("lr_schedule.lr_end")["effect"]) == ("dropped", "none")


def test_numbers_that_a_loader_takes_for_text(convert: Convert) -> None:
    text = edited(
        ("learning_rate: 4.e-4", "learning_rate: 4e-4"), ("eps: 1.e-8", "eps: 1e-8"), ("decay: 0.05", "decay: 5E-2")
    )
    before = yaml.safe_load(text)
    assert (before["optimizer"]["eps"], before["lr_schedule"]["learning_rate"]) == ("1e-8", "4e-4")
    ran = convert(text)
    assert ran.status == 0
    after = [ran.keys[key] for key in ("lr_scheduler.learning_rate", "optimizer.eps", "optimizer.weight_decay")]
    assert after == [4e-4, 1e-8, 5e-2]
    assert all(type(value) is float for value in after)
    assert "eps: 1.0e-08" in (ran.text or "")


def test_a_key_that_stands_twice(convert: Convert) -> None:
    text = edited(("hidden_size: 64", "hidden_size: 64\n    vocab_size: 256"))
    first, second = line_of(text, "vocab_size: 512"), line_of(text, "vocab_size: 256")
    ran = convert(text)
    assert (ran.status, ran.text) == (3, None)
    assert f"graph.yaml:{second}:5: `model.model_config.vocab_size` stands twice" in ran.told
    assert f"line {first} " in ran.told
    assert f"line {second};" in ran.told


def test_misspelt_keys_come_with_what_was_meant(convert: Convert) -> None:
    text = edited(
        ("recompute_config:", "recompute_cfg:"),
        ("model_parallel:", "modle_parallel:"),
        ("weight_decay", "weight-decay"),
        ("prefix:", "zzzzqqq: 1\n    prefix:"),
    )
    ran = convert(text)
    lines = {
        line_of(text, "weight-decay"): "did you mean `optimizer.weight_decay`?",
        line_of(text, "modle_parallel"): "did you mean `parallel_config.model_parallel`?",
        line_of(text, "recompute_cfg") + 1: "did you mean `recompute_config`?",
        line_of(text, "zzzzqqq"): "it is not carried",
    }
    told = [line for line in ran.told.splitlines() if " unknown: " in line]
    assert [int(line.split(":")[1]) for line in told] == list(lines)
    for line, ending in zip(told, lines.values(), strict=True):
        assert line.endswith(ending)
    assert f"section `recompute_cfg` (line {line_of(text, 'recompute_cfg')})" in ran.told
    assert str(ran.entry("parallel_config.modle_parallel")["why"]).endswith(
        "did you mean `parallel_config.model_parallel`?"
    )
    assert ran.entry("recompute_cfg.recompute")["fate"] == "unknown"


def test_keys_that_lost_their_indentation(convert: Convert) -> None:
    text = edited(("recompute_config:\n  recompute: True\n  mp_comm", "recompute_config:\nrecompute: True\nmp_comm"))
    ran = convert(text)
    assert ran.status == 0
    assert f"`recompute_config` (line {line_of(text, 'recompute_config')}) is empty" in ran.told
    for key in ("recompute", "mp_comm_recompute"):
        place = f"graph.yaml:{line_of(text, chr(10) + key + ':') + 1}:1: unknown: key `{key}`"
        line = next(line for line in ran.told.splitlines() if line.startswith(place))
        assert line.endswith(f"did you mean `recompute_config.{key}`?")


GRAPH_ONLY = {
    "optimizer.swap": True, "train_dataset.data_loader.config.seed": 1234,
    "train_dataset.data_loader.config.num_dataset_builder_threads": 2, "context.mode": 0,
    "context.max_device_memory": "50GB", "parallel.parallel_mode": 1, "parallel.enable_parallel_optimizer": True,
    "profile": False, "model.model_config.offset": [0, 0], "model.model_config.pp_interleave_num": 1,
    "model.model_config.use_attn_mask_compression": True, "model.model_config.apply_rope_fusion": False,
    "model.model_config.bias_swiglu_fusion": True, "model.model_config.use_fused_ops_topkrouter": False,
}  # fmt: skip


def test_keys_that_only_graph_mode_has_are_listed_and_left_out(convert: Convert) -> None:
    model = "".join(f"    {key[19:]}: {value}\n" for key, value in GRAPH_ONLY.items() if key.startswith("model."))
    text = edited(
        ("  eps: 1.e-8\n", "  eps: 1.e-8\n  swap: True\n"), ("    vocab_size: 512\n", f"    vocab_size: 512\n{model}"),
        ("      eod: 1\n", "      eod: 1\n      seed: 1234\n      num_dataset_builder_threads: 2\n"),
        ("seed: 7\n", "seed: 7\nprofile: False\ncontext:\n  mode: 0\n  max_device_memory: 50GB\n"
         "parallel:\n  parallel_mode: 1\n  enable_parallel_optimizer: True\n"),
    )  # fmt: skip
    ran = convert(text)
    assert ran.status == 0
    names = {key.split(".")[-1] for key in ran.keys}
    for graph, value in GRAPH_ONLY.items():
        entry = ran.entry(graph)
        assert (entry["fate"], entry["old"]) == ("dropped", value)
        assert entry["why"]
        assert graph.split(".")[-1] not in names - {"seed", "mode"}
    assert ran.entry("train_dataset.data_loader.config.seed")["effect"] == "none"
    assert "train_dataset.dataloader.config.seed" not in ran.keys
    assert not {"context", "runner_wrapper", "parallel", "profile"} & {key.split(".")[0] for key in ran.keys}
    other = convert(text.replace("seed: 1234", "seed: 4321"))
    assert other.keys["train_dataset.dataloader.config.seed"] == 4321


LONG = "./data/" + "/".join(f"folder_{number:02}_of_a_long_path" for number in range(6)) + "/a name with blanks"


def test_a_hand_kept_file_keeps_its_hand(convert: Convert) -> None:
    text = edited(
        ("seed: 7\n", "# 全局 settings\nseed: 7      # 种子, fixed since March\n"),
        ("learning_rate: 4.e-4", "learning_rate: 4.e-4   # the peak"),
        ("data_path: ['1', \"./tokens\"]", f"data_path:\n        - '1'\n        - \"{LONG}\"   # 语料"),
        ("  model_parallel: 2", "  # two at most here\n  model_parallel: 2"),
    )
    ran = convert(text)
    lines = (ran.text or "").splitlines()
    for kept in (
        ["  # 全局 settings", "  seed: 7      # 种子, fixed since March"], ["  learning_rate: 4.e-4   # the peak"],
        ["      data_path:", "        - '1'", f'        - "{LONG}"   # 语料'],
        ["  # two at most here", "  tensor_parallel: 2"],
    ):  # fmt: skip
        start = lines.index(kept[0])
        assert lines[start : start + len(kept)] == kept
    assert "create_attention_mask: False" in (ran.text or "")
    assert ran.keys["train_dataset.dataloader.config.data_path"] == ["1", LONG]
    assert convert(text).text == ran.text


def test_anchors_do_not_dangle(convert: Convert) -> None:
    text = edited(
        ("vocab_size: 512", "seq_length: &len 96\n    vocab_size: 512\n    max_position_embeddings: *len"),
        ("  dataset_config: *data", "  type: CausalLanguageModelDataset\n  dataset_config: *data"),
    )
    ran = convert(text)
    assert ran.status == 0
    assert ran.keys["model.max_position_embeddings"] == 96
    assert "&" not in (ran.text or "")
    assert "*len" not in (ran.text or "")
    entry = ran.entry("train_dataset_task.dataset_config")
    assert (entry["fate"], entry["effect"], entry["old"]) == ("dropped", "none", "*data")
    assert "train_dataset" in str(entry["why"])


def test_chinese_names_where_the_locale_knows_none(tmp_path: Path) -> None:
    text = "# 迁移前\n" + edited(('"./tokens"', '"./数据/语料"'))
    (tmp_path / "训练配置.yaml").write_text(text, encoding="utf-8")
    plain = {"LC_ALL": "C", "LANG": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(
        [sys.executable, "-m", "msmigrate", "convert", "训练配置.yaml", "-o", "动态图.yaml", "--report", "-"],
        cwd=tmp_path, capture_output=True, check=False, env={**os.environ, **plain},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "训练配置.yaml: 44 keys read" in done.stderr.decode()
    written = (tmp_path / "动态图.yaml").read_text(encoding="utf-8")
    assert "data_path: ['1', \"./数据/语料\"]" in written
    assert written.startswith("training:\n  # 迁移前\n")


def test_an_empty_file_does_not_keep_the_others_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty.yaml").write_text("# to do\n---\n# nothing\n", encoding="utf-8")
    (tmp_path / "graph.yaml").write_text(GRAPH, encoding="utf-8")
    monkeypatch.setattr(sys, "argv", ["msmigrate", "convert", "empty.yaml", "graph.yaml", "--out-dir", "out"])
    with pytest.raises(SystemExit) as left:
        main()
    told = capsys.readouterr().err
    assert left.value.code == 3
    assert "msmigrate: empty.yaml: the file is empty: there is no key in it\n" in told
    assert "Traceback" not in told
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["graph.yaml"]


def test_architectures_as_a_list(convert: Convert) -> None:
    assert convert(GRAPH).keys["model.architectures"] == "DeepseekV3ForCausalLM"
    two = convert(edited(("[DeepseekV3ForCausalLM]", "[DeepseekV3ForCausalLM, Qwen3ForCausalLM]")))
    assert (two.status, two.text) == (1, None)
    assert "2 names" in two.told


def test_recompute_counts_per_stage(convert: Convert) -> None:
    ran = convert(edited(("pipeline_stage: 1", "pipeline_stage: 2"), ("recompute: True", "recompute: [1, 2]")))
    assert ran.keys["recompute.mode"] == "full"
    assert ran.keys["recompute.full_recompute_layer"] == [0, "3-4"]


def test_a_pynative_file_is_left_alone(convert: Convert) -> None:
    ran = convert(convert(GRAPH).text or "")
    assert (ran.status, ran.text, ran.entries) == (0, None, [])
    assert "graph.yaml is a pynative.yaml already; nothing was written" in ran.told


def test_python_multiprocessing_goes_under_the_loader(convert: Convert) -> None:
    ran = convert(edited(("  drop_remainder: True", "  python_multiprocessing: True\n  drop_remainder: True")))
    assert ran.keys["train_dataset.dataloader.python_multiprocessing"] is True
    assert "train_dataset.python_multiprocessing" not in ran.keys
