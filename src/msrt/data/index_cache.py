"""Indices kept on disk between runs, so that a large corpus is not indexed anew at each start."""

import hashlib
import zipfile
from collections.abc import Callable
from pathlib import Path
from uuid import uuid4

import numpy as np

from msmigrate.problems import UnreadableError
from msrt.data.gpt_index import GPTIndices
from msrt.data.indexed import IndexedDataset

FORMAT = 1
"""Counts up when the indices built from the same settings change."""


def cached_indices(
    cache_dir: Path | None, corpus: IndexedDataset, settings: tuple[object, ...], build: Callable[[], GPTIndices]
) -> GPTIndices:
    """The indices stored in `cache_dir` for this corpus and these settings; built, and stored there, if absent.

    The name covers the corpus's sequence lengths, so a changed corpus never meets old indices. `cache_dir` None only
    builds. Raises `UnreadableError` when the folder cannot be written or a stored file is damaged.
    """
    if cache_dir is None:
        return build()
    path = cache_dir / f"gpt-index-{_key(corpus, settings)}.npz"
    if path.is_file():
        return _load(path)
    indices = build()
    _store(path, indices)
    return indices


def _key(corpus: IndexedDataset, settings: tuple[object, ...]) -> str:
    digest = hashlib.sha256(repr((FORMAT, settings)).encode())
    digest.update(corpus.sequence_lengths.tobytes())
    return digest.hexdigest()[:32]


def _load(path: Path) -> GPTIndices:
    try:
        with np.load(path) as stored:
            return GPTIndices(stored["documents"], stored["samples"], stored["shuffle"])
    except (OSError, KeyError, ValueError, EOFError, zipfile.BadZipFile) as error:
        raise UnreadableError(f"{path} is damaged ({error}). Delete it: it will be built again.") from error


def _store(path: Path, indices: GPTIndices) -> None:
    temporary = path.with_name(f".{path.name}.{uuid4().hex}.tmp")  # ranks of other hosts may share process ids
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with temporary.open("wb") as file:
                np.savez(file, documents=indices.documents, samples=indices.samples, shuffle=indices.shuffle)
            # Ranks that start together write the same bytes; the last rename wins and harms nobody.
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        raise UnreadableError(f"{path} cannot be written: {error.strerror or error}.") from error
