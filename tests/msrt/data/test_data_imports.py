"""The data room works without MindSpore."""

import subprocess
import sys


def test_no_heavy_import() -> None:
    code = "import sys, msrt.data; print(sorted({'mindspore', 'torch', 'mindformers'} & set(sys.modules)))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"
