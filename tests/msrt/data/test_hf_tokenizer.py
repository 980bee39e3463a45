"""Corpora made with a Hugging Face tokenizer.json."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from corpora import documents_of

from msmigrate.problems import Exit, UnreadableError, UserError
from msrt.data import make_data
from msrt.data.tokenizers import open_tokenizer

WORDS = {"a": 0, "b": 1, "</s>": 2, "<unk>": 3}


def tokenizer_file(folder: Path, more_words: int = 0) -> Path:
    """A tokenizer that splits at blanks and knows `WORDS`, written without the library."""
    special = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    content = {
        "version": "1.0",
        "added_tokens": [{"id": 2, "content": "</s>", **special}],
        "normalizer": None,
        "pre_tokenizer": {"type": "Whitespace"},
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [{"SpecialToken": {"id": "</s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
            "pair": [],
            "special_tokens": {"</s>": {"id": "</s>", "ids": [2], "tokens": ["</s>"]}},
        },
        "decoder": None,
        "model": {
            "type": "WordLevel",
            "vocab": WORDS | {f"w{number}": 4 + number for number in range(more_words)},
            "unk_token": "<unk>",
        },
    }
    path = folder / "tokenizer.json"
    path.write_text(json.dumps(content))
    return path


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    (tmp_path / "a.jsonl").write_text('{"text": "a b a"}\n{"text": "b c"}\n')
    return tmp_path / "a.jsonl"


def test_missing_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    with pytest.raises(UserError, match=r"tokenizer\.json needs the tokenizers library: pip install 'msmigrate\[tok"):
        open_tokenizer(str(tokenizer_file(tmp_path)))


class TestWithTheLibrary:
    """What needs the extra `tokenizer`."""

    @pytest.fixture(autouse=True)
    def library(self) -> None:
        pytest.importorskip("tokenizers")

    def test_documents_and_their_end(self, tmp_path: Path, texts: Path) -> None:
        file = tokenizer_file(tmp_path)
        made = make_data([texts], tmp_path / "c", tokenizer=str(file), append_eod=True, eod_token="</s>")
        assert documents_of(tmp_path / "c") == [[0, 1, 0, 2], [1, 3, 2]]
        assert (made.dtype, made.eod) == ("uint16", 2)

    def test_no_special_token_is_added_unasked(self, tmp_path: Path, texts: Path) -> None:
        make_data([texts], tmp_path / "c", tokenizer=str(tokenizer_file(tmp_path)), append_eod=False)
        assert documents_of(tmp_path / "c") == [[0, 1, 0], [1, 3]]

    @pytest.mark.parametrize("eos", ["</s>", {"content": "</s>", "lstrip": False}])
    def test_end_of_document_from_the_config_beside_it(self, tmp_path: Path, eos: object) -> None:
        tokenizer_file(tmp_path)
        (tmp_path / "tokenizer_config.json").write_text(json.dumps({"eos_token": eos}))
        assert open_tokenizer(str(tmp_path)).eod == 2

    def test_end_of_document_that_is_not_known(self, tmp_path: Path, texts: Path) -> None:
        file = str(tokenizer_file(tmp_path))
        with pytest.raises(UserError, match=r"--eod-token; its special tokens are \['</s>'\]"):
            make_data([texts], tmp_path / "c", tokenizer=file, append_eod=True)
        with pytest.raises(UserError, match=r"has no token '<eos>' among its 4"):
            make_data([texts], tmp_path / "c", tokenizer=file, append_eod=True, eod_token="<eos>")
        assert not list(tmp_path.glob("c.*"))

    @pytest.mark.parametrize(("more", "dtype"), [(65495, "uint16"), (65496, "int32")])
    def test_element_type_follows_the_vocabulary(self, tmp_path: Path, texts: Path, more: int, dtype: str) -> None:
        made = make_data([texts], tmp_path / "c", tokenizer=str(tokenizer_file(tmp_path, more)), append_eod=False)
        assert made.dtype == dtype

    def test_workers_give_the_same_files(self, tmp_path: Path) -> None:
        file = str(tokenizer_file(tmp_path))
        words = np.random.default_rng(0).choice(["a", "b", "c"], (300, 20))
        (tmp_path / "a.jsonl").write_text("".join(json.dumps({"text": " ".join(row)}) + "\n" for row in words))
        for workers in (1, 2):
            make_data(
                [tmp_path / "a.jsonl"], tmp_path / f"c{workers}", tokenizer=file, append_eod=False, workers=workers
            )
        assert (tmp_path / "c1.bin").read_bytes() == (tmp_path / "c2.bin").read_bytes()

    @pytest.mark.parametrize("content", ["", "{}", "not JSON"])
    def test_file_that_is_no_tokenizer(self, tmp_path: Path, content: str) -> None:
        (tmp_path / "tokenizer.json").write_text(content)
        with pytest.raises(UnreadableError, match=r"tokenizer\.json is not a tokenizer\.json"):
            open_tokenizer(str(tmp_path))

    def test_missing_file(self, tmp_path: Path) -> None:
        with pytest.raises(
            UnreadableError, match=r"none cannot be read: No such file.* It is bytes, or the path"
        ) as error:
            open_tokenizer(str(tmp_path / "none"))
        assert error.value.status == Exit.UNREADABLE
