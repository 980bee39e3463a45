"""A pynative.yaml as its readers see it: typed values by declared path, and the node behind each."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from msmigrate.findings import Severity
from msmigrate.problems import UserError
from msmigrate.pynative import Config, Spec, nested_section, specs_of
from msmigrate.pynative.check import MOVED, Checked, apply_overrides, check_document
from msmigrate.yaml.document import Document, effective_entries
from msmigrate.yaml.nodes import Mapping as MapNode
from msmigrate.yaml.nodes import Node, Path, resolved
from msmigrate.yaml.scalars import Value


@dataclass(frozen=True, slots=True)
class PynativeFile:
    """A parsed and checked pynative file, with `--set` applied."""

    document: Document
    checked: Checked

    def given(self, path: str) -> bool:
        """Whether the file or an override gives a key, by its declared path."""
        return path in self.checked.values

    def value(self, path: str) -> object:
        """The typed value of a declared key: given, else its default; lists are tuples."""
        values = self.checked.values
        return values[path] if path in values else specs_of(Config)[path].default

    def node(self, path: str) -> Node | None:
        """The node of a key under its declared name, through aliases and merge keys; None when the file has none."""
        node: Node = self.document.root
        for part in path.split("."):
            inside = resolved(node)
            entries = effective_entries(inside) if isinstance(inside, MapNode) else []
            found = next((entry.value for entry in entries if entry.key.text == part), None)
            if found is None:
                return None
            node = found
        return node


@dataclass(frozen=True, slots=True)
class Declared:
    """The declared key or section behind a path of a file, and the part of the path that lies inside a free value."""

    spec: Spec
    inside: Path

    @property
    def is_section(self) -> bool:
        return nested_section(self.spec.annotation) is not None


def read_pynative(document: Document, overrides: Mapping[str, Value]) -> PynativeFile:
    """A parsed file with typed values.

    Raises UserError with one line per finding (file:line:col, what was found, what to change) for values of a wrong
    type or out of bounds and for required keys that are missing. Unknown keys are left to the caller.
    """
    checked = check_document(document)
    apply_overrides(checked, iter(overrides.items()))
    errors = [one for one in checked.findings if one.severity is Severity.ERROR and one.name != "unknown-key"]
    if errors:
        raise UserError("\n".join(str(error) for error in errors))
    return PynativeFile(document, checked)


def declared(path: Path) -> Declared | None:
    """The declared key that a path of a file leads to, by its own name or an alias; None for an unknown key."""
    prefix = ""
    found: Spec | None = None
    for count, part in enumerate(path):
        found = _by_any_name().get(f"{prefix}{part}")
        if found is None:
            return None
        if nested_section(found.annotation) is None:
            return Declared(found, path[count + 1 :])
        prefix = f"{found.path}."
    return Declared(found, ()) if found is not None else None


@cache
def _by_any_name() -> Mapping[str, Spec]:
    specs = specs_of(Config)
    names = {
        f"{spec.path.removesuffix(spec.name)}{alias}": spec for spec in specs.values() for alias in spec.key.aliases
    }
    return {**names, **{path: specs[home] for path, home in MOVED.items()}, **specs}
