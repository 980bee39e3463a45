"""Small corpora that the tests of the data room write for themselves."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from msrt.data import IndexedDataset, IndexedWriter


def write_corpus(prefix: Path, documents: Sequence[Sequence[int]], dtype: str = "int32") -> Path:
    """The prefix of a corpus with these documents, one sequence each."""
    with IndexedWriter(prefix, np.dtype(dtype)) as writer:
        for document in documents:
            writer.add_document(document)
    return prefix


def counting_corpus(prefix: Path, lengths: Sequence[int], first: int = 2) -> IndexedDataset:
    """A corpus whose tokens count on from `first` through all documents, so that each token tells its place."""
    ends = np.cumsum(lengths, dtype=np.int64) + first
    documents = [list(range(end - length, end)) for end, length in zip(ends.tolist(), lengths, strict=True)]
    return IndexedDataset(write_corpus(prefix, documents))


def documents_of(prefix: Path) -> list[list[int]]:
    """The tokens of every sequence of a corpus."""
    corpus = IndexedDataset(prefix)
    return [corpus.get(index).tolist() for index in range(len(corpus))]
