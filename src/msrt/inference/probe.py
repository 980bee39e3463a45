"""The answers of a model for given tokens: logits, losses, inner values, gradients."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mindspore as ms
import numpy as np
from numpy.typing import NDArray

from msmigrate.problems import UserError
from msmigrate.yaml.source import shown_path
from msrt.models.batch import IGNORED, masked_labels
from msrt.ops.autograd import Array, array, tensor
from msrt.ops.cross_entropy import cross_entropy
from msrt.train.memory import shortage_told
from msrt.weights.names import to_hub
from msrt.weights.safetensors import FLOATS, StoredTensor, read_header

INTEGERS = ("I64", "I32", "I16", "I8", "U8")


@dataclass(frozen=True)
class ProbeInput:
    """Tokens (batch, seq) int32, and what the loss needs: `labels`, already shifted, -100 ignored, and a float32 mask
    of the same shape, None for all ones."""

    input_ids: NDArray[np.int32]
    labels: NDArray[np.int32] | None = None
    loss_mask: Array | None = None


def read_input(path: Path) -> ProbeInput:
    """The input in a safetensors file; tensors of other names are left alone.

    A mask counts with labels only. Raises UnreadableError when the file cannot be read, UserError when a tensor is
    missing or has another form, and for a mask that is all zeros or has negative or non-finite entries.
    """
    stored = read_header(path)
    shown = shown_path(str(path))
    if "input_ids" not in stored:
        raise UserError(f"{shown} has no input_ids; expected integers of shape (batch, seq).")
    shape = stored["input_ids"].shape
    if len(shape) != 2 or 0 in shape:
        raise UserError(f"{shown} has input_ids of shape {shape}; expected (batch, seq), both at least 1.")
    for name in ("labels", "loss_mask"):
        if name in stored and stored[name].shape != shape:
            raise UserError(f"{shown} has {name} of shape {stored[name].shape}; expected input_ids' {shape}.")
    ids = _integers(stored["input_ids"], "input_ids")
    labels = _integers(stored["labels"], "labels") if "labels" in stored else None
    masked = labels is not None and "loss_mask" in stored
    return ProbeInput(ids, labels, _mask(stored["loss_mask"]) if masked else None)


def probe(model: Any, given: ProbeInput, *, hidden: bool, grads: bool) -> dict[str, Array]:
    """What `model` (a `models.api.Model`) makes of `given`, all float32.

    `logits` (batch, seq, vocab). With labels: `token_loss` (batch, seq), 0 where the label is ignored, and `loss` =
    Σ(token_loss · mask) / Σ mask, which is above 0; an ignored token that the mask counts stays in the
    denominator. `hidden` adds the names of `Model.trace`, `grads` the gradients of `loss` as `grad.<Hugging Face
    name>`. Raises UserError for tokens outside the vocabulary, and for `grads` without labels.
    """
    if grads and given.labels is None:
        raise UserError("--grads needs labels in the input: gradients are those of the loss.")
    batch, seq = given.input_ids.shape
    with shortage_told(f"an input of {batch} × {seq} tokens", "Give fewer tokens."):
        return _answers(model, given, hidden=hidden, grads=grads)


def not_finite(answers: Mapping[str, Array]) -> Iterator[str]:
    """One sentence for logits and for a loss with values that are not finite."""
    for name in ("logits", "loss"):
        wrong = int(np.count_nonzero(~np.isfinite(answers[name]))) if name in answers else 0
        if wrong:
            yield f"{wrong:,} of the {answers[name].size:,} values of {name} are not finite (NaN or infinite)."


def _answers(model: Any, given: ProbeInput, *, hidden: bool, grads: bool) -> dict[str, Array]:
    ids = tensor(given.input_ids)
    logits = model.logits(ids)
    found: dict[str, Array] = {"logits": array(logits)}
    if given.labels is not None:
        found.update(_losses(logits, given.labels, given.loss_mask))
    if hidden:
        found.update((name, values.astype(np.float32)) for name, values in model.trace(ids).items())
    if grads and given.labels is not None:
        found.update(_gradients(model, ids, given.labels, given.loss_mask))
    return found


def _losses(logits: ms.Tensor, labels: NDArray[np.int32], mask: Array | None) -> dict[str, Array]:
    targets, _ = masked_labels(tensor(labels), None, logits.shape[-1])
    each = array(cross_entropy(logits.reshape((-1, logits.shape[-1])), targets)).reshape(labels.shape)
    token_loss = np.where(labels == IGNORED, np.float32(0), each)
    weights = np.ones(labels.shape, np.float32) if mask is None else mask
    total = weights.sum(dtype=np.float64)
    loss = (token_loss * weights).sum(dtype=np.float64) / total
    return {"token_loss": token_loss, "loss": np.asarray(loss, np.float32)}


def _gradients(model: Any, ids: ms.Tensor, labels: NDArray[np.int32], mask: Array | None) -> dict[str, Array]:
    weights = np.ones(labels.shape, np.float32) if mask is None else mask
    # The model's mean is over the tokens that are counted and not ignored.
    share = float(weights[labels != IGNORED].sum(dtype=np.float64) / weights.sum(dtype=np.float64))
    trained = list(model.trainable_params())

    def loss() -> ms.Tensor:
        return model.loss(ids, tensor(labels), tensor(weights)).main * share

    _, gradients = ms.value_and_grad(loss, None, trained)()
    ours = {parameter.name: array(gradient) for parameter, gradient in zip(trained, gradients, strict=True)}
    return {f"grad.{name}": values for name, values in to_hub(model.name_table(), ours).items()}


def _integers(stored: StoredTensor, name: str) -> NDArray[np.int32]:
    if stored.dtype not in INTEGERS:
        raise UserError(f"{shown_path(str(stored.path))} has {name} of type {stored.dtype}; expected I32 or I64.")
    values = stored.raw()
    low, high = int(values.min()), int(values.max())
    if low < -(2**31) or high >= 2**31:
        raise UserError(f"{shown_path(str(stored.path))} has {name} from {low} to {high}; expected 32-bit integers.")
    return values.astype(np.int32)


def _mask(stored: StoredTensor) -> Array:
    mask = stored.load() if stored.dtype in FLOATS else stored.raw().astype(np.float32)
    shown = shown_path(str(stored.path))
    wrong = np.argwhere(~(np.isfinite(mask) & (mask >= 0)))
    if len(wrong):
        place = tuple(map(int, wrong[0]))
        raise UserError(
            f"{shown} has a loss_mask with {mask[place]} at {place}, the first of {len(wrong)} entries that are "
            "negative or not finite; expected numbers of 0 or more."
        )
    if not mask.any():
        raise UserError(f"{shown} has a loss_mask of {mask.size} zeros: there is no token to take the loss of.")
    return mask
