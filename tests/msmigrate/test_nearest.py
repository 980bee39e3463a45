"""The word that was probably meant: a shortcut must not change what the standard library finds."""

import difflib

from hypothesis import given
from hypothesis import strategies as st

from msmigrate.findings import nearest
from msmigrate.pynative import Config, specs_of

NAMES = sorted({path.rpartition(".")[2] for path in specs_of(Config)})


def test_misspelt_keys_find_what_was_meant() -> None:
    assert nearest("hidden_sise", NAMES) == "hidden_size"
    assert nearest("Local-Batch-Size", NAMES) == "local_batch_size"
    assert nearest("zzz", NAMES) is None
    assert nearest("", NAMES) is None


@given(name=st.sampled_from(NAMES), cut=st.integers(0, 20), put=st.text("abcdeiostz_-QX9", max_size=6))
def test_the_shortcut_finds_what_a_full_comparison_finds(name: str, cut: int, put: str) -> None:
    word = name[:cut] + put + name[cut + len(put) // 2 :]
    found = difflib.get_close_matches(word.lower().replace("-", "_"), NAMES, n=1, cutoff=0.75)
    assert nearest(word, NAMES) == (found[0] if found else None)
