"""What makes token ids of texts: the byte tokenizer, or a Hugging Face tokenizer.json."""

import os
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from msmigrate.json_text import read_json_object
from msmigrate.problems import UnreadableError, UsageError, UserError
from msmigrate.yaml.source import shown_path
from msrt.data.bytes_tokenizer import BytesTokenizer

FILE = "tokenizer.json"
SETTINGS = "tokenizer_config.json"
"""The file beside a tokenizer.json that names its end-of-document token, as eos_token."""


class Tokenizer(Protocol):
    """Texts to token ids from 0 to `vocab_size` - 1; `eod`, None if unknown, ends a document."""

    @property
    def eod(self) -> int | None: ...

    @property
    def vocab_size(self) -> int: ...

    def encode_documents(self, texts: Sequence[str], *, append_eod: bool) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """The token ids of `texts` end to end, (tokens,), and the number of tokens of each, (documents,)."""
        ...


def open_tokenizer(name: str, eod_token: str | None = None) -> Tokenizer:
    """The tokenizer called `name`: "bytes", or the path of a tokenizer.json or of the folder that holds one.

    `eod_token` is the text of the end-of-document token; None takes eos_token of the tokenizer_config.json beside it.
    Raises `UnreadableError` for a file that is no tokenizer, `UsageError` for an `eod_token` with the bytes tokenizer,
    and `UserError` for one that the vocabulary does not have, or when the tokenizers library is missing.
    """
    if name != BytesTokenizer.name:
        return HuggingFaceTokenizer(Path(name), eod_token)
    if eod_token is not None:
        raise UsageError(
            f"--eod-token {eod_token} does not go with the bytes tokenizer, whose end is {BytesTokenizer.eod}."
        )
    return BytesTokenizer()


class HuggingFaceTokenizer:
    """The tokenizer of a tokenizer.json; `vocab_size` counts added tokens too, as Megatron does.

    Texts get no special tokens but end-of-document (`add_special_tokens` is off); one that a text spells out is read.
    """

    def __init__(self, path: Path, eod_token: str | None) -> None:
        file = path / FILE if path.is_dir() else path
        self._tokenizer, self._name = _loaded(file), shown_path(str(file))
        self.vocab_size = int(self._tokenizer.get_vocab_size(with_added_tokens=True))
        token = eod_token if eod_token is not None else _eos_token(file.with_name(SETTINGS))
        self.eod = None if token is None else self._id(token)

    def encode_documents(
        self, texts: Sequence[str], *, append_eod: bool
    ) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """The token ids of `texts` end to end, (tokens,), and the number of tokens of each, (documents,).

        Raises `UserError` when `append_eod` is asked for and the end-of-document token is not known.
        """
        end = [self._known_eod()] if append_eod else []
        pieces = [[*found.ids, *end] for found in self._tokenizer.encode_batch(list(texts), add_special_tokens=False)]
        lengths = np.fromiter(map(len, pieces), np.int64, len(pieces))
        return np.fromiter(chain.from_iterable(pieces), np.int32, int(lengths.sum())), lengths

    def _known_eod(self) -> int:
        if self.eod is None:
            special = [token.content for token in self._tokenizer.get_added_tokens_decoder().values() if token.special]
            raise UserError(
                f"--append-eod: {self._name} does not say which token ends a document, and there is no {SETTINGS} with "
                f"an eos_token beside it. Name it with --eod-token; its special tokens are {special[:20]}."
            )
        return self.eod

    def _id(self, token: str) -> int:
        found = self._tokenizer.token_to_id(token)
        if found is None:
            raise UserError(f"{self._name} has no token {token!r} among its {self.vocab_size}; see --eod-token.")
        return int(found)


def _loaded(file: Path) -> Any:  # the library has no type information
    # Each worker of make-data is one thread: their number decides how many cores are used.
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    text = _text_of(file)
    try:
        from tokenizers import Tokenizer as Library
    except ImportError as error:
        raise UserError(
            f"--tokenizer {shown_path(str(file))} needs the tokenizers library: pip install 'msmigrate[tokenizer]'"
        ) from error
    try:
        return Library.from_str(text)
    except Exception as error:  # the library raises Exception itself
        raise UnreadableError(f"{shown_path(str(file))} is not a {FILE}: {error}.") from error


def _text_of(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except OSError as error:
        raise UnreadableError(
            f"The tokenizer {shown_path(str(file))} cannot be read: {error.strerror}. It is bytes, or the path of a "
            f"{FILE} or of its folder."
        ) from error
    except UnicodeDecodeError as error:
        raise UnreadableError(f"{shown_path(str(file))} is not a {FILE}: {error}.") from error


def _eos_token(settings: Path) -> str | None:
    if not settings.exists():
        return None
    token = read_json_object(settings, "an object of settings").get("eos_token")
    if isinstance(token, dict):  # an AddedToken written out
        token = token.get("content")
    return token if isinstance(token, str) else None
