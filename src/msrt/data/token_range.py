"""The token ids a corpus holds, against the vocabulary of the model that shall read them."""

import hashlib
import json
import logging
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from msmigrate.problems import UserError
from msmigrate.yaml.source import shown_path
from msrt.data.indexed import IndexedDataset
from msrt.data.kept_file import keep, read_kept

CHUNK = 2**24
"""Tokens looked at in one go."""

LONG = 8 * 2**30
"""A token file of more bytes takes many seconds to read from a disk."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class TokenRange:
    """The smallest and the largest token id of a corpus, and the first position of each, in tokens from 0."""

    low: int
    low_at: int
    high: int
    high_at: int


def check_tokens(prefixes: Sequence[str], vocab_size: int, cache_dir: Path | None) -> None:
    """Returns if every token of the corpora is from 0 to `vocab_size` - 1, and raises `UserError` otherwise.

    The error names, for each corpus, the largest and the negative token, where it is, and the vocab_size that takes it.
    """
    faults = [fault for prefix in prefixes for fault in _faults(IndexedDataset(prefix), vocab_size, cache_dir)]
    if faults:
        raise UserError("\n".join(faults))


def token_range(corpus: IndexedDataset, cache_dir: Path | None = None) -> TokenRange | None:
    """The range of all tokens of `corpus`; None if it has none, or holds floats.

    With `cache_dir` the answer is kept there, and the file is read again only when its size or its time changes.
    """
    if not len(corpus.tokens) or corpus.dtype.kind == "f":
        return None
    if cache_dir is None:
        return _scan(corpus)
    path = cache_dir / f"token-range-{_key(corpus)}.json"
    stored = _load(path)
    if stored is None:
        stored = _scan(corpus)
        keep(path, json.dumps(asdict(stored)).encode())
    return stored


def _faults(corpus: IndexedDataset, vocab_size: int, cache_dir: Path | None) -> Iterator[str]:
    found = token_range(corpus, cache_dir)
    name = shown_path(str(corpus.bin_path))
    if found is not None and found.high >= vocab_size:
        yield (
            f"{name} holds the token {found.high} (position {found.high_at}, counted in tokens from 0), but "
            f"model.vocab_size {vocab_size} has the tokens 0 to {vocab_size - 1}. Make the corpus with the model's "
            f"tokenizer, or set model.vocab_size to {found.high + 1} or more."
        )
    if found is not None and found.low < 0:
        yield (
            f"{name} holds the token {found.low} (position {found.low_at}, counted in tokens from 0): token ids start "
            "at 0, and no model.vocab_size takes a negative one. Make the corpus again."
        )


def _scan(corpus: IndexedDataset) -> TokenRange:
    tokens = corpus.tokens
    if tokens.nbytes > LONG:
        size = tokens.nbytes / 2**30
        log.warning("The %.1f GiB of %s are read once to check their tokens.", size, shown_path(str(corpus.bin_path)))
    low_at = high_at = 0
    for start in range(0, len(tokens), CHUNK):
        chunk = tokens[start : start + CHUNK]
        if chunk.min() < tokens[low_at]:
            low_at = start + int(chunk.argmin())
        if chunk.max() > tokens[high_at]:
            high_at = start + int(chunk.argmax())
    return TokenRange(int(tokens[low_at]), low_at, int(tokens[high_at]), high_at)


def _key(corpus: IndexedDataset) -> str:
    status = corpus.bin_path.stat()
    identity = (
        str(corpus.bin_path.resolve()),
        status.st_size,
        status.st_mtime_ns,
        corpus.dtype.str,
        len(corpus.tokens),
    )
    return hashlib.sha256(ascii(identity).encode()).hexdigest()[:32]


def _load(path: Path) -> TokenRange | None:
    data = read_kept(path)
    if data is None:
        return None
    try:
        return TokenRange(**{name: int(value) for name, value in json.loads(data).items()})
    except (ValueError, TypeError, AttributeError, RecursionError):
        log.warning("%s is damaged; the tokens are read again.", shown_path(str(path)))
        return None
