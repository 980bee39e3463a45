"""JSON that others wrote: its value, or one sentence on what is wrong with it and where."""

import json
from pathlib import Path

from msmigrate.problems import UnreadableError
from msmigrate.yaml.source import shown_path

KINDS = {
    int: "a number", float: "a number", str: "a text", bool: "true or false", type(None): "null", list: "a list",
    dict: "an object",
}  # fmt: skip
"""What a message calls the values of JSON."""


def parse_json(data: str | bytes, name: str) -> object:
    """The value of a JSON text, UTF-8 if bytes; `name` is the file's for messages.

    Raises UnreadableError for what is no JSON, with line and column, and for numbers and nesting beyond measure.
    """
    try:
        return json.loads(data if isinstance(data, str) else data.decode("utf-8"))
    except json.JSONDecodeError as error:
        raise _unreadable(f"{name}:{error.lineno}:{error.colno}", f"not JSON: {error.msg}.") from error
    except UnicodeDecodeError as error:
        byte = error.object[error.start]
        raise _unreadable(name, f"not JSON: byte 0x{byte:02x} at {error.start} is not UTF-8.") from error
    except RecursionError as error:
        raise _unreadable(name, "its lists and objects are nested too deep to be read.") from error
    except ValueError as error:  # the only one left: Python reads no longer integers
        raise _unreadable(name, "it has an integer of several thousand digits.") from error


def _unreadable(place: str, problem: str) -> UnreadableError:
    return UnreadableError(f"{place}: {problem}", problem=problem)


def read_json_object(path: Path, expected: str) -> dict[str, object]:
    """The object in the file `path`; `expected` says in a message what it should have.

    Raises UnreadableError when the file cannot be read, as `parse_json`, and for JSON that is no object.
    """
    name = shown_path(str(path))
    try:
        data = path.read_bytes()
    except OSError as error:
        raise UnreadableError(f"{name} cannot be read: {error.strerror}.") from error
    value = parse_json(data, name)
    if not isinstance(value, dict):
        raise UnreadableError(f"{name} holds {KINDS[type(value)]}; expected {expected}.")
    return value
