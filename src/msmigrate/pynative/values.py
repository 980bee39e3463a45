"""Values of a pynative.yaml against the declared types, as strictly as the real readers."""

import types
import typing
from dataclasses import dataclass

from msmigrate.pynative.keys import Spec
from msmigrate.yaml.scalars import Value, is_unsafe_float, spell, spell_float


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
        return _convert_list(value, typing.get_args(annotation)[0])
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


def _convert_list(value: Value, item: object) -> object | Mismatch:
    if not isinstance(value, list):
        return Mismatch("a list")
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
        return float(value)
    assert isinstance(annotation, type)
    if type(value) is annotation:
        return value
    return Mismatch(_EXPECTED[annotation])


def _explained(spec: Spec, value: Value, mismatch: Mismatch) -> Mismatch:
    shown = "null" if value is None else f"`{spell(value)}`"
    text = f"`{spec.path}` is {shown}, {_kind(value)}; expected {mismatch.message}"
    if isinstance(value, str) and "number" in mismatch.message and is_unsafe_float(value):
        return Mismatch(
            f"{text}. The reader takes `{value}` for a text because it has no decimal point",
            f"write {spell_float(float(value))}",
        )
    if value is None:
        return Mismatch(text, "give a value or remove the key")
    if isinstance(value, str) and "integer" in mismatch.message and value.strip().lstrip("-").isdigit():
        return Mismatch(text, f"remove the quotes: {value.strip()}")
    return Mismatch(text)


def _kind(value: Value) -> str:
    if value is None:
        return "no value"
    kinds = {bool: "a truth value", int: "an integer", float: "a number", str: "a text", list: "a list"}
    return kinds.get(type(value), "a mapping")


def _bounded(spec: Spec, value: object) -> object | Mismatch:
    key = spec.key
    if isinstance(value, str) and key.choices and value not in key.choices:
        return Mismatch(f"`{spec.path}` is `{value}`; expected one of {', '.join(key.choices)}")
    for number in value if isinstance(value, tuple) else (value,):
        if isinstance(number, bool) or not isinstance(number, (int, float)):
            continue
        if number != number:
            return Mismatch(f"`{spec.path}` is not a number (.nan)")
        if key.minimum is not None and number < key.minimum:
            return Mismatch(f"`{spec.path}` is {number}; the smallest legal value is {key.minimum}")
        if key.maximum is not None and number > key.maximum:
            return Mismatch(f"`{spec.path}` is {number}; the largest legal value is {key.maximum}")
    return value
