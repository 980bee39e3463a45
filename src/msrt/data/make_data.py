"""Text files turned into a corpus that training reads."""

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from msmigrate.problems import UnreadableError, UsageError, UserError
from msmigrate.yaml.source import shown_path
from msrt.data.bytes_tokenizer import BytesTokenizer
from msrt.data.indexed import IndexedWriter, corpus_files, token_dtype
from msrt.data.read_progress import Report
from msrt.data.text_files import STDIN, ReadCount, text_file, texts_of

BATCH = 2**20
"""Characters encoded and written in one go; a longer text is one batch."""


@dataclass(frozen=True, slots=True)
class Made:
    """A corpus just written: its `documents` and `tokens` (end-of-document included), element type and two files."""

    documents: int
    tokens: int
    dtype: str
    files: tuple[Path, Path]


def make_data(
    inputs: Sequence[Path | str],
    prefix: Path | str,
    *,
    tokenizer: str = "bytes",
    append_eod: bool,
    report: Report | None = None,
) -> Made:
    """The corpus `<prefix>.bin` + `<prefix>.idx` made of text files, in the order given.

    A .txt file, a pipe and standard input ("-") are one document; each line of a .jsonl file, {"text": …}, is one.
    `append_eod` ends every document with the tokenizer's end-of-document id. Lines with an empty text are left out and
    counted in a log line. `report` is told how far reading came. Raises `UsageError` for a prefix that names no file,
    `UnreadableError` for an input that is missing, a folder, a device, empty, not UTF-8 or has a bad line (named as
    file:line), and `UserError` for a tokenizer other than "bytes". After an error no file of that name is new.
    """
    if not inputs:
        raise UsageError("No input file is given: name at least one .txt or .jsonl file.")
    if [os.fspath(path) for path in inputs].count(STDIN) > 1:
        raise UsageError("- is given more than once, but standard input can be read only once.")
    if tokenizer != BytesTokenizer.name:
        raise UserError(f'The tokenizer {tokenizer!r} is not available yet; use "{BytesTokenizer.name}" for now.')
    files = _outputs(os.fspath(prefix))
    sources = [text_file(os.fspath(path)) for path in inputs]
    sizes = [source.size for source in sources if source.size is not None]
    total = sum(sizes) if len(sizes) == len(sources) else None
    encoder, count = BytesTokenizer(), ReadCount()
    dtype = token_dtype(encoder.vocab_size)
    _make_folder(files[0].parent)
    documents = tokens = 0
    with IndexedWriter(prefix, dtype) as writer:
        for batch in _batches(text for source in sources for text in texts_of(source, count)):
            ids, lengths = encoder.encode_documents(batch, append_eod=append_eod)
            writer.add_documents(ids, lengths)
            documents += len(lengths)
            tokens += len(ids)
            if report is not None:
                report(count.done, total)
    return Made(documents, tokens, dtype.name, files)


def _outputs(prefix: str) -> tuple[Path, Path]:
    if not prefix:
        raise UsageError("The prefix of the corpus is empty: name it, such as data/corpus.")
    if prefix.endswith(os.sep) or os.path.isdir(prefix):
        inside = shown_path(os.path.join(prefix, "corpus"))
        raise UsageError(f"{shown_path(prefix)} is a folder: name the corpus in it, such as {inside}.")
    files = corpus_files(prefix)
    for path in files:
        if os.path.isdir(path):
            raise UnreadableError(f"{shown_path(str(path))} cannot be written: it is a folder.")
    return files


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UnreadableError(
            f"The folder {shown_path(str(folder))} cannot be made: {error.strerror or error}."
        ) from error


def _batches(texts: Iterable[str]) -> Iterator[list[str]]:
    batch: list[str] = []
    characters = 0
    for text in texts:
        batch.append(text)
        characters += len(text)
        if characters >= BATCH:
            yield batch
            batch, characters = [], 0
    if batch:
        yield batch
