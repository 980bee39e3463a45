"""Importing Hugging Face weights: every tensor must have its place, and every parameter its tensors."""

from collections.abc import Iterable, Mapping
from pathlib import Path

from mindspore import Parameter

from msmigrate.problems import UnreadableError, UserError
from msrt.ops.autograd import array, tensor
from msrt.weights.names import Binding, NameRow
from msrt.weights.safetensors import StoredTensor, read_header

LISTED = 10
"""Names that a message lists of each kind."""


def import_hf(parameters: Mapping[str, Parameter], rows: Iterable[NameRow], source: Path) -> None:
    """Fills `parameters` (by PyNative name) from the safetensors file, or the folder of such files, `source`.

    `rows` is the family's name table. Raises UserError that lists missing tensors, unexpected ones and those of a wrong
    shape; then nothing is changed. Raises UnreadableError for files that cannot be read.
    """
    stored = _stored(source)
    bindings = [binding for row in rows for binding in row.bindings()]
    _refuse_mismatches(parameters, bindings, stored, source)
    for binding in bindings:
        whole = binding.layout.join([stored[name].load() for name in binding.hub])
        parameters[binding.ours].set_data(tensor(whole))


def _stored(source: Path) -> dict[str, StoredTensor]:
    files = sorted(source.glob("*.safetensors")) if source.is_dir() else [source]
    if not files:
        raise UnreadableError(f"{source} holds no *.safetensors file.")
    found: dict[str, StoredTensor] = {}
    for file in files:
        tensors = read_header(file)
        twice = sorted(found.keys() & tensors.keys())
        if twice:
            raise UserError(f"{file} and {found[twice[0]].path} both hold {twice[0]}: remove one of the files.")
        found.update(tensors)
    return found


def _refuse_mismatches(
    parameters: Mapping[str, Parameter], bindings: list[Binding], stored: Mapping[str, StoredTensor], source: Path
) -> None:
    wanted = {
        name: part.shape
        for binding in bindings
        for name, part in zip(binding.hub, binding.layout.split(array(parameters[binding.ours])), strict=True)
    }
    shapes = [
        f"{name} is {stored[name].shape}, the model needs {shape}"
        for name, shape in wanted.items()
        if name in stored and stored[name].shape != shape
    ]
    sentences = [
        _listed("missing", sorted(wanted.keys() - stored.keys())),
        _listed("unexpected", sorted(stored.keys() - wanted.keys())),
        _listed("of a wrong shape", shapes),
    ]
    found = [sentence for sentence in sentences if sentence]
    if found:
        raise UserError(f"The weights in {source} do not fit the model. " + " ".join(found))


def _listed(kind: str, names: list[str]) -> str:
    if not names:
        return ""
    more = f" and {len(names) - LISTED} more" if len(names) > LISTED else ""
    count = "1 tensor is" if len(names) == 1 else f"{len(names)} tensors are"
    return f"{count} {kind}: {', '.join(names[:LISTED])}{more}."
