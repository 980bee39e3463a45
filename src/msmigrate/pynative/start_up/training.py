"""Rules of what is trained: a gradient norm that leaves nothing of the gradients, samples of another length."""

from collections.abc import Iterator

from msmigrate.findings import Severity
from msmigrate.pynative.start_up.rule import Facts, Problem, Rule

NORM = "training.max_norm"
DATA, MODEL = "train_dataset.dataloader.config.seq_length", "model.seq_length"
MEGATRON = "BlendedMegatronDatasetDataLoader"


def _no_gradients(facts: Facts) -> Iterator[Problem]:
    """The readers multiply gradients by max_norm / norm: 0 leaves nothing of them, and there is no off switch."""
    if facts.config.training.max_norm == 0:
        message = f"`{NORM}` is 0: every gradient is multiplied by 0, and nothing is learnt"
        yield Problem((NORM,), message, "write 1.0e+10, which never clips, or a norm above 0", Severity.WARNING)


def _sample_length(facts: Facts) -> Iterator[Problem]:
    loader, here = facts.config.train_dataset.dataloader, facts.config.model.seq_length
    if loader.type != MEGATRON or here is None or here == loader.config.seq_length:
        return
    said = "" if DATA in facts.written else ", its default"
    message = f"`{MODEL}` is {here} and `{DATA}` is {loader.config.seq_length}{said}: the samples have that length"
    yield Problem((MODEL, DATA), message, "write one number in both places", Severity.WARNING)


RULES = (
    Rule("P080", "gradients-of-nothing", _no_gradients, untrained=True),
    Rule("P081", "two-sample-lengths", _sample_length),
)
