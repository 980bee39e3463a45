"""The reference folder's user cases through the command: values, statuses, and what a user is told and where."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from msmigrate.cli import main

ROOT = Path(__file__).parents[2]
BASE = {"training.steps": 100, "training.global_batch_size": 4, "training.local_batch_size": 1, "training.seed": 42,
        "lr_scheduler.warmup_ratio": 0.2, "parallelism.tensor_parallel": 2, "parallelism.data_parallel_shard": -1,
        "recompute.mode": "full", "recompute.full_recompute_layer": ["0-3"]}  # fmt: skip
DATA = "train_dataset.dataloader"

CASES: list[tuple[str, int, dict[str, object], list[str]]] = [
    ("base", 0, BASE, []),
    ("C03", 0, {**BASE, "training.local_batch_size": 2, "training.global_batch_size": 8, "training.steps": 50},
     ["(line 45): micro_batch_num 8 has no effect"]),
    ("C04", 0, {**BASE, "training.global_batch_size": 16, "training.steps": 25},
     ["(line 43): 2 stages are folded", "all 4 layers", "more memory per device"]),
    ("C05", 0, {**BASE, "lr_scheduler.warmup_ratio": 0.29000000000000004}, []),
    ("C07", 1, {}, [":15:3: refused", "200 steps does not fit into a run of 100 steps"]),
    ("C08", 0, {**BASE, "training.local_batch_size": 2, "training.global_batch_size": 8, "training.steps": 375}, []),
    ("C09", 0, {**BASE, "lr_scheduler.lr_end": 2e-6, "lr_scheduler.warmup_lr_init": 1e-7}, []),
    ("C10", 0, {**BASE, "lr_scheduler.learning_rate": 1e-5, "optimizer.eps": 1e-8, "optimizer.weight_decay": 1e-2}, []),
    ("C11", 3, {}, [":56:5:", "line 54", "line 56", "twice"]),
    ("C12", 0, {}, [":11:3: unknown", "did you mean `optimizer.weight_decay`?", ":42:3: unknown",
                    "did you mean `parallel_config.model_parallel`?", "section `recompute_confg` (line 46)",
                    "did you mean `recompute_config`?"]),
    ("C13", 0, {}, ["`recompute_config` (line 46) is empty", ":47:1: unknown: key `recompute`",
                    "did you mean `recompute_config.recompute`?", ":48:1: unknown: key `select_recompute`",
                    "did you mean `recompute_config.select_recompute`?"]),
    ("C14", 0, {**BASE, "training.max_norm": 1.0}, []),
    ("C15", 0, {**BASE}, []),
    ("C16", 0, {**BASE, "model.max_position_embeddings": 128, "model.seq_length": 128}, []),
    ("C17", 0, {**BASE, f"{DATA}.config.data_path": ["1", "./data/语料_text_document"]}, []),
    ("C18", 3, {}, ["is empty"]),
    ("C19", 0, {**BASE, "model.architectures": "DeepseekV3ForCausalLM"}, []),
    ("C25", 0, {**BASE, "recompute.full_recompute_layer": ["0-1", 4]}, ["2 stages are folded"]),
    ("C35", 0, {}, ["is a pynative.yaml already; nothing was written"]),
    ("C36", 0, {**BASE, f"{DATA}.python_multiprocessing": True}, []),
]  # fmt: skip
NOTHING_WRITTEN = ("C07", "C11", "C18", "C35")


def flat(value: object, prefix: str = "") -> dict[str, object]:
    """Values of nested mappings by dotted path."""
    if not isinstance(value, dict) or not value:
        return {prefix: value}
    inside = [flat(inner, f"{prefix}.{key}" if prefix else key) for key, inner in value.items()]
    return {path: leaf for found in inside for path, leaf in found.items()}


Convert = Callable[..., tuple[int, str, Path]]


@pytest.fixture
def convert(
    shared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Convert:
    """Converts a case: status, messages, and the folder with `out.yaml` and `report.json`."""

    def call(case: str, *options: str) -> tuple[int, str, Path]:
        whole = shared / "cases" / f"{case}.yaml"
        source = whole if whole.exists() else shared / "cases" / case / "graph.yaml"
        report = ["--report", str(tmp_path / "report.json"), "--report-format", "json"]
        arguments = ["convert", str(source), "-o", str(tmp_path / "out.yaml"), *report, *options]
        monkeypatch.setattr(sys, "argv", ["msmigrate", *arguments])
        with pytest.raises(SystemExit) as left:
            main()
        assert isinstance(left.value.code, int)
        return left.value.code, capsys.readouterr().err, tmp_path

    return call


@pytest.mark.parametrize(("case", "status", "values", "words"), CASES)
def test_a_case(convert: Convert, case: str, status: int, values: dict[str, object], words: list[str]) -> None:
    found, told, folder = convert(case)
    assert (found, "Traceback" in told) == (status, False)
    assert [word for word in words if word not in told] == []
    assert (folder / "out.yaml").exists() == (case not in NOTHING_WRITTEN)
    if case in NOTHING_WRITTEN:
        return
    read = flat(yaml.safe_load((folder / "out.yaml").read_text(encoding="utf-8")))
    assert {path: read.get(path) for path in values} == values
    if not words:
        assert len(told.splitlines()) == 1, told


def test_losses_that_manual_only_refuses(convert: Convert) -> None:
    status, told, folder = convert("C09", "--manual-only")
    assert (status, (folder / "out.yaml").exists()) == (1, False)
    assert ":15:3: refused: `lr_schedule.lr_end`" in told
    assert ":16:3: refused: `lr_schedule.warmup_lr_init`" in told


def test_keys_of_graph_mode_alone_are_listed_once(convert: Convert) -> None:
    folder = convert("C14")[2]
    text = (folder / "out.yaml").read_text(encoding="utf-8")
    entries = json.loads((folder / "report.json").read_text(encoding="utf-8"))["entries"]
    gone = ("offset", "pp_interleave_num", "use_attn_mask_compression", "apply_rope_fusion", "bias_swiglu_fusion",
            "use_fused_ops_topkrouter", "swap", "num_dataset_builder_threads")  # fmt: skip
    for name in gone:
        assert f"{name}:" not in text
        assert [entry["fate"] for entry in entries if str(entry["graph"]).endswith(f".{name}")] == ["dropped"]
    sections = set(yaml.safe_load(text))
    assert not {"context", "runner_wrapper", "parallel", "profile"} & sections
    (seed,) = [entry for entry in entries if entry["graph"] == "train_dataset.data_loader.config.seed"]
    assert (seed["fate"], seed["effect"], seed["span"]["line"]) == ("dropped", "none", 25)
    assert "1234:" not in text


def test_comments_paths_and_quotes_survive(convert: Convert) -> None:
    folder = convert("C15")[2]
    first = (folder / "out.yaml").read_bytes()
    lines = first.decode().splitlines()
    for line in (
        "  # 全局设置 global settings", "  seed: 42                    # 随机种子, keep fixed for the ablation",
        "  learning_rate: 1.e-5      # peak value, agreed on 12 March", "        - '1'",
        "  # do not go above 2 on this cluster", "  # ---- experts ----", "  n_routed_experts: 8       # 路由专家数",
    ):  # fmt: skip
        assert line in lines
    (path,) = [line for line in lines if "part_text_document" in line]
    assert path.startswith('        - "./data/a_rather_long')
    assert path.endswith('with space/part_text_document"   # 语料')
    convert("C15")
    assert (folder / "out.yaml").read_bytes() == first


def test_no_alias_is_left(convert: Convert) -> None:
    folder = convert("C16")[2]
    events = list(yaml.parse((folder / "out.yaml").read_text(encoding="utf-8")))
    assert not [event for event in events if isinstance(event, yaml.AliasEvent)]
    entries = json.loads((folder / "report.json").read_text(encoding="utf-8"))["entries"]
    (entry,) = [entry for entry in entries if entry["graph"] == "train_dataset_task.dataset_config"]
    assert (entry["fate"], entry["effect"]) == ("dropped", "none")


def test_a_plain_locale(shared: Path, tmp_path: Path) -> None:
    (tmp_path / "静态图.yaml").write_bytes((shared / "cases" / "C17" / "graph.yaml").read_bytes())
    plain = {"LC_ALL": "C", "LANG": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(
        [sys.executable, "-m", "msmigrate", "convert", "静态图.yaml", "-o", "动态图.yaml"],
        cwd=tmp_path, capture_output=True, check=False, env={**os.environ, **plain},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "./data/语料_text_document" in (tmp_path / "动态图.yaml").read_text(encoding="utf-8")
