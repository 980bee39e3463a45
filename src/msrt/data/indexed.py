"""Megatron's token corpus on disk: `<prefix>.bin` holds token ids, `<prefix>.idx` says where each sequence starts.

Layout of the `.idx` file, little-endian:

    9 bytes   b"MMIDIDX\\0\\0"
    uint64    version, 1
    uint8     dtype code (`DTYPE_CODES`)
    uint64    number of sequences S
    uint64    number of document boundaries D (documents + 1)
    int32[S]  sequence lengths, in tokens
    int64[S]  sequence pointers, in bytes into the `.bin` file
    int64[D]  document boundaries: document d is made of the sequences [boundary[d], boundary[d+1])
"""

import fcntl
import logging
import mmap
import os
import struct
from array import array
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, Self

import numpy as np
from numpy.typing import NDArray

from msmigrate.problems import Exit, UnreadableError, UserError
from msmigrate.yaml.source import shown_path
from msrt.data.kept_file import NO_LOCKS

log = logging.getLogger(__name__)

MAGIC = b"MMIDIDX\x00\x00"
VERSION = 1
HEADER = struct.Struct("<9sQBQQ")

DTYPE_CODES: dict[int, np.dtype[np.generic]] = {
    1: np.dtype(np.uint8),
    2: np.dtype(np.int8),
    3: np.dtype("<i2"),
    4: np.dtype("<i4"),
    5: np.dtype("<i8"),
    6: np.dtype("<f8"),
    7: np.dtype("<f4"),
    8: np.dtype("<u2"),
}
"""Megatron's numbers for element types; 6 and 7 are floats: they can be read, but hold no token ids."""

UINT16_VOCABULARY_LIMIT = 65500
"""Vocabularies below this size are stored as uint16 (megatron-core, DType.optimal_dtype)."""

MAX_SEQUENCE_LENGTH = 2**31 - 1
"""The index stores lengths as int32."""


def token_dtype(vocab_size: int) -> np.dtype[np.generic]:
    """The element type Megatron stores a vocabulary of `vocab_size` ids in: uint16 below 65500 ids, else int32."""
    return DTYPE_CODES[8] if vocab_size < UINT16_VOCABULARY_LIMIT else DTYPE_CODES[4]


def corpus_files(prefix: Path | str) -> tuple[Path, Path]:
    """The `.bin` and `.idx` paths of a corpus prefix.

    Raises `UserError` (status 2) when `prefix` itself ends in `.bin` or `.idx`.
    """
    text = os.fspath(prefix)
    if text.endswith((".bin", ".idx")):
        raise UserError(
            f"{shown_path(text)} is a file name, but a corpus is named by its prefix: write {shown_path(text[:-4])} "
            f"(drop {text[-4:]}).",
            status=Exit.USAGE,
        )
    return Path(text + ".bin"), Path(text + ".idx")


@dataclass(frozen=True)
class _Index:
    dtype: np.dtype[np.generic]
    lengths: NDArray[np.int32]
    pointers: NDArray[np.int64]
    documents: NDArray[np.int64]


