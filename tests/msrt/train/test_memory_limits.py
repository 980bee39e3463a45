import re
from pathlib import Path

import numpy as np
import pytest
from fake_model import numbers

from msmigrate.problems import Exit, UserError
from msrt.train import memory
from msrt.train.memory import available_memory, explained_shortage, refuse_too_large


def test_a_model_that_does_not_fit_is_refused_in_gibibytes() -> None:
    with pytest.raises(
        UserError, match=r"1,073,741,824 parameters, which take at least 20\.0 GiB .* has 19\.5 GiB available"
    ):
        refuse_too_large(2**30, int(19.5 * 2**30))
    refuse_too_large(2**30, 20 * 2**30)
    refuse_too_large(2**60, None)


def test_the_limit_of_a_control_group_counts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(memory, "GROUP_LIMIT", tmp_path / "memory.max")
    (tmp_path / "memory.max").write_text("max\n")
    machine = available_memory()
    assert machine is not None
    assert 2**20 < machine < 2**50
    (tmp_path / "memory.max").write_text("12345\n")
    assert available_memory() == 12345


def test_a_failed_allocation_says_what_to_lower() -> None:
    with (
        pytest.raises(UserError, match=r"2 × 4 tokens: .* could not be allocated\. Lower training") as caught,
        explained_shortage(numbers(1, 1)),
    ):
        np.zeros(2**59)
    assert caught.value.status == Exit.NO
    with pytest.raises(UserError, match="Memory ran out"), explained_shortage(numbers(1, 1)):
        raise RuntimeError("Allocate memory failed, size: 12")  # MindSpore's words


def test_other_errors_pass() -> None:
    with pytest.raises(RuntimeError, match=re.escape("shapes")), explained_shortage(numbers(1, 1)):
        raise RuntimeError("shapes differ")
