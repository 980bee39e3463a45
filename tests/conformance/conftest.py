"""Tests against references that lie beside the repository."""

from pathlib import Path

import pytest

SHARED = Path(__file__).parents[2].parent / "shared"


@pytest.fixture
def shared() -> Path:
    """The reference folder beside the repository; the test is skipped where there is none."""
    if not SHARED.is_dir():
        pytest.skip("the reference folder ../shared is not here")
    return SHARED
