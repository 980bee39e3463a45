"""Arrays kept on disk between runs and read through memory maps, so that a large corpus is not indexed at each start.

A file is named by a digest of everything that decides its arrays, and holds, little-endian:

    8 bytes   b"msrtidx2"
    uint64    length of the table
    table     JSON: name, element type and shape of each array; CRC-32 of all that follows
    arrays    end to end, each at a multiple of 64 bytes
"""

import hashlib
import json
import logging
import mmap
import shutil
import struct
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from msmigrate.yaml.source import shown_path
from msrt.data.kept_file import keep, one_at_a_time

MAGIC = b"msrtidx2"
"""The digit counts up when arrays made from the same settings change."""

HEAD = struct.Struct("<8sQ")
ALIGNMENT = 64

MAX_BYTES = 4 * 2**30
"""Larger arrays are made at each start: they would fill the disk of somebody who only mistyped a number."""

CHUNK = 2**24
"""Bytes checked in one go."""

Arrays = dict[str, NDArray[Any]]

log = logging.getLogger(__name__)


def digest(*parts: object) -> str:
    """32 hex digits that differ when any part does: arrays by type, shape and bytes, the others by their repr."""
    total = hashlib.sha256()
    for part in parts:
        if isinstance(part, np.ndarray):
            total.update(repr((part.dtype.str, part.shape)).encode())
            total.update(np.ascontiguousarray(part).data)
        else:
            total.update(repr(part).encode())
    return total.hexdigest()[:32]


def cached_arrays(cache_dir: Path | None, name: str, build: Callable[[], Arrays]) -> Arrays:
    """The arrays that `cache_dir` holds under `name`, read-only and memory-mapped; built, and kept there, if absent.

    Of several processes that ask at once, one builds and the others wait. `cache_dir` None only builds. Arrays above
    `MAX_BYTES`, or above half of the free disk, are not kept; a damaged file is built again, and a folder that cannot
    be written costs the next run the same work. Each of these is one log line, none is an error.
    """
    if cache_dir is None:
        return build()
    path = cache_dir / f"{name}.arrays"
    try:
        return _load(path)
    except (OSError, ValueError):
        log.debug("%s is not there yet, or damaged; looked at again under the lock.", path)
    with one_at_a_time(path):
        found = _load_or_say_why(path)
        if found is not None:
            return found
        arrays = build()
        if _may_be_kept(cache_dir, arrays) and keep(path, *_packed(arrays)):
            return _load_or_say_why(path) or arrays
        return arrays


def _may_be_kept(folder: Path, arrays: Arrays) -> bool:
    size = sum(array.nbytes for array in arrays.values())
    if size > MAX_BYTES:
        return False
    free = shutil.disk_usage(folder).free if folder.is_dir() else size * 2
    if size * 2 > free:
        log.warning(
            "%s has %.1f GiB free, too little to keep sample indices of %.1f GiB for the next run.",
            shown_path(str(folder)),
            free / 2**30,
            size / 2**30,
        )
        return False
    return True


def _packed(arrays: Arrays) -> Iterator[bytes | memoryview]:
    pieces: list[bytes | memoryview] = []
    rows, length = [], 0
    for name, array in arrays.items():
        padding = -length % ALIGNMENT
        stored = np.ascontiguousarray(array)
        rows.append({"name": name, "dtype": stored.dtype.str, "shape": stored.shape, "at": length + padding})
        pieces += [bytes(padding), stored.reshape(-1).view(np.uint8).data]
        length += padding + stored.nbytes
    crc = 0
    for piece in pieces:
        crc = zlib.crc32(piece, crc)
    table = json.dumps({"arrays": rows, "bytes": length, "crc32": crc}).encode()
    table += b" " * (-(HEAD.size + len(table)) % ALIGNMENT)
    yield HEAD.pack(MAGIC, len(table)) + table
    yield from pieces


def _load_or_say_why(path: Path) -> Arrays | None:
    try:
        return _load(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        log.warning("%s cannot be read: %s. The run goes on without it.", shown_path(str(path)), error.strerror)
    except ValueError as error:
        log.warning("%s is damaged (%s); it is built again.", shown_path(str(path)), error)
    return None


def _load(path: Path) -> Arrays:
    """Raises `OSError` when there is no such file, and `ValueError` when it is not whole."""
    with path.open("rb") as file:
        raw = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)  # ValueError for an empty file
    if len(raw) < HEAD.size:
        raise ValueError(f"{len(raw)} bytes")
    magic, length = HEAD.unpack_from(raw)
    if magic != MAGIC:
        raise ValueError(f"it starts with {magic!r}, not {MAGIC!r}")
    start = HEAD.size + length
    try:
        table = json.loads(raw[HEAD.size : start])
        rows = [
            (row["name"], np.dtype(row["dtype"]), tuple(row["shape"]), start + row["at"]) for row in table["arrays"]
        ]
        whole, crc = start + table["bytes"], table["crc32"]
    except (KeyError, TypeError, RecursionError) as error:
        raise ValueError("its table cannot be read") from error
    if len(raw) != whole:
        raise ValueError(f"{len(raw)} bytes instead of {whole}")
    if _crc32(raw, start) != crc:
        raise ValueError("its checksum is wrong")
    return {name: np.ndarray(shape, dtype, raw, at) for name, dtype, shape, at in rows}


def _crc32(raw: mmap.mmap, start: int) -> int:
    crc = 0
    with memoryview(raw) as view:
        for at in range(start, len(raw), CHUNK):
            crc = zlib.crc32(view[at : at + CHUNK], crc)
    return crc
