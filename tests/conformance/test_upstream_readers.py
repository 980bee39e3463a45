"""Converted files, taken by the real MindFormers readers and their start-up checks on the graph run's devices."""

import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest

from msmigrate.convert import convert
from msmigrate.options import Options, Target
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
        by_world[world].append(str(path))
    for world, paths in by_world.items():
        done = subprocess.run(
            [sys.executable, str(oracle), "--world-size", str(world), f"{target}.0", *paths],
            capture_output=True, encoding="utf-8", check=False, timeout=300,
        )  # fmt: skip
        if done.returncode == 2:
            pytest.skip(f"the real reader cannot be fetched here: {done.stderr.strip()[-200:]}")
        assert done.returncode == 0, done.stdout
