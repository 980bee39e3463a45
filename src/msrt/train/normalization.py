"""What the loss of a step is a mean of: the one place where it is decided.

`micro_batch`, MindFormers' rule and the default: each micro-batch's loss is the mean over its counted tokens, and the
step's loss and gradient are the mean of those over all micro-batches and ranks. A token in a micro-batch with many
masked ones weighs more than one among few, and a micro-batch without counted tokens adds a 0 to the mean.

`global_tokens`: the mean over all counted tokens of the step, however they are cut into micro-batches. Each
micro-batch's sum of token losses is divided by the mean count of a micro-batch; the mean over micro-batches and ranks,
taken as before, is then Σ losses / Σ tokens. Multi-token prediction counts its own tokens, one position further.

Both rules divide the load-balancing loss alike, by the number of micro-batches: it is of sequences, not of tokens that
the loss counts. Without masked tokens the rules agree.
"""

from collections.abc import Sequence

from msrt.data import MicroBatch
from msrt.models.api import TokenCounts
from msrt.models.batch import count_tokens

MICRO_BATCH, GLOBAL_TOKENS = "micro_batch", "global_tokens"
"""The values of training.loss_normalization."""


def mean_counts(batches: Sequence[MicroBatch]) -> TokenCounts:
    """What each of a step's micro-batches divides its token losses by under `global_tokens`."""
    counts = [count_tokens(batch.labels, batch.loss_mask) for batch in batches]
    return TokenCounts(*(sum(found) / len(counts) for found in zip(*counts, strict=True)))
