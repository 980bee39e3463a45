"""Text to tokens and back: bytes, or the tokenizer.json of a Hugging Face folder."""

import codecs
import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol

from msmigrate.json_text import read_json_object
from msmigrate.problems import UnreadableError, UserError
from msmigrate.yaml.source import shown_path
from msrt.data.bytes_tokenizer import BytesTokenizer
from msrt.data.tokenizers import FILE as TOKENIZER

BYTES = 256
"""Tokens that a model of bytes has at least."""


class Text(Protocol):
    """One way to read tokens."""

    size: int
    """Tokens that stand for text are 0 to `size` - 1."""
    ends: frozenset[int]
    """Tokens that end a text."""

    def encode(self, text: str) -> list[int]:
        """The tokens of a prompt."""
        ...

    def put(self, token: int) -> str:
        """The text that `token` adds to those before it; empty while a character is not complete."""
        ...

    def rest(self) -> str:
        """What is left of an incomplete character at the end."""
        ...


class ByteText:
    """Every UTF-8 byte is a token; 256, where the model has it, ends a document."""

    def __init__(self, vocab_size: int) -> None:
        self.size = min(vocab_size, BytesTokenizer.vocab_size)
        self.ends = frozenset({BytesTokenizer.eod})
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def encode(self, text: str) -> list[int]:
        """See `Text.encode`."""
        return list(text.encode())

    def put(self, token: int) -> str:
        """See `Text.put`; bytes that are not UTF-8 become U+FFFD."""
        return self._decoder.decode(bytes([token]))

    def rest(self) -> str:
        """See `Text.rest`."""
        return self._decoder.decode(b"", final=True)


class HubText:
    """The tokens of a tokenizer.json, read with the library `tokenizers`."""

    def __init__(self, tokenizer: Any, vocab_size: int, ends: frozenset[int]) -> None:
        self._tokenizer = tokenizer
        self.size, self.ends = min(vocab_size, tokenizer.get_vocab_size()), ends
        self._tokens: list[int] = []
        self._printed = ""

    def encode(self, text: str) -> list[int]:
        """See `Text.encode`; begins with the tokens that the tokenizer puts before every text."""
        ids: list[int] = self._tokenizer.encode(text).ids
        return ids

    def put(self, token: int) -> str:
        """See `Text.put`. The text of a token depends on those around it, so all are decoded together."""
        self._tokens.append(token)
        text: str = self._tokenizer.decode(self._tokens)
        return "" if text.endswith("\ufffd") else self._new(text)

    def rest(self) -> str:
        """See `Text.rest`."""
        return self._new(self._tokenizer.decode(self._tokens))

    def _new(self, text: str) -> str:
        added = text[len(self._printed) :]
        self._printed = text
        return added


def text_of(folder: Path, vocab_size: int, where: Path) -> Text:
    """The way in which a model of `vocab_size` tokens reads text: `folder`'s tokenizer.json, else bytes.

    `where` is the model's path, for messages. Raises UserError when there is no tokenizer.json and there are fewer
    tokens than bytes, or when the library is missing, and UnreadableError for a file that cannot be read.
    """
    path = folder / TOKENIZER
    if path.is_file():
        return _hub_text(path, vocab_size, _ends(folder))
    if vocab_size < BYTES:
        raise UserError(
            f"The model in {shown_path(str(where))} has {vocab_size} tokens and no {TOKENIZER}; without one, text is "
            f"read as bytes, and that takes at least {BYTES} tokens."
        )
    return ByteText(vocab_size)


def _hub_text(path: Path, vocab_size: int, ends: frozenset[int]) -> HubText:
    if find_spec("tokenizers") is None:
        raise UserError(f"{shown_path(str(path))} needs the extra: pip install 'msmigrate[tokenizer]'.")
    from tokenizers import Tokenizer

    try:
        return HubText(Tokenizer.from_file(str(path)), vocab_size, ends)
    except Exception as error:  # the library raises nothing more exact
        raise UnreadableError(f"{shown_path(str(path))} is no tokenizer: {error}.") from error


def _ends(folder: Path) -> frozenset[int]:
    """The tokens that generation_config.json, or else config.json, says end a text."""
    for name in ("generation_config.json", "config.json"):
        if not (folder / name).exists():
            continue
        given = read_json_object(folder / name, "an object of settings").get("eos_token_id")
        if given is not None:
            return _tokens(given, folder / name)
    return frozenset()


def _tokens(given: object, path: Path) -> frozenset[int]:
    tokens = given if isinstance(given, list) else [given]
    if not all(type(token) is int for token in tokens):
        raise UnreadableError(
            f"{shown_path(str(path))} has eos_token_id {json.dumps(given)}; expected a token or a list of tokens."
        )
    return frozenset(tokens)
