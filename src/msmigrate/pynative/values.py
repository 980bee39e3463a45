"""Values of a pynative.yaml against the declared types, as strictly as the real readers."""

import math
import re
import types
import typing
from dataclasses import dataclass

from msmigrate.pynative.keys import Spec
from msmigrate.wording import cut, shown
from msmigrate.yaml.scalars import Value, is_unsafe_float, spell_float


@dataclass(frozen=True, slots=True)
class Mismatch:
    """Why a value does not fit: what was expected, and what to write instead where that is clear."""

    message: str
    help: str | None = None


def typed(spec: Spec, value: Value) -> object | Mismatch:
    """The Python value for a key (lists become tuples, an int becomes a float where one is declared), or a Mismatch.

    A bool is no int, a string is never a number, as in the MindFormers readers; then bounds and choices hold.
    """
    found = _convert(value, spec.annotation)
    if isinstance(found, Mismatch):
        return _explained(spec, value, found)
    return _bounded(spec, found)


def _convert(value: Value, annotation: object) -> object | Mismatch:
    if annotation is object:
        return value
    if isinstance(annotation, types.UnionType):
        return _convert_union(value, annotation.__args__)
    if annotation is types.NoneType:
        return None if value is None else Mismatch("null")
    origin = typing.get_origin(annotation)
    if origin is tuple:
        first, *rest = typing.get_args(annotation)
        length = None if rest == [...] else 1 + len(rest)
        return _convert_list(value, first, length)
    if origin is dict:
        return _convert_dict(value, typing.get_args(annotation)[1])
    return _convert_scalar(value, annotation)


def _convert_union(value: Value, arms: tuple[object, ...]) -> object | Mismatch:
    expected: list[str] = []
    for arm in arms:
        found = _convert(value, arm)
        if not isinstance(found, Mismatch):
            return found
        expected.append(found.message)
    return Mismatch(" or ".join(dict.fromkeys(expected)))


def _convert_list(value: Value, item: object, length: int | None) -> object | Mismatch:
    if not isinstance(value, list) or (length is not None and len(value) != length):
        return Mismatch("a list" if length is None else f"a list of {length}")
    found = [_convert(part, item) for part in value]
    bad = next((part for part in found if isinstance(part, Mismatch)), None)
    return Mismatch(f"a list of {bad.message}".replace(" a ", " ").replace("of an ", "of ")) if bad else tuple(found)


def _convert_dict(value: Value, item: object) -> object | Mismatch:
    if not isinstance(value, dict):
        return Mismatch("a mapping")
    found = {name: _convert(part, item) for name, part in value.items()}
    bad = next((part for part in found.values() if isinstance(part, Mismatch)), None)
    return Mismatch(f"a mapping to {bad.message}") if bad else found


_EXPECTED = {bool: "True or False", int: "an integer", float: "a number", str: "a text"}


def _convert_scalar(value: Value, annotation: object) -> object | Mismatch:
    if annotation is float and isinstance(value, int) and not isinstance(value, bool):
        try:
            return float(value)
        except OverflowError:
            return Mismatch("a number within the range of floats")
    assert isinstance(annotation, type)
    if type(value) is annotation:
        return value
    return Mismatch(_EXPECTED[annotation])


def _explained(spec: Spec, value: Value, mismatch: Mismatch) -> Mismatch:
    said = "null" if value is None else f"`{shown(value)}`"
    text = f"`{spec.path}` is {said}, {_kind(value)}; expected {mismatch.message}"
    if isinstance(value, str) and "number" in mismatch.message and is_unsafe_float(value):
        return Mismatch(
            f"{text}. The reader takes `{value}` for a text because it has no decimal point",
            f"write {spell_float(float(value))}",
        )
    if value is None:
        return Mismatch(text, "give a value or remove the key")
    if isinstance(value, str) and "integer" in mismatch.message and value.strip().lstrip("-").isdigit():
        return Mismatch(text, f"remove the quotes: {cut(value.strip())}")
    return Mismatch(text)


def _kind(value: Value) -> str:
    if value is None:
        return "no value"
    kinds = {bool: "a truth value", int: "an integer", float: "a number", str: "a text", list: "a list"}
    return kinds.get(type(value), "a mapping")


def _bounded(spec: Spec, value: object) -> object | Mismatch:
    key = spec.key
    if isinstance(value, str) and key.choices and value not in key.choices:
        return Mismatch(f"`{spec.path}` is `{shown(value)}`; expected one of {', '.join(key.choices)}")
    if key.layers:
        fault = _layer_fault(spec.path, value)
        if fault is not None:
            return fault
    for number in value if isinstance(value, tuple) else (value,):
        if isinstance(number, bool) or not isinstance(number, (int, float)):
            continue
        if isinstance(number, float) and not math.isfinite(number):
            return Mismatch(f"`{spec.path}` is {shown(number)}; expected a finite number")
        if key.minimum is not None and number < key.minimum:
            return Mismatch(f"`{spec.path}` is {shown(number)}; the smallest legal value is {key.minimum}")
        if key.maximum is not None and number > key.maximum:
            return Mismatch(f"`{spec.path}` is {shown(number)}; the largest legal value is {key.maximum}")
    return value


def _layer_fault(path: str, value: object) -> Mismatch | None:
    """What is wrong with a layer list: each part an id or a range low-high, ascending, without overlap (manual 6.1)."""
    if isinstance(value, dict):
        found = (_layer_fault(f"{path}.{name}", part) for name, part in value.items())
        return next((fault for fault in found if fault is not None), None)
    last = -1
    for part in value if isinstance(value, tuple) else ():
        written = re.fullmatch(r"(\d+)(?:-(\d+))?", str(part).strip())
        if written is None:
            return Mismatch(f"`{path}` has the part `{part}`; expected a layer such as 3 or a range such as 0-3")
        low, high = int(written[1]), int(written[2] or written[1])
        if high < low:
            return Mismatch(f"`{path}` has the range `{part}`, which runs backwards")
        if low <= last:
            return Mismatch(f"`{path}` has `{part}` behind layer {last}; expected ascending parts without overlap")
        last = high
    return None