class IndexedDataset:
    """Memory-mapped read access to the corpus `<prefix>.bin` + `<prefix>.idx`.

    Attributes: `sequence_lengths` (S,) int32, tokens per sequence; `document_indices` (documents + 1,) int64,
    sequence numbers at which documents start, the last entry being S; `dtype`, the stored element type; `bin_path`, the
    token file.
    Raises `UnreadableError` for missing, foreign or truncated files and `UserError` if `prefix` is a file name.
    """

    def __init__(self, prefix: Path | str) -> None:
        bin_path, idx_path = corpus_files(prefix)
        _require_both(prefix, bin_path, idx_path)
        index = _parse_index(idx_path, _map(idx_path))
        self.prefix = os.fspath(prefix)
        self.dtype = index.dtype
        self.sequence_lengths = index.lengths
        self.document_indices = index.documents
        self.bin_path = bin_path
        self._pointers = index.pointers
        self._tokens = _map(bin_path)
        self._check_bin(bin_path)

    def __len__(self) -> int:
        return len(self.sequence_lengths)

    def __reduce__(self) -> tuple[object, ...]:
        # A process that gets a copy maps the same files instead of receiving their bytes.
        return IndexedDataset, (self.prefix,)

    def get(self, index: int, offset: int = 0, length: int | None = None) -> NDArray[np.generic]:
        """`length` tokens of sequence `index` from token `offset` on, as a read-only (length,) view of type `dtype`.

        `length` None reads to the end of the sequence. Raises `IndexError` when the range leaves the sequence.
        """
        available = int(self.sequence_lengths[index])
        count = available - offset if length is None else length
        if offset < 0 or count < 0 or offset + count > available:
            raise IndexError(
                f"tokens [{offset}, {offset + count}) of sequence {index} in {self.prefix}: it has only {available}."
            )
        start = int(self._pointers[index]) + offset * self.dtype.itemsize
        return np.frombuffer(self._tokens, self.dtype, count, start) if count else np.empty(0, self.dtype)

    @property
    def tokens(self) -> NDArray[np.generic]:
        """All tokens of the `.bin` file as far as the index points, in file order: a read-only (tokens,) view."""
        count = self._end() // self.dtype.itemsize
        return np.frombuffer(self._tokens, self.dtype, count) if count else np.empty(0, self.dtype)

    def _end(self) -> int:
        """The byte behind the last token."""
        ends = self._pointers + self.sequence_lengths.astype(np.int64) * self.dtype.itemsize
        # A damaged pointer can be so large that its end wraps around; then the pointer itself is the larger one.
        return max(int(ends.max(initial=0)), int(self._pointers.max(initial=0)))

    def _check_bin(self, bin_path: Path) -> None:
        if not len(self):
            return
        needed, found = self._end(), len(self._tokens)
        if found < needed or int(self._pointers.min()) < 0:
            raise UnreadableError(
                f"{bin_path} has {found} bytes, but its .idx points as far as byte {needed}: the file is truncated or "
                "the two files do not belong together. Copy or build both again."
            )
        if found > needed:
            log.warning(
                "%s has %d bytes, but its .idx describes only %d: the other %d are never read. Do the two belong "
                "together?",
                shown_path(str(bin_path)),
                found,
                needed,
                found - needed,
            )


def _require_both(prefix: Path | str, bin_path: Path, idx_path: Path) -> None:
    missing = [path for path in (bin_path, idx_path) if not path.is_file()]
    if missing:
        names = " and ".join(str(path) for path in missing)
        raise UnreadableError(
            f"There is no corpus at {os.fspath(prefix)}: {names} cannot be found. "
            f"A corpus is the two files {bin_path.name} and {idx_path.name}; the path in the config is the part "
            f"before .bin. Make one from texts: msrt make-data TEXT… -o {os.fspath(prefix)} --append-eod."
        )


def _map(path: Path) -> mmap.mmap | bytes:
    try:
        with path.open("rb") as file:
            if os.fstat(file.fileno()).st_size == 0:
                return b""  # an empty file cannot be mapped
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except OSError as error:
        raise UnreadableError(f"{path} cannot be read: {error.strerror or error}.") from error


