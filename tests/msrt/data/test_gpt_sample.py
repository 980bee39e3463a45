"""Loss mask, positions and attention mask of a sample, against definitions written out position by position."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from msmigrate.problems import UserError
from msrt.data.sample import GPTConfig, make_sample

EOD, PAD = 1, 0


def config(text: list[int], extra: bool, flags: tuple[bool, bool, bool]) -> GPTConfig:
    positions, mask, loss = flags
    return GPTConfig(
        seq_length=len(text) - extra,
        eod=EOD,
        pad=PAD,
        eod_mask_loss=loss,
        reset_position_ids=positions,
        reset_attention_mask=mask,
        create_attention_mask=True,
        add_extra_token=extra,
    )


@given(
    st.lists(st.sampled_from([EOD, PAD, 2, 3, 4]), min_size=2, max_size=14),
    st.booleans(),
    st.tuples(st.booleans(), st.booleans(), st.booleans()),
)
def test_every_position(text: list[int], extra: bool, flags: tuple[bool, bool, bool]) -> None:
    settings = config(text, extra, flags)
    sample = make_sample(np.array(text), settings)
    length = settings.seq_length
    tokens = text[:length]
    labels = text[1:] if extra else [*text[1:], PAD]
    assert sample.tokens.tolist() == tokens
    assert sample.labels.tolist() == labels
    document = [sum(token == EOD for token in tokens[:at]) for at in range(length)]
    for at in range(length):
        left_out = labels[at] == PAD or (settings.eod_mask_loss and tokens[at] == EOD)
        assert sample.loss_mask[at] == (0.0 if left_out else 1.0)
        start = document.index(document[at]) if settings.reset_position_ids else 0
        assert sample.position_ids[at] == at - start
        assert sample.attention_mask is not None
        for key in range(length):
            other = settings.reset_attention_mask and document[key] != document[at]
            assert sample.attention_mask[0, at, key] == (key > at or other)


@given(st.lists(st.sampled_from([EOD, 2, 3]), min_size=3, max_size=12), st.booleans())
def test_compressed_mask_is_the_one_that_keeps_documents_apart(text: list[int], create: bool) -> None:
    settings = GPTConfig(len(text) - 1, eod=EOD, create_attention_mask=create, create_compressed_eod_mask=True)
    apart = GPTConfig(len(text) - 1, eod=EOD, create_attention_mask=True, reset_attention_mask=True)
    found, expected = (make_sample(np.array(text), each).attention_mask for each in (settings, apart))
    assert found is not None
    assert expected is not None
    assert np.array_equal(found, expected)


def test_compressed_mask_with_too_many_documents() -> None:
    settings = GPTConfig(6, eod=EOD, create_compressed_eod_mask=True, eod_pad_length=2)
    make_sample(np.array([EOD, 5, EOD, 5, 5, EOD, 5]), settings)  # an end at the last place starts nothing
    with pytest.raises(UserError, match=r"3 ends of documents, and eod_pad_length 2 .*eod_pad_length to 3 or more"):
        make_sample(np.array([EOD, EOD, EOD, 5, 5, EOD, 5]), settings)


def test_samples_share_no_mask() -> None:
    """megatron-core keeps the first sample's masks and changes them in place; ours are new each time."""
    settings = GPTConfig(3, pad=9)
    padded, full = make_sample(np.array([5, 9, 9, 9]), settings), make_sample(np.array([1, 2, 3, 4]), settings)
    assert padded.loss_mask.tolist() == [0, 0, 0]
    assert full.loss_mask.tolist() == [1, 1, 1]


def test_pad_id_becomes_zero() -> None:
    sample = make_sample(np.array([5, 6, -1, -1]), GPTConfig(seq_length=3))
    assert sample.tokens.tolist() == [5, 6, 0]
    assert sample.labels.tolist() == [6, 0, 0]
    assert sample.loss_mask.tolist() == [1, 0, 0]


def test_types() -> None:
    sample = make_sample(np.arange(5), GPTConfig(seq_length=4, create_attention_mask=True))
    for array in (sample.tokens, sample.labels, sample.position_ids):
        assert array.dtype == np.int32
    assert sample.loss_mask.dtype == np.float32
    assert sample.attention_mask is not None
    assert sample.attention_mask.dtype == np.bool_
    assert sample.attention_mask.shape == (1, 4, 4)
    assert make_sample(np.arange(5), GPTConfig(seq_length=4)).attention_mask is None
