"""Converted files, taken by the real MindFormers readers and their start-up checks on the graph run's devices."""

import json
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest

from msmigrate.convert import convert
from msmigrate.findings import Severity
from msmigrate.lint import lint
from msmigrate.options import ExpertMesh, Options, Target
from msmigrate.problems import UserError
from msmigrate.pynative.start_up import Setting
from msmigrate.yaml.document import parse
from msmigrate.yaml.source import read_source

FILES = (
    "corpus/graph/mcore/pretrain_deepseek3_671b.yaml", "corpus/graph/mcore/pretrain_deepseek3_12b_16p_pp16.yaml",
    "corpus/graph/mcore/pretrain_qwen3_30b_a3b_4k.yaml", "corpus/graph/mcore/pretrain_qwen3_32b_4k.yaml",
    "corpus/graph/mcore/pretrain_qwen3_32b_4k__dev.yaml", "corpus/graph/mcore/pretrain_telechat3_36b.yaml",
    "cases/base/graph.yaml", "cases/C03/graph.yaml", "cases/C04/graph.yaml", "cases/C05/graph.yaml",
    "cases/C08/graph.yaml", "cases/C09/graph.yaml", "cases/C10/graph.yaml", "cases/C14/graph.yaml",
    "cases/C15/graph.yaml", "cases/C16/graph.yaml", "cases/C19/graph.yaml", "cases/C25/graph.yaml",
    "cases/C36/graph.yaml",
)  # fmt: skip


@pytest.mark.parametrize("target", list(Target))
def test_the_readers_take_what_is_written_for_them(shared: Path, tmp_path: Path, target: Target) -> None:
    oracle = shared / "tools" / "upstream_accepts.py"
    by_world: defaultdict[int, list[str]] = defaultdict(list)
    for name in FILES:
        conversion = convert(parse(read_source(str(shared / name))), Options(target=target, allow_lossy=True))
        assert conversion.text is not None, name
        world = conversion.facts["world"].value
        assert isinstance(world, int)
        path = tmp_path / name.replace("/", "_")
        path.write_text(conversion.text, encoding="utf-8")
        assert errors(path, target, world) == []
        by_world[world].append(str(path))
    for world, paths in by_world.items():
        done = subprocess.run(
            [sys.executable, str(oracle), "--world-size", str(world), f"{target}.0", *paths],
            capture_output=True, encoding="utf-8", check=False, timeout=300,
        )  # fmt: skip
        if done.returncode == 2:
            pytest.skip(f"the real reader cannot be fetched here: {done.stderr.strip()[-200:]}")
        assert done.returncode == 0, done.stdout


