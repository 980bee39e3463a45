"""Corpora, sample order, masks and blends against numbers recorded from megatron-core; every comparison is exact."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from msrt.data import IndexedDataset, IndexedWriter
from msrt.data.blend import BlendedDataset, build_part
from msrt.data.data_path import parse_data_path
from msrt.data.gpt_dataset import GPTDataset
from msrt.data.sample import GPTConfig
from msrt.data.split import SPLITS, parse_split

CORPORA = ("corpus_a", "corpus_b", "corpus_c")
CASES = (
    "single_one_epoch",
    "single_many_epochs",
    "single_last_epoch_separate",
    "single_uint16",
    "single_multi_sequence_docs",
    "split_80_15_5",
    "split_90_10_0",
    "valid_keeps_partial",
    "flags_eod_mask_loss",
    "flags_reset_position_ids",
    "flags_reset_attention_mask",
    "flags_all",
    "flags_attention_mask_only",
    "no_extra_token",
    "pad_is_a_real_token",
    "blend_two",
    "blend_three",
    "blend_three_unnormalised",
    "blend_three_splits",
    "blend_tiny_weight",
    "blend_no_weights",
    "blend_large_seq",
)

Arrays = dict[str, Any]


@pytest.fixture
def golden(shared: Path) -> Path:
    return shared / "golden" / "megatron_data"


def recorded(golden: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((golden / "cases.json").read_text(encoding="utf-8"))["cases"]
    return found


def test_no_case_is_left_out(golden: Path) -> None:
    assert set(CASES) == set(recorded(golden))


@pytest.mark.parametrize("name", CORPORA)
def test_corpus_reads_and_writes_as_megatron(golden: Path, tmp_path: Path, name: str) -> None:
    corpus = IndexedDataset(golden / name)
    with np.load(golden / f"{name}.content.npz") as content:
        assert np.array_equal(corpus.sequence_lengths, content["sequence_lengths"])
        assert np.array_equal(corpus.document_indices, content["document_indices"])
        assert np.array_equal(np.concatenate([corpus.get(i) for i in range(len(corpus))]), content["tokens"])
    with IndexedWriter(tmp_path / name, corpus.dtype) as writer:
        for first, last in zip(corpus.document_indices[:-1], corpus.document_indices[1:], strict=True):
            parts = [corpus.get(number) for number in range(first, last)]
            writer.add_document(np.concatenate(parts), [len(part) for part in parts])
    for suffix in (".bin", ".idx"):
        assert (tmp_path / name).with_suffix(suffix).read_bytes() == (golden / name).with_suffix(suffix).read_bytes()


@pytest.mark.parametrize("name", CASES)
def test_case(golden: Path, name: str) -> None:
    case = recorded(golden)[name]
    settings = case["config"]
    entries = [str(golden / entry) if entry in CORPORA else entry for entry in settings["data"]]
    config = gpt_config(settings)
    with np.load(golden / f"{name}.npz") as arrays:
        expected = dict(arrays)
    found: Arrays = {}
    for part, size in zip(SPLITS, settings["sizes"], strict=True):
        data = build_part(parse_data_path(entries), parse_split(settings["split"]), part, size, config)
        result = case["result"][part]
        assert (data is None) == (result is None)
        if data is None:
            continue
        assert (len(data), type(data).__name__) == (result["length"], result["kind"])
        if isinstance(data, BlendedDataset):
            sizes = [(len(member), member.num_samples) for member in data.members]
            assert sizes == [(member["length"], member["requested"]) for member in result["parts"]]
        found |= indices(part, data) | samples(part, data, expected)
    assert found.keys() == expected.keys()
    for tag, array in found.items():
        assert np.array_equal(array, expected[tag]), tag


def gpt_config(settings: dict[str, Any]) -> GPTConfig:
    same = ("seq_length", "seed", "eod", "pad", "eod_mask_loss", "reset_position_ids", "reset_attention_mask")
    more = ("create_attention_mask", "drop_last_partial_validation_sequence")
    return GPTConfig(add_extra_token=settings["add_extra_token"], **{key: settings[key] for key in same + more})


def indices(tag: str, data: GPTDataset | BlendedDataset) -> Arrays:
    if isinstance(data, GPTDataset):
        return {
            f"{tag}.document_index": data.indices.documents,
            f"{tag}.sample_index": data.indices.samples,
            f"{tag}.shuffle_index": data.indices.shuffle,
            f"{tag}.exposed_indices": data.part,
        }
    found: Arrays = {
        f"{tag}.blend.dataset_index": data.indices.members,
        f"{tag}.blend.dataset_sample_index": data.indices.samples,
    }
    for number, member in enumerate(data.members):
        found |= indices(f"{tag}.part{number}", member)
    return found


def samples(tag: str, data: GPTDataset | BlendedDataset, expected: Arrays) -> Arrays:
    """As many first samples as were recorded."""
    got = [data[index] for index in range(len(expected[f"{tag}.tokens"]))]
    found: Arrays = {
        f"{tag}.{column}": np.stack([getattr(sample, column) for sample in got])
        for column in ("tokens", "labels", "loss_mask", "position_ids")
    }
    if masks := [sample.attention_mask for sample in got if sample.attention_mask is not None]:
        found[f"{tag}.attention_mask"] = np.stack(masks[: len(expected[f"{tag}.attention_mask"])])
    return found
