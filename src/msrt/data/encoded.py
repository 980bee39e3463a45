"""Blocks of text turned into tokens."""

import codecs
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from msmigrate.json_text import parse_json
from msmigrate.problems import UnreadableError
from msrt.data.text_blocks import Block
from msrt.data.text_files import TextFile
from msrt.data.tokenizers import Tokenizer, open_tokenizer


@dataclass(frozen=True, slots=True)
class Encoded:
    """The documents of a block: token ids end to end, (tokens,), and how many each has, (documents,).

    `empty` counts the texts left out; `file` and `read` are the block's.
    """

    file: TextFile
    read: int
    ids: NDArray[Any]
    lengths: NDArray[np.int64]
    empty: int


def encoder(tokenizer: str, eod_token: str | None, json_key: str, append_eod: bool) -> Callable[[Block], Encoded]:
    """What turns blocks into tokens; the arguments are those of `make_data`, so that any process can make one."""
    opened = open_tokenizer(tokenizer, eod_token)
    return lambda block: encode_block(block, opened, json_key, append_eod)


def encode_block(block: Block, tokenizer: Tokenizer, json_key: str, append_eod: bool) -> Encoded:
    """The tokens of a block. Raises `UnreadableError`, with file and line, for what is not UTF-8 or not JSON."""
    texts = [*_json_texts(block, json_key)] if block.file.json_lines else [_whole(block)]
    full = [text for text in texts if text]
    ids, lengths = tokenizer.encode_documents(full, append_eod=append_eod)
    return Encoded(block.file, block.read, ids, lengths, len(texts) - len(full))


def _whole(block: Block) -> str:
    raw = block.raw.removeprefix(codecs.BOM_UTF8)
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        at = error.start + len(block.raw) - len(raw)
        line = block.raw.count(b"\n", 0, at) + 1
        raise UnreadableError(
            f"{block.file.name}:{line}: not UTF-8: byte {at} is 0x{block.raw[at]:02x}. Save it as UTF-8."
        ) from error


def _json_texts(block: Block, key: str) -> Iterator[str]:
    # A newline inside a JSON string is written \n, so bytes can be cut at newlines before they are decoded.
    for number, line in enumerate(block.raw.split(b"\n"), block.first_line):
        text = line.removeprefix(codecs.BOM_UTF8) if number == 1 else line
        if text.strip():
            yield _json_text(text, key, f"{block.file.name}:{number}")


def _json_text(line: bytes, key: str, place: str) -> str:
    form = f'{{"{key}": "…"}}'
    try:
        value = parse_json(line, place)
    except UnreadableError as error:
        problem = error.problem.removesuffix(".")
        raise UnreadableError(f"{place}: not a JSON object in UTF-8 ({problem}); expected {form}.") from error
    if not isinstance(value, dict) or not isinstance(value.get(key), str):
        raise UnreadableError(f"{place}: {_shape(value, key)}; expected {form}.")
    text: str = value[key]
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise UnreadableError(f"{place}: half a surrogate pair at character {error.start} of the text.") from error
    return text


def _shape(value: object, key: str) -> str:
    if not isinstance(value, dict):
        return f"{_JSON_NAMES[type(value)]}, not an object"
    if key not in value:
        return f"an object with the keys {sorted(value)}, without {key}"
    return f"{key} is {_JSON_NAMES[type(value[key])]}, not a string"


_JSON_NAMES = {
    int: "a number",
    float: "a number",
    str: "a string",
    bool: "a boolean",
    type(None): "null",
    list: "a list",
    dict: "an object",
}
