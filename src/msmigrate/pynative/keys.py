"""One key of a pynative.yaml: its default, meaning, bounds, manual section, and what msrt does with it."""

import dataclasses
import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from typing import TypeVar

from msmigrate.yaml.scalars import Value

T = TypeVar("T")

_METADATA = "key"


class Use(StrEnum):
    """What msrt does with a key that a file gives."""

    USED = "used"
    NO_EFFECT = "no effect"
    """Accepted; one note per run names the keys given that change nothing here."""
    REFUSED = "refused"
    """Accepted at its default only: any other value asks for something msrt does not have."""


@dataclass(frozen=True, slots=True)
class Key:
    """What is known about one key apart from its name, type and default."""

    meaning: str
    manual: str | None
    """Section of the written spec, such as "2.1"; None for a key the manual does not name."""
    use: Use
    minimum: float | None
    maximum: float | None
    choices: tuple[str, ...]
    required: bool
    since: str | None
    """First MindFormers release that takes the key, None for 2.0 and later."""
    until: str | None
    """Last MindFormers release that takes the key, None for no end."""
    dead: bool
    """True when the MindFormers releases parse the key and never read it."""
    aliases: tuple[str, ...]
    """Other names that files use for the same value, `converted` among them."""
    reader_name: str | None
    """The name MindFormers reads instead, when it ignores the manual's name in silence."""
    neutral: tuple[object, ...]
    """Values beside the default that ask for nothing, such as a factor of 1; for a list, of its items."""
    null_is_a_value: bool
    """True when null in a file differs from leaving the key out."""
    layers: bool
    """True for lists of layer ids and ranges, and for mappings to such lists."""
    converted: tuple[str, ...]
    """Aliases that the DeepSeek-V3 reader takes for the same setting; it ignores the others."""
    renamed: str | None
    """The key's name in the releases that do not take this one."""
    types: tuple[str, ...]
    """Classes (`type` of the section) that read the key; empty for all of them."""
    needed_by: tuple[str, ...]
    """Classes that cannot be made without the key."""
    own: bool
    """True for a key that msrt alone has: no MindFormers release takes it, and no conversion writes it."""
    families: tuple[str, ...]
    """Model types whose classes read a model key; empty for all of them."""
    no_integer: bool
    """True when the MindFormers classes behind the key take 0.0 and refuse 0."""


def key(
    default: T,
    meaning: str,
    *,
    manual: str | None = None,
    use: Use = Use.USED,
    minimum: float | None = None,
    maximum: float | None = None,
    choices: tuple[str, ...] = (),
    required: bool = False,
    since: str | None = None,
    until: str | None = None,
    dead: bool = False,
    aliases: tuple[str, ...] = (),
    reader_name: str | None = None,
    neutral: tuple[object, ...] = (),
    null_is_a_value: bool = False,
    layers: bool = False,
    converted: tuple[str, ...] = (),
    renamed: str | None = None,
    types: tuple[str, ...] = (),
    needed_by: tuple[str, ...] = (),
    own: bool = False,
    families: tuple[str, ...] = (),
    no_integer: bool = False,
) -> T:
    """A dataclass field that carries its `Key`; typed as its default so that sections read as plain dataclasses."""
    about = Key(
        meaning, manual, use, minimum, maximum, choices, required, since, until, dead, (*converted, *aliases),
        reader_name, neutral, null_is_a_value, layers, converted, renamed, types, needed_by, own,
        families, no_integer,
    )  # fmt: skip
    field: T = dataclasses.field(default=default, metadata={_METADATA: about})
    return field


@dataclass(frozen=True, slots=True)
class Spec:
    """A key with its place: dotted path, annotated type and default."""

    path: str
    annotation: object
    default: object
    key: Key

    @property
    def name(self) -> str:
        return self.path.rpartition(".")[2]

    def known_to(self, target: str) -> bool:
        """Whether the MindFormers release `target` ("2.0", "2.1") accepts the key."""
        release = _release(target)
        return not (
            self.key.own
            or (self.key.since and release < _release(self.key.since))
            or (self.key.until and release > _release(self.key.until))
        )


def asks_for_nothing(spec: Spec, value: object) -> bool:
    """Whether a value leaves a key's feature off: null, the default, a neutral value, or false, 0, empty."""
    if value is None or value == spec.default or value in spec.key.neutral:
        return True
    if isinstance(value, (tuple, list)):
        return all(item in spec.key.neutral for item in value)
    return spec.default is None and not value


def in_floats(spec: Spec, value: Value) -> Value:
    """The value as the readers take it: the whole numbers of a key that refuses integers as floats, else as it is."""
    if not spec.key.no_integer:
        return value
    if isinstance(value, list):
        return [in_floats(spec, item) for item in value]
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


def holds_integer(value: Value) -> bool:
    """Whether a value is a whole number written without a point, or a list with one."""
    if isinstance(value, list):
        return any(holds_integer(item) for item in value)
    return isinstance(value, int) and not isinstance(value, bool)


def _release(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split("."))


def nested_section(annotation: object) -> type | None:
    """The section dataclass that an annotation holds, or None for a plain value; `X | None` counts as X."""
    if isinstance(annotation, type) and dataclasses.is_dataclass(annotation):
        return annotation
    if isinstance(annotation, types.UnionType):
        return next((found for part in annotation.__args__ if (found := nested_section(part))), None)
    return None


@cache
def specs_of(section: type, prefix: str = "") -> Mapping[str, Spec]:
    """Every key of a section class and of the sections nested in it, by dotted path, in declared order."""
    hints = typing.get_type_hints(section)
    found: dict[str, Spec] = {}
    for field in dataclasses.fields(section):
        path = prefix + field.name
        about = field.metadata[_METADATA]
        assert isinstance(about, Key)
        found[path] = Spec(path, hints[field.name], field.default, about)
        inner = nested_section(hints[field.name])
        if inner is not None:
            found.update(specs_of(inner, path + "."))
    return found


def is_open(section: type) -> bool:
    """Whether the MindFormers readers keep keys of this section that they do not know."""
    return bool(getattr(section, "OPEN", False))
