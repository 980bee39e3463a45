"""Text files turned into a corpus that training reads."""

import codecs
import json
import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from msmigrate.problems import UnreadableError, UsageError, UserError
from msrt.data.bytes_tokenizer import BytesTokenizer
from msrt.data.indexed import IndexedWriter, corpus_files, token_dtype

SUFFIXES = (".txt", ".jsonl")

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Made:
    """A corpus just written: its `documents` and `tokens` (end-of-document included), element type and two files."""

    documents: int
    tokens: int
    dtype: str
    files: tuple[Path, Path]


def make_data(inputs: Sequence[Path], prefix: Path, *, tokenizer: str = "bytes", append_eod: bool) -> Made:
    """The corpus `<prefix>.bin` + `<prefix>.idx` made of text files, in the order given.

    A .txt file is one document; each line of a .jsonl file, {"text": …}, is one. `append_eod` ends every document with
    the tokenizer's end-of-document id. Lines with an empty text are left out and counted in a log line. Raises
    `UnreadableError` for a file that is missing, a folder, empty, not UTF-8 or has a bad line (named as file:line), and
    `UserError` for a tokenizer other than "bytes". After an error no file of that name is new.
    """
    if not inputs:
        raise UsageError("No input file is given: name at least one .txt or .jsonl file.")
    if tokenizer != BytesTokenizer.name:
        raise UserError(f'The tokenizer {tokenizer!r} is not available yet; use "{BytesTokenizer.name}" for now.')
    for path in inputs:
        _check_input(path)
    files = corpus_files(prefix)
    encoder = BytesTokenizer()
    dtype = token_dtype(encoder.vocab_size)
    ending = np.full(int(append_eod), encoder.eod, np.uint16)
    _make_folder(prefix.parent)
    documents = tokens = 0
    with IndexedWriter(prefix, dtype) as writer:
        for path in inputs:
            for text in _documents(path):
                ids = np.concatenate([encoder.encode(text), ending])
                writer.add_document(ids)
                documents += 1
                tokens += len(ids)
    return Made(documents, tokens, dtype.name, files)


def _check_input(path: Path) -> None:
    if path.is_dir():
        raise UnreadableError(f"{path} is a folder; name the .txt or .jsonl files in it.")
    if not path.is_file():
        raise UnreadableError(f"There is no file {path}.")
    if path.suffix.lower() not in SUFFIXES:
        raise UnreadableError(f'{path} ends in "{path.suffix}"; text is read from {" and ".join(SUFFIXES)} files only.')


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UnreadableError(f"The folder {folder} cannot be made: {error.strerror or error}.") from error


def _documents(path: Path) -> Iterator[str]:
    """The texts of one file; raises `UnreadableError` when there is none."""
    texts = _jsonl_texts(path) if path.suffix.lower() == ".jsonl" else _txt_texts(path)
    found = empty = 0
    try:
        for text in texts:
            if not text:
                empty += 1
                continue
            found += 1
            yield text
    except OSError as error:
        raise UnreadableError(f"{path} cannot be read: {error.strerror or error}.") from error
    if not found:
        raise UnreadableError(f"{path} holds no text: it would add no token to the corpus. Leave it out.")
    if empty:
        log.warning("%s has %d lines with an empty text; they are left out.", path, empty)


def _txt_texts(path: Path) -> Iterator[str]:
    raw = path.read_bytes()
    try:
        yield raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise UnreadableError(
            f"{path} is not UTF-8: byte {error.start} is 0x{raw[error.start]:02x}. Save it as UTF-8."
        ) from error


def _jsonl_texts(path: Path) -> Iterator[str]:
    with path.open("rb") as file:
        for number, raw in enumerate(file, 1):
            line = raw.removeprefix(codecs.BOM_UTF8) if number == 1 else raw
            if line.strip():
                yield _json_text(line, f"{path}:{number}")


def _json_text(line: bytes, where: str) -> str:
    """The text of a line; an unreadable one is named by `where`."""
    try:
        value = json.loads(line.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise UnreadableError(f'{where}: not a JSON object in UTF-8 ({error}); expected {{"text": "…"}}.') from error
    if not isinstance(value, dict) or not isinstance(value.get("text"), str):
        raise UnreadableError(f'{where}: {_shape(value)}; expected {{"text": "…"}}.')
    text: str = value["text"]
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise UnreadableError(f"{where}: half a surrogate pair at character {error.start} of the text.") from error
    return text


def _shape(value: object) -> str:
    if not isinstance(value, dict):
        return f"a JSON {type(value).__name__}, not an object"
    if "text" not in value:
        return f"an object with the keys {sorted(value)}, without text"
    return f"text is a {type(value['text']).__name__}, not a string"
