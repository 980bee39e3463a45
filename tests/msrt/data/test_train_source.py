"""The train_dataset section turned into samples."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from corpora import counting_corpus

from msmigrate.problems import UnreadableError, UserError
from msmigrate.pynative.sections import Dataloader, GPTDatasetConfig, TrainDataset
from msrt.data import BlendRule, open_train_source
from msrt.data.blend import BlendedDataset
from msrt.data.gpt_dataset import GPTDataset

COLUMNS = ("input_ids", "labels", "loss_mask", "position_ids")


@pytest.fixture
def prefix(tmp_path: Path) -> str:
    return counting_corpus(tmp_path / "corpus", [30] * 10).prefix


def section(prefix: object, loader: dict[str, Any] | None = None, **config: Any) -> TrainDataset:
    """A legal section over one corpus, changed by `loader` and `config` keys."""
    settings = GPTDatasetConfig(
        split="1, 0, 0", seq_length=8, create_attention_mask=False, data_path=("1", str(prefix))
    )
    base = Dataloader(
        type="BlendedMegatronDatasetDataLoader",
        sizes=(20, 0, 0),
        config=replace(settings, **config),
        column_names=COLUMNS,
    )
    return TrainDataset(dataloader=replace(base, **(loader or {})))


def test_weight_and_prefix(prefix: str) -> None:
    source = open_train_source(section(prefix), samples=20)
    assert isinstance(source, BlendedDataset)
    assert len(source) == 20
    assert source[0].tokens.shape == (8,)
    assert source[0].labels.tolist() == (source[0].tokens + 1).tolist()


def test_every_setting_reaches_the_samples(prefix: str) -> None:
    flags = {
        "seed": 7,
        "eod": 5,
        "pad": 6,
        "eod_mask_loss": True,
        "reset_position_ids": True,
        "reset_attention_mask": True,
        "create_attention_mask": True,
    }
    columns = {"column_names": (*COLUMNS, "attention_mask")}
    source = open_train_source(section(prefix, columns, data_path=prefix, **flags), samples=20)
    assert isinstance(source, GPTDataset)
    for name, value in flags.items():
        assert getattr(source.config, name) == value
    assert source.config.seq_length == 8


def test_seed_orders_the_samples_and_training_part_is_the_first(prefix: str) -> None:
    def tokens(**config: Any) -> list[int]:
        source = open_train_source(section(prefix, **config), samples=20)
        return [int(source[index].tokens[0]) for index in range(20)]

    assert tokens() == tokens(seed=1234)
    assert tokens() != tokens(seed=1)
    assert max(tokens(split="50, 50, 0")) < 2 + 150


@pytest.mark.parametrize(
    ("loader", "config", "message"),
    [
        ({"type": "MindDataset"}, {}, "train_dataset.dataloader.type is 'MindDataset'; msrt reads BlendedMegatron"),
        ({"type": None}, {}, "train_dataset.dataloader.type is missing; msrt reads"),
        ({"datasets_type": "MultiModal"}, {}, "datasets_type is 'MultiModal'"),
        ({"sizes": None}, {}, r"sizes is missing; this run consumes 20 .* write \[20, 0, 0\]"),
        ({"sizes": (20,)}, {}, "train_dataset.dataloader.sizes has 1 entry; it needs 3"),
        ({"sizes": (20, 0)}, {}, "sizes has 2 entries; it needs 3"),
        ({"sizes": (0, 20, 0)}, {}, "asks for 0 training samples"),
        (
            {"column_names": Dataloader().column_names},
            {},
            r"column_names is missing or stops after labels; write column_names: \[input_ids, labels, loss_mask, pos",
        ),
        ({"column_names": ("labels",)}, {}, r"column_names is \[labels\]; write column_names: \[input_ids, labels"),
        ({}, {"create_attention_mask": True}, r"position_ids, attention_mask\], .* with create_attention_mask true"),
        ({"column_names": ("labels", "input_ids", "loss_mask", "position_ids")}, {}, "in this order"),
        (
            {},
            {"create_compressed_eod_mask": True},
            r"position_ids, actual_seq_len\], .* create_compressed_eod_mask true",
        ),
        ({}, {"seed": 2**32}, "seed is 4294967296; it must be from 0 to 4294967295"),
        ({}, {"split": "-1, 1, 0"}, '"-1" is not a plain number'),
        ({}, {"split": None}, r"^train_dataset\.dataloader\.config\.split is missing"),
        ({}, {"split": "0, 1, 0"}, "leaves nothing for training"),
        ({}, {"data_path": None}, r"^train_dataset\.dataloader\.config\.data_path is missing"),
        ({}, {"data_path": ("0.7", "x.bin", "0.3")}, r"drop \.bin\. Weight 0.3 .* no path"),
    ],
)
def test_refused(prefix: str, loader: dict[str, Any], config: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        open_train_source(section(prefix, loader, **config), samples=20)


def test_all_faults_at_once(prefix: str) -> None:
    with pytest.raises(UserError) as error:
        open_train_source(section(prefix, {"type": "MindDataset", "sizes": (1,)}, split="a", data_path=()), samples=20)
    for part in ("MindDataset", "sizes has 1", 'split "a"', "data_path is []"):
        assert part in str(error.value)


def test_missing_corpus(tmp_path: Path) -> None:
    with pytest.raises(UnreadableError, match="There is no corpus at"):
        open_train_source(section(tmp_path / "nowhere"), samples=20)


def test_too_few_samples_warn_with_both_numbers(prefix: str, caplog: pytest.LogCaptureFixture) -> None:
    open_train_source(section(prefix), samples=20)
    assert caplog.messages == []
    source = open_train_source(section(prefix), samples=50)
    assert len(source) == 20
    assert "consumes 50 training samples and the data has 20: they are read 2.50 times" in caplog.text


def test_incomplete_batches_cannot_be_kept(prefix: str) -> None:
    kept = replace(section(prefix), drop_remainder=False)
    assert len(open_train_source(kept, samples=20)) == 20
    with pytest.raises(UserError, match="consumes 21 training samples and the data has 20; with drop_remainder false"):
        open_train_source(kept, samples=21)


def test_passes_without_an_incomplete_batch_need_no_dropping(prefix: str, caplog: pytest.LogCaptureFixture) -> None:
    kept = replace(section(prefix), drop_remainder=False)
    assert len(open_train_source(kept, samples=40, global_batch_size=10)) == 20
    assert "they are read 2.00 times" in caplog.text
    with pytest.raises(UserError, match="whose micro-batches would be short or empty"):
        open_train_source(kept, samples=40, global_batch_size=8)


def test_validation_and_test_samples_are_named_as_unread(prefix: str, caplog: pytest.LogCaptureFixture) -> None:
    open_train_source(section(prefix, {"sizes": (20, 3, 4)}), samples=20)
    (message,) = caplog.messages
    assert "sizes asks for 3 validation and 4 test samples; msrt trains only" in message


def test_compressed_mask_keeps_documents_apart(prefix: str) -> None:
    columns = {"column_names": (*COLUMNS, "actual_seq_len")}
    flags = {"create_compressed_eod_mask": True, "eod": 40, "eod_pad_length": 3, "data_path": prefix}
    source = open_train_source(section(prefix, columns, **flags), samples=20)
    assert isinstance(source, GPTDataset)
    assert (source.config.create_compressed_eod_mask, source.config.eod_pad_length) == (True, 3)
    mask = source[0].attention_mask
    assert mask is not None
    assert mask.shape == (1, 8, 8)


def test_mindformers_length_can_be_asked_for(prefix: str) -> None:
    assert len(open_train_source(section(prefix), samples=20, rule=BlendRule.MINDFORMERS)) == 21


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"eod": 1, "reset_attention_mask": True}, "reset_attention_mask has no effect without create_attention_mask"),
        (
            {"eod_mask_loss": True, "reset_position_ids": True},
            "config.eod is -1.* eod_mask_loss, reset_position_ids will never apply",
        ),
    ],
)
def test_flags_that_do_nothing_are_named(
    prefix: str, config: dict[str, Any], message: str, caplog: pytest.LogCaptureFixture
) -> None:
    open_train_source(section(prefix, **config), samples=20)
    (record,) = caplog.messages
    assert re.search(message, record)


def test_cache_folder_is_used(prefix: str, tmp_path: Path) -> None:
    open_train_source(section(prefix), samples=20, cache_dir=tmp_path / "cache")
    kept = sorted(path.name.rsplit("-", 1)[0] for path in (tmp_path / "cache").iterdir())
    assert kept == ["blend-index", "gpt-index"]


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (
            {"eod": 400, "eod_mask_loss": True},
            r"config\.eod is 400, but .* 400 has the tokens 0 to 399: eod_mask_loss c",
        ),
        ({"eod": 999, "reset_position_ids": True}, r"config\.eod is 999, .*: reset_position_ids could"),
        ({"pad": 400}, r"config\.pad is 400, but .* 0 to 399: no padding"),
    ],
)
def test_ids_that_no_token_has(prefix: str, config: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        open_train_source(section(prefix, **config), samples=20, vocab_size=400)


@pytest.mark.parametrize("config", [{"eod": 399, "eod_mask_loss": True}, {"eod": 400}, {"pad": 399}, {"pad": -1}])
def test_ids_that_do_no_harm(prefix: str, config: dict[str, Any]) -> None:
    assert len(open_train_source(section(prefix, **config), samples=20, vocab_size=400)) == 20


def test_tokens_are_checked_before_the_first_sample(prefix: str) -> None:
    # Tokens 2 to 301
    assert len(open_train_source(section(prefix), samples=20, vocab_size=302)) == 20
    with pytest.raises(UserError, match=r"corpus\.bin holds the token 301 \(position 299, .*vocab_size to 302"):
        open_train_source(section(prefix), samples=20, vocab_size=301)
