"""Text files turned into a corpus that training reads."""

import logging
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from msmigrate.problems import UnreadableError, UsageError
from msmigrate.yaml.source import shown_path
from msrt.data.encoded import Encoded, encoder
from msrt.data.indexed import IndexedWriter, corpus_files, token_dtype
from msrt.data.text_blocks import Block, blocks_of
from msrt.data.text_files import TextFile, text_files
from msrt.data.tokenizers import open_tokenizer
from msrt.data.workers import WorkerProcesses, in_order

BLOCKS_AHEAD = 2
"""Blocks each worker process has before it, so that none waits for the writer."""

Report = Callable[[int, int | None], None]
"""Takes the bytes read so far, and how many there are; None when a pipe is among the inputs."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Made:
    """A corpus just written: its `documents` and `tokens` (end-of-document included), element type and two files.

    `eod` is the end-of-document id, for train_dataset.dataloader.config.eod; None when documents end without one.
    """

    documents: int
    tokens: int
    dtype: str
    files: tuple[Path, Path]
    eod: int | None = None


def make_data(
    inputs: Sequence[Path | str],
    prefix: Path | str,
    *,
    tokenizer: str = "bytes",
    append_eod: bool,
    eod_token: str | None = None,
    json_key: str = "text",
    workers: int = 1,
    force: bool = False,
    report: Report | None = None,
) -> Made:
    """The corpus `<prefix>.bin` + `<prefix>.idx` made of text files and folders, in the order given.

    A .txt file, a pipe and standard input ("-") are one document; each line of a .jsonl file, {`json_key`: "…"}, is
    one; both may be gzipped. `append_eod` ends every document with the tokenizer's end-of-document id, which for a
    tokenizer.json is that of `eod_token`. Empty texts, and empty files of a folder, are left out and counted in a log
    line. With more than one of `workers`, that many processes make the tokens; the files are the same. `report` is told
    how far reading came. Raises `UsageError` for a prefix that names no file, `UnreadableError` for an input that is
    missing, a device, empty, not UTF-8 or has a bad line (named as file:line), and for a corpus that exists unless
    `force`, and `UserError` for a tokenizer that cannot be used. After an error no file of that name is new.
    """
    sources = text_files([os.fspath(path) for path in inputs])
    files = _outputs(os.fspath(prefix), force)
    sizes = [source.size for source in sources if source.size is not None]
    total = sum(sizes) if len(sizes) == len(sources) else None
    opened = open_tokenizer(tokenizer, eod_token)
    dtype = token_dtype(opened.vocab_size)
    opened.encode_documents([], append_eod=append_eod)  # says now that there is no end-of-document, not after an hour
    _make_folder(files[0].parent)
    documents = tokens = 0
    make = partial(encoder, tokenizer, eod_token, json_key, append_eod)
    with IndexedWriter(prefix, dtype) as writer, _encoding(make, _blocks(sources), workers) as results:
        for encoded in _not_empty(results):
            writer.add_documents(encoded.ids, encoded.lengths)
            documents += len(encoded.lengths)
            tokens += len(encoded.ids)
            if report is not None:
                report(encoded.read, total)
        if not documents:
            raise UnreadableError("The inputs hold no text: there would be no token in the corpus.")
    return Made(documents, tokens, dtype.name, files, opened.eod if append_eod else None)


def _outputs(prefix: str, force: bool) -> tuple[Path, Path]:
    if not prefix:
        raise UsageError("The prefix of the corpus is empty: name it, such as data/corpus.")
    if prefix.endswith(os.sep) or os.path.isdir(prefix):
        inside = shown_path(os.path.join(prefix, "corpus"))
        raise UsageError(f"{shown_path(prefix)} is a folder: name the corpus in it, such as {inside}.")
    files = corpus_files(prefix)
    for path in files:
        if os.path.isdir(path):
            raise UnreadableError(f"{shown_path(str(path))} cannot be written: it is a folder.")
    existing = [shown_path(str(path)) for path in files if os.path.lexists(path)]
    if existing and not force:
        have = "exists" if len(existing) == 1 else "exist"
        raise UnreadableError(
            f"{' and '.join(existing)} {have} already: choose another prefix, or write over them with --force."
        )
    return files


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UnreadableError(
            f"The folder {shown_path(str(folder))} cannot be made: {error.strerror or error}."
        ) from error


def _blocks(sources: Sequence[TextFile]) -> Iterator[Block]:
    read = 0
    for source in sources:
        for block in blocks_of(source, read):
            yield block
            read_now = block.read
        read = read_now


@contextmanager
def _encoding(
    make: Callable[[], Callable[[Block], Encoded]], blocks: Iterable[Block], workers: int
) -> Iterator[Iterator[Encoded]]:
    if workers == 1:
        yield map(make(), blocks)
        return
    with WorkerProcesses(make, workers, "Worker") as pool:
        yield in_order(pool.submit, blocks, BLOCKS_AHEAD * workers)


def _not_empty(results: Iterable[Encoded]) -> Iterator[Encoded]:
    """The results as they are; says after each input what was left out, and stops at one that holds nothing."""
    current: TextFile | None = None
    found = empty = skipped = 0
    for encoded in results:
        if current is not None and encoded.file != current:
            skipped += _told(current, found, empty)
            found = empty = 0
        current = encoded.file
        found += len(encoded.lengths)
        empty += encoded.empty
        yield encoded
    if current is not None:
        skipped += _told(current, found, empty)
    if skipped:
        log.warning("%s in the given folders left out.", "1 empty file" if skipped == 1 else f"{skipped} empty files")


def _told(file: TextFile, found: int, empty: int) -> bool:
    """True when nothing in `file` is text, which is an error if somebody named the file."""
    if not found:
        if file.from_folder:
            return True
        raise UnreadableError(f"{file.name} holds no text: it would add no token to the corpus. Leave it out.")
    if empty:
        left_out = "1 line with an empty text; it is" if empty == 1 else f"{empty} lines with an empty text; they are"
        log.warning("%s has %s left out.", file.name, left_out)
    return False