def _parse_index(path: Path, raw: mmap.mmap | bytes) -> _Index:
    if not MAGIC.startswith(bytes(raw[: len(MAGIC)])):
        raise UnreadableError(
            f"{path} is not a Megatron index: it starts with {bytes(raw[: len(MAGIC)])!r}, expected {MAGIC!r}."
        )
    if len(raw) < HEADER.size:
        raise UnreadableError(f"{path} is truncated: {len(raw)} bytes, but the header alone has {HEADER.size}.")
    _, version, code, sequences, boundaries = HEADER.unpack_from(raw)
    if version != VERSION:
        raise UnreadableError(f"{path} has index version {version}; only version {VERSION} can be read.")
    dtype = _token_type(path, code)
    needed = HEADER.size + sequences * 12 + boundaries * 8
    if len(raw) < needed:
        raise UnreadableError(
            f"{path} is truncated: {len(raw)} bytes, but {sequences} sequences and {boundaries} document boundaries "
            f"need {needed}."
        )
    # A multimodal index has one more byte for each sequence, its mode, which training on text has no use for.
    if len(raw) not in (needed, needed + sequences):
        raise UnreadableError(
            f"{path} is damaged: {len(raw)} bytes, but {sequences} sequences and {boundaries} document boundaries take "
            f"{needed}."
        )
    pointers_at = HEADER.size + 4 * sequences
    lengths = np.frombuffer(raw, "<i4", sequences, HEADER.size)
    pointers = np.frombuffer(raw, "<i8", sequences, pointers_at)
    documents = np.frombuffer(raw, "<i8", boundaries, pointers_at + 8 * sequences)
    _check_index(path, lengths, documents)
    return _Index(dtype, lengths, pointers, documents)


def _token_type(path: Path, code: int) -> np.dtype[np.generic]:
    dtype = DTYPE_CODES.get(code)
    if dtype is None:
        raise UnreadableError(f"{path} has element type code {code}; Megatron's codes are 1 to {max(DTYPE_CODES)}.")
    return dtype


def _check_index(path: Path, lengths: NDArray[np.int32], documents: NDArray[np.int64]) -> None:
    if len(lengths) and int(lengths.min()) < 0:
        at = int(lengths.argmin())
        raise UnreadableError(f"{path} is damaged: sequence {at} has length {int(lengths[at])}.")
    last = int(documents[-1]) if len(documents) else 0
    if last != len(lengths):
        raise UnreadableError(
            f"{path} is damaged: its documents end at sequence {last}, but it lists {len(lengths)} sequences."
        )
    if len(documents) and (int(documents[0]) != 0 or bool(np.any(documents[1:] < documents[:-1]))):
        at = int(np.argmax(documents[1:] < documents[:-1])) + 1 if int(documents[0]) == 0 else 0
        raise UnreadableError(
            f"{path} is damaged: document boundary {at} is sequence {int(documents[at])}; boundaries start at 0 and "
            "never go back."
        )


