"""The JSON schema of pynative.yaml, made from the declared keys: for editors and for CI."""

import dataclasses
import types
import typing

from msmigrate.pynative.keys import Spec, is_open, nested_section, specs_of
from msmigrate.pynative.sections import Config

SCHEMA_ID = "https://json-schema.org/draft/2020-12/schema"


def pynative_schema() -> dict[str, object]:
    """The schema object (draft 2020-12): types, bounds, choices, defaults and descriptions of every key."""
    return {"$schema": SCHEMA_ID, "title": "MindFormers pynative.yaml", **_section(Config, "")}


def _section(section: type, prefix: str) -> dict[str, object]:
    specs = [spec for path, spec in specs_of(section, prefix).items() if "." not in path[len(prefix) :]]
    properties: dict[str, object] = {}
    for spec in specs:
        for name in (spec.name, *spec.key.aliases):
            properties[name] = _property(spec)
    found: dict[str, object] = {
        "type": "object",
        "description": (section.__doc__ or "").split("\n")[0],
        "properties": properties,
        "additionalProperties": False,
    }
    required = [spec.name for spec in specs if spec.key.required]
    if required:
        found["required"] = required
    if is_open(section):
        found["x-open"] = True
    return found


def _property(spec: Spec) -> dict[str, object]:
    inner = nested_section(spec.annotation)
    if inner is not None:
        return {**_section(inner, spec.path + "."), "type": ["object", "null"]}
    found: dict[str, object] = {"description": spec.key.meaning, **_type(spec.annotation)}
    if spec.key.manual:
        found["x-manual"] = spec.key.manual
    if spec.key.choices:
        found["enum"] = [*spec.key.choices, *([True, False] if "bool" in str(spec.annotation) else [])]
        if spec.default is None:
            found["enum"] = [*spec.key.choices, *([True, False] if "bool" in str(spec.annotation) else []), None]
        found.pop("type", None)
    bounds = {"minimum": spec.key.minimum, "maximum": spec.key.maximum}
    scalar = not str(spec.annotation).startswith("tuple")
    found.update({name: bound for name, bound in bounds.items() if bound is not None and scalar})
    if spec.default is not None:
        found["default"] = list(spec.default) if isinstance(spec.default, tuple) else spec.default
    return found


_NAMES = {bool: "boolean", int: "integer", float: "number", str: "string", types.NoneType: "null"}


def _type(annotation: object) -> dict[str, object]:
    if annotation is object:
        return {}
    if isinstance(annotation, types.UnionType):
        arms = [_type(arm) for arm in annotation.__args__]
        if all(set(arm) == {"type"} for arm in arms):
            return {"type": [arm["type"] for arm in arms]}
        return {"anyOf": arms}
    origin = typing.get_origin(annotation)
    if origin is tuple:
        first, *rest = typing.get_args(annotation)
        length = {} if rest == [...] else {"minItems": 1 + len(rest), "maxItems": 1 + len(rest)}
        return {"type": "array", "items": _type(first), **length}
    if origin is dict:
        return {"type": "object", "additionalProperties": _type(typing.get_args(annotation)[1])}
    assert isinstance(annotation, type)
    assert not dataclasses.is_dataclass(annotation)
    return {"type": _NAMES[annotation]}
