"""From token files to micro-batches: Megatron's corpus format, sample order and masks, with numpy alone."""

from msrt.data.blend import BlendRule
from msrt.data.bytes_tokenizer import BytesTokenizer
from msrt.data.indexed import IndexedDataset, IndexedWriter, token_dtype
from msrt.data.loader import micro_batches_ahead
from msrt.data.make_data import Made, make_data
from msrt.data.order import Consumption, SampleOrder, consumption
from msrt.data.sample import Sample
from msrt.data.stream import MicroBatch, SampleSource, micro_batches
from msrt.data.train_source import open_train_source, sample_order

__all__ = [
    "BlendRule",
    "BytesTokenizer",
    "Consumption",
    "IndexedDataset",
    "IndexedWriter",
    "Made",
    "MicroBatch",
    "Sample",
    "SampleOrder",
    "SampleSource",
    "consumption",
    "make_data",
    "micro_batches",
    "micro_batches_ahead",
    "open_train_source",
    "sample_order",
    "token_dtype",
]
