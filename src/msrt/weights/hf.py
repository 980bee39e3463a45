"""Hugging Face weights: which files of a folder hold them, and each parameter out of its tensors."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import numpy as np
from mindspore import Parameter

from msmigrate.json_text import read_json_object
from msmigrate.problems import UnreadableError, UserError
from msmigrate.yaml.source import shown_path
from msrt.ops.autograd import array, tensor
from msrt.weights.fit import LISTED, refuse_misfits
from msrt.weights.names import Binding, NameRow
from msrt.weights.safetensors import FLOATS, Raw, StoredTensor, all_finite, read_header

ONE_FILE = "model.safetensors"
INDEX = "model.safetensors.index.json"


@dataclass(frozen=True)
class Sources:
    """The tensors of one parameter, in the order that its layout wants them."""

    binding: Binding
    parts: tuple[StoredTensor, ...]

    @property
    def dtype(self) -> str:
        """The type that all parts have, else F32, which holds every 16-bit one."""
        kinds = {part.dtype for part in self.parts}
        return kinds.pop() if len(kinds) == 1 else "F32"

    def raw(self) -> Raw:
        """The parameter's values as type `dtype` stores them: the very bits, unless the parts' types differ."""
        mixed = len({part.dtype for part in self.parts}) > 1
        # A layout moves values and never computes with them: it takes bits as well.
        return self.binding.layout.join([part.load() if mixed else part.raw() for part in self.parts])

    def not_finite(self, raw: Raw) -> list[str]:
        """The tensors that gave the parameter's values `raw` a NaN or an infinity."""
        if all_finite(raw, self.dtype):
            return []
        named = zip(self.binding.hub, self.parts, strict=True)
        return [name for name, part in named if not all_finite(part.raw(), part.dtype)]


def import_hf(parameters: Mapping[str, Parameter], rows: Iterable[NameRow], source: Path) -> None:
    """Fills `parameters` (by PyNative name) from the safetensors file, or the folder of such files, `source`.

    `rows` is the family's name table. Raises UserError that lists missing tensors, unexpected ones and those of a wrong
    shape; then nothing is changed. Raises UnreadableError for files that cannot be read.
    """
    for item in bound(parameters, rows, source):
        whole = item.binding.layout.join([part.load() for part in item.parts])
        parameters[item.binding.ours].set_data(tensor(whole))


def bound(parameters: Mapping[str, Parameter], rows: Iterable[NameRow], source: Path) -> list[Sources]:
    """Where the values of each of `parameters` are, in the table's order; nothing is loaded. Raises as `import_hf`."""
    rows = tuple(rows)
    stored = _without_besides(stored_tensors(source), rows)
    bindings = [binding for row in rows for binding in row.bindings()]
    wanted = {
        name: part.shape
        for binding in bindings
        for name, part in zip(binding.hub, binding.layout.split(array(parameters[binding.ours])), strict=True)
    }
    refuse_misfits(wanted, {name: item.shape for name, item in stored.items()}, shown_path(str(source)))
    foreign = [f"{name} ({stored[name].dtype})" for name in wanted if stored[name].dtype not in FLOATS]
    if foreign:
        raise UserError(
            f"{len(foreign)} of the weights in {shown_path(str(source))} are of types that are not read here, such as "
            f"{foreign[0]}; expected {', '.join(FLOATS)}. Quantised weights must be dequantised first."
        )
    return [Sources(binding, tuple(stored[name] for name in binding.hub)) for binding in bindings]


def besides(rows: Iterable[NameRow], source: Path) -> tuple[list[str], list[str]]:
    """The names in `source` that make no parameter: copies of other tensors, and those that the model does not use."""
    rows, stored = tuple(rows), stored_tensors(source)
    ignored = tuple(start for row in rows for start in row.ignored)
    unused = [name for name in stored if name.startswith(ignored)]
    return [copy for row in rows for copy in row.copies if copy in stored and copy not in unused], unused


def _without_besides(stored: dict[str, StoredTensor], rows: tuple[NameRow, ...]) -> dict[str, StoredTensor]:
    """The tensors without those that the rows ignore, and without copies. Raises UserError for a copy that is none."""
    ignored = tuple(start for row in rows for start in row.ignored)
    kept = {name: item for name, item in stored.items() if not name.startswith(ignored)}
    for copy, original in ((copy, row.hub[0]) for row in rows for copy in row.copies):
        if copy in kept and original in kept and not _equal(kept[copy], kept[original]):
            raise UserError(
                f"{copy} in {shown_path(str(kept[copy].path))} differs from {original}; the model has one matrix for "
                "both, so that they must be equal."
            )
        kept.pop(copy, None)
    return kept


def _equal(left: StoredTensor, right: StoredTensor) -> bool:
    return left.shape == right.shape and bool(np.array_equal(left.load(), right.load()))


def stored_tensors(source: Path) -> dict[str, StoredTensor]:
    """The tensors of a safetensors file, or of a folder: those of its index, of model.safetensors, or of all files."""
    index = _index(source)
    found: dict[str, StoredTensor] = {}
    for file in _weight_files(source) if index is None else [source / name for name in sorted(set(index.values()))]:
        tensors = read_header(file)
        twice = sorted(found.keys() & tensors.keys())
        if twice:
            paths = f"{shown_path(str(file))} and {shown_path(str(found[twice[0]].path))}"
            raise UserError(f"{paths} both hold {twice[0]}: remove one of the files.")
        found.update(tensors)
    if index is not None:
        _refuse_other_index(index, found, source)
    return found


def _weight_files(source: Path) -> list[Path]:
    if not source.is_dir():
        return [source]
    if (source / ONE_FILE).is_file():
        return [source / ONE_FILE]
    files = sorted(source.glob("*.safetensors"))
    if not files:
        raise UnreadableError(f"{shown_path(str(source))} holds no *.safetensors file.")
    return files


def _index(source: Path) -> dict[str, str] | None:
    """The file of each tensor by a folder's index; None where there is no index."""
    path = source / INDEX
    if not path.is_file():
        return None
    expected = "a weight_map of tensor names to names of files in the same folder"
    files = read_json_object(path, expected).get("weight_map")
    if not isinstance(files, dict) or not all(isinstance(name, str) and name for name in files.values()):
        raise UnreadableError(f"{shown_path(str(path))} is no index: expected {expected}.")
    for tensor_name, name in files.items():
        if PurePosixPath(name).is_absolute() or ".." in PurePosixPath(name).parts:
            raise UnreadableError(
                f"{shown_path(str(path))} looks for {tensor_name} in {shown_path(name)}, outside the folder; expected "
                f"{expected}."
            )
    return files


def _refuse_other_index(index: Mapping[str, str], found: Mapping[str, StoredTensor], folder: Path) -> None:
    """Raises UnreadableError when the tensors of the files are not those of the index, each in its file."""
    elsewhere = [
        f"{name} is in {shown_path(str(found[name].path.relative_to(folder)))}, not in {shown_path(file)}"
        for name, file in index.items()
        if name in found and found[name].path != folder / file
    ]
    faults = [
        *(f"{name} is not in {shown_path(index[name])}" for name in index.keys() - found.keys()),
        *elsewhere,
        *(f"{name} in {shown_path(str(found[name].path.name))} is not listed" for name in found.keys() - index.keys()),
    ]
    if faults:
        more = f"; and {len(faults) - LISTED} more" if len(faults) > LISTED else ""
        raise UnreadableError(
            f"{shown_path(str(folder / INDEX))} does not fit the files: {'; '.join(sorted(faults)[:LISTED])}{more}. "
            "Correct its weight_map, or remove it to read every *.safetensors file."
        )