BAD = {
    "unknown key": ("enable_save: False", "enable_sav: False"),
    "text for a number": ("eps: 1.e-8", "eps: 1e-8"),
    "truth value for a number": ("steps: 100", "steps: True"),
    "null mode": ("mode: full", "mode: null"),
    "unknown mode": ("mode: full", "mode: all"),
    "missing type": ("  type: ConstantWarmUpLR\n", ""),
    "missing model type": ('  model_type: "deepseek_v3"\n', ""),
    "empty section": ("recompute_comm:\n  enable: False", "recompute_comm:"),
    "too deep": ("model:\n", "model:\n  rope_scaling: " + "{a: " * 10 + "1" + "}" * 10 + "\n"),
    "lists do not count": ("sizes: [400, 0, 0]", "sizes: [400, 0, 0]\n    data_files: " + "[" * 12 + "]" * 12),
    "key of 2.1": ("steps: 100", "steps: 100\n  use_skip_step_on_nan: False"),
    "section of 2.1": ("training:", "inference: {batch_size: 1}\ntraining:"),
    "tensorboard of 2.0": ("training:", "monitor: {tensorboard: {tensorboard_dir: x}}\ntraining:"),
    "tensorboard of 2.1": ("training:", "monitor: {tensorboard: {output_dir: x}}\ntraining:"),
    "callback without type": ("training:", "callbacks: [{a: 1}]\ntraining:"),
    "profiler backwards": ("training:", "profiler: {start_step: 3, end_step: 2}\ntraining:"),
    "dispatcher": ("tensor_parallel: 2", "tensor_parallel: 2\n  moe_token_dispatcher_type: alltoall_deredundancy"),
    "adapters without targets": ("training:", "lora_config: {lora_rank: 4}\ntraining:"),
    "adapters without a base": ("enable_save: False", "save_trainable_only: True"),
    "no sequence parallel": ("  sequence_parallel: True\n", ""),
    "layers as a text": ("[0-3]", "'0-3'"),
    "layers missing": ("  full_recompute_layer: [0-3]\n", ""),
    "modules missing": ("mode: full", "mode: select"),
    "modules without layers": ("mode: full", "mode: select\n  select_module: {mlp: 3}"),
    "communication modules missing": ("enable: False", "enable: True"),
    "communication switched off": ("enable: False", "enable: False\n  select_module: {mlp: [0]}"),
    "no such layer": ("[0-3]", "[0-4]"),
    "the layer of the MTP": ("[0-3]", "[0-4]", "model:\n", "model:\n  num_nextn_predict_layers: 1\n"),
    "layers backwards": ("[0-3]", "[3-1]"),
    "layers descending": ("[0-3]", "[2, 0]"),
    "layers overlapping": ("[0-3]", "[0-2, 2-3]"),
    "layers in pieces": ("[0-3]", "[0, 2-3]"),
    "operators as a list": ("mode: full", "exclude_op: [matmul]\n  mode: full"),
    "operators as a mapping": ("mode: full", "exclude_op: {mlp: [0]}\n  mode: full"),
    "tensor degree": ("tensor_parallel: 2", "tensor_parallel: 3"),
    "tensor degree above ranks": ("tensor_parallel: 2", "tensor_parallel: 16"),
    "expert degree": ("expert_parallel: 1", "expert_parallel: 3"),
    "expert degree in one replica": ("expert_parallel: 1", "expert_parallel: 8", "shard: -1", "shard: 2"),
    "expert degree that fits": ("expert_parallel: 1", "expert_parallel: 4", "shard: -1", "shard: 2"),
    "shard 0": ("shard: -1", "shard: 0"),
    "shard 3 of 4": ("shard: -1", "shard: 3"),
    "batch below a unit": ("global_batch_size: 4", "global_batch_size: 2"),
    "batch no multiple": ("global_batch_size: 4", "global_batch_size: 10"),
    "no warm-up": ("  warmup_ratio: 0.2\n", ""),
    "warm-up of cosine": ("ConstantWarmUpLR", "CosineWithWarmUpLR"),
    "warm-up ratio above 1": ("warmup_ratio: 0.2", "warmup_ratio: 1.2"),
    "warm-up steps no integer": ("warmup_ratio: 0.2", "warmup_steps: 2.5"),
    "ignored schedule key": ("warmup_ratio: 0.2", "warmup_ratio: 0.2\n  lr_end: 0.0"),
    "unknown schedule": ("ConstantWarmUpLR", "NoSuchLR"),
}  # fmt: skip
"""Changes to a good file, most of them for the worse: old and new text, in pairs."""


@pytest.mark.parametrize("target", list(Target))
def test_the_verdict_of_the_rules_is_the_readers(shared: Path, tmp_path: Path, target: Target) -> None:
    base = (shared / "cases" / "base" / "pynative.yaml").read_text(encoding="utf-8")
    good = base.replace("tensor_parallel: 2", "tensor_parallel: 2\n  sequence_parallel: True")
    texts = {"as it is": good} | {name: changed(good, *pairs) for name, pairs in BAD.items()}
    paths = {name: tmp_path / f"{number}.yaml" for number, name in enumerate(texts)}
    for name, text in texts.items():
        paths[name].write_text(text, encoding="utf-8")
    oracle = shared / "tools" / "upstream_accepts.py"
    done = subprocess.run(
        [sys.executable, str(oracle), "--json", "--world-size", "8", f"{target}.0", *map(str, paths.values())],
        capture_output=True, encoding="utf-8", check=False, timeout=300,
    )  # fmt: skip
    if done.returncode == 2:
        pytest.skip(f"the real reader cannot be fetched here: {done.stderr.strip()[-200:]}")
    theirs = {row["file"]: row for row in json.loads(done.stdout)["results"]}
    differing = {
        name: (theirs[str(path)]["error"], verdict)
        for name, path in paths.items()
        if theirs[str(path)]["ok"] != ((verdict := errors(path, target, 8)) == [])
    }
    assert differing == {}
    assert sum(row["ok"] for row in theirs.values()) < len(BAD) / 2


def changed(text: str, *pairs: str) -> str:
    for old, new in zip(pairs[::2], pairs[1::2], strict=True):
        assert old in text, old
        text = text.replace(old, new, 1)
    return text


def errors(path: Path, target: Target, world: int) -> list[str]:
    """What stops the reader on `world` ranks by our rules, under its own reading of the ranks."""
    try:
        found = lint(read_source(str(path)), Setting(target, world, ExpertMesh.NESTED))
    except UserError as error:
        return [str(error)]
    return [str(finding) for finding in found if finding.severity is Severity.ERROR]
