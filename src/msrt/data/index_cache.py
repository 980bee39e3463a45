"""Indices kept on disk between runs, so that a large corpus is not indexed anew at each start."""

import hashlib
import io
import logging
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

from msmigrate.yaml.source import shown_path
from msrt.data.gpt_index import GPTIndices
from msrt.data.indexed import IndexedDataset
from msrt.data.kept_file import keep, read_kept

FORMAT = 1
"""Counts up when the indices built from the same settings change."""

MAX_BYTES = 256 * 2**20
"""Larger indices are built at each start: they would fill the disk of somebody who only mistyped a number."""

log = logging.getLogger(__name__)


def cached_indices(
    cache_dir: Path | None, corpus: IndexedDataset, settings: tuple[object, ...], build: Callable[[], GPTIndices]
) -> GPTIndices:
    """The indices stored in `cache_dir` for this corpus and these settings; built, and stored there, if absent.

    The name covers the corpus's sequence lengths, so a changed corpus never meets old indices. `cache_dir` None only
    builds, indices above `MAX_BYTES` are not stored, and a file that is damaged or cannot be written is a warning.
    """
    if cache_dir is None:
        return build()
    path = cache_dir / f"gpt-index-{_key(corpus, settings)}.npz"
    stored = _load(path)
    if stored is not None:
        return stored
    indices = build()
    if indices.nbytes <= MAX_BYTES:
        keep(path, _packed(indices))
    return indices


def _key(corpus: IndexedDataset, settings: tuple[object, ...]) -> str:
    digest = hashlib.sha256(repr((FORMAT, settings)).encode())
    digest.update(corpus.sequence_lengths.tobytes())
    return digest.hexdigest()[:32]


def _load(path: Path) -> GPTIndices | None:
    data = read_kept(path)
    if data is None:
        return None
    try:
        with np.load(io.BytesIO(data)) as stored:
            return GPTIndices(stored["documents"], stored["samples"], stored["shuffle"])
    except (KeyError, ValueError, EOFError, zipfile.BadZipFile) as error:
        log.warning("%s is damaged (%s); it is built again.", shown_path(str(path)), error)
        return None


def _packed(indices: GPTIndices) -> memoryview:
    # Not straight into a file: numpy leaves its zip archive open when the disk is full, which ends in a traceback.
    packed = io.BytesIO()
    np.savez(packed, documents=indices.documents, samples=indices.samples, shuffle=indices.shuffle)
    return packed.getbuffer()