class IndexedWriter:
    """Writes a corpus `<prefix>.bin` + `<prefix>.idx`; both appear under their names only when `close` succeeds.

    Until then they are `<prefix>.bin.part` and `<prefix>.idx.part`; the next writer takes over those of a killed one.
    Used as a context manager, an exception inside the block removes what was written so far and leaves an older corpus
    of that name as it was. Raises `UnreadableError` (status 3) when the files cannot be written, and `UserError` while
    another process writes the same corpus.
    """

    def __init__(self, prefix: Path | str, dtype: np.dtype[np.generic]) -> None:
        codes = {known: code for code, known in DTYPE_CODES.items()}
        if dtype.kind == "f" or dtype not in codes:
            raise UserError(f"A corpus cannot be stored as {dtype}: Megatron has no code for token ids of that type.")
        self._bin_path, self._idx_path = corpus_files(prefix)
        self._code, self._dtype = codes[dtype], dtype
        self._lengths = array("i")
        self._documents = array("q", [0])
        self._bin_temp = self._bin_path.with_name(f"{self._bin_path.name}.part")
        self._idx_temp = self._idx_path.with_name(f"{self._idx_path.name}.part")
        with _writing(self._bin_path):
            self._file: IO[bytes] = _own(self._bin_temp)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if kind is None:
            self.close()
        else:
            self.abort()

    def add_document(self, tokens: NDArray[np.generic] | Sequence[int], lengths: Sequence[int] | None = None) -> None:
        """Appends one document; `lengths` cuts it into several sequences (their sum must be `len(tokens)`).

        Raises `UserError` for a token id that the element type cannot hold and for a sequence of 2**31 tokens or more;
        `ValueError` for tokens that are not integers and for lengths that do not add up.
        """
        values = np.asarray(tokens)
        parts = np.asarray([len(values)] if lengths is None else lengths, np.int64)
        self._append(values, parts)
        self._documents.append(len(self._lengths))

    def add_documents(self, tokens: NDArray[np.generic], lengths: NDArray[np.int64]) -> None:
        """Appends `len(lengths)` documents of one sequence each, whose tokens follow each other in `tokens`.

        Raises as `add_document` does.
        """
        first = len(self._lengths) + 1
        self._append(tokens, lengths)
        self._documents.extend(range(first, len(self._lengths) + 1))

    def _append(self, values: NDArray[np.generic], lengths: NDArray[np.int64]) -> None:
        if int(lengths.sum()) != len(values):
            raise ValueError(f"the sequence lengths add up to {lengths.sum()}, but there are {len(values)} tokens")
        self._check_values(values)
        self._check_lengths(lengths)
        with _writing(self._bin_path):
            self._file.write(values.astype(self._dtype, copy=False).tobytes())
        self._lengths.extend(lengths.tolist())

    def close(self) -> None:
        """Finishes both files and gives them their names."""
        try:
            with _writing(self._bin_path):
                self._file.flush()
                os.fsync(self._file.fileno())
            with _writing(self._idx_path):
                self._idx_temp.write_bytes(self._index_bytes())
                # Without this a stop between the two renames would leave new tokens under an old index.
                self._idx_path.unlink(missing_ok=True)
                self._bin_temp.replace(self._bin_path)
                self._idx_temp.replace(self._idx_path)
                self._file.close()  # last, since this gives up the lock
        except UnreadableError:
            self.abort()
            raise

    def abort(self) -> None:
        """Removes the temporary files; nothing appears under the corpus's name."""
        self._bin_temp.unlink(missing_ok=True)
        self._idx_temp.unlink(missing_ok=True)
        with suppress(OSError):  # the buffered rest is of no use, so a full disk does not matter here
            self._file.close()

    def _check_values(self, values: NDArray[np.generic]) -> None:
        if not len(values):
            return
        if values.dtype.kind not in "iu":
            raise ValueError(f"token ids must be integers, not {values.dtype}")
        limits = np.iinfo(str(self._dtype))
        low, high = int(values.min()), int(values.max())
        if low < limits.min or high > limits.max:
            raise UserError(
                f"From document {len(self._documents) - 1} on there are token ids from {low} to {high}; "
                f"{self._dtype.name} holds {limits.min} to {limits.max}. Choose the element type by the vocabulary's "
                "size."
            )

    def _check_lengths(self, lengths: NDArray[np.int64]) -> None:
        longest = int(lengths.max(initial=0))
        if int(lengths.min(initial=0)) < 0 or longest > MAX_SEQUENCE_LENGTH:
            raise UserError(
                f"From document {len(self._documents) - 1} on there is a sequence of {longest} tokens; an index holds "
                f"lengths from 0 to {MAX_SEQUENCE_LENGTH}. Cut the document into several."
            )

    def _index_bytes(self) -> bytes:
        lengths = np.asarray(self._lengths, "<i4")
        ends = np.cumsum(lengths, dtype="<i8") * self._dtype.itemsize
        pointers = (ends - lengths.astype("<i8") * self._dtype.itemsize).astype("<i8")
        header = HEADER.pack(MAGIC, VERSION, self._code, len(lengths), len(self._documents))
        return header + lengths.tobytes() + pointers.tobytes() + np.asarray(self._documents, "<i8").tobytes()


def _own(path: Path) -> IO[bytes]:
    """`path` opened for writing, empty, and locked against other processes until it is closed."""
    while True:
        file = path.open("ab")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            file.close()
            raise UserError(
                f"{shown_path(str(path))} is being written by another process: wait for it, or choose another prefix."
            ) from error
        except OSError as error:
            if error.errno not in NO_LOCKS:
                file.close()
                raise
        if path.exists() and os.path.samestat(os.fstat(file.fileno()), path.stat()):
            file.truncate(0)
            return file
        # The other process finished, and renamed the file, between our opening and locking it.
        file.close()


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise UnreadableError(f"{shown_path(str(path))} cannot be written: {error.strerror or error}.") from error
