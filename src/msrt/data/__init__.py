"""From token files to micro-batches: Megatron's corpus format, sample order and masks, with numpy alone."""

from msrt.data.bytes_tokenizer import BytesTokenizer
from msrt.data.indexed import IndexedDataset, IndexedWriter, token_dtype
from msrt.data.make_data import Made, make_data
from msrt.data.order import SampleOrder
from msrt.data.prefetch import Prefetcher
from msrt.data.sample import Sample
from msrt.data.stream import MicroBatch, SampleSource, micro_batches
from msrt.data.train_source import open_train_source

__all__ = [
    "BytesTokenizer",
    "IndexedDataset",
    "IndexedWriter",
    "Made",
    "MicroBatch",
    "Prefetcher",
    "Sample",
    "SampleOrder",
    "SampleSource",
    "make_data",
    "micro_batches",
    "open_train_source",
    "token_dtype",
]
