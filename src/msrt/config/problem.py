"""What makes a config unable to run: problems collected from every check, then refused together with their places."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

from msmigrate.problems import UserError


class Place(Protocol):
    """Where a key was given: line and column count from 1; both None for an override from the command line."""

    @property
    def line(self) -> int | None: ...
    @property
    def column(self) -> int | None: ...


@dataclass(frozen=True, slots=True)
class Problem:
    """One violated rule: the dotted path of the key to change, empty for none, and a sentence with the numbers."""

    key: str
    message: str


def refuse(problems: Sequence[Problem], name: str, given: Mapping[str, Place]) -> None:
    """Nothing when `problems` is empty; else one `UserError` (status 1) with a line for each.

    `name` is the config file's name; `given` has the place of each key that the file or an override gives.
    """
    if problems:
        raise UserError("\n".join(f"{located(problem.key, name, given)}: {problem.message}" for problem in problems))


@contextmanager
def about_file(name: str) -> Iterator[None]:
    """Puts the config file's name before every line of a `UserError` from inside the block; its status stays."""
    try:
        yield
    except UserError as error:
        raise UserError(
            "\n".join(f"{name}: {line}" for line in str(error).splitlines()), status=error.status
        ) from error


def shown(value: object) -> str:
    """A value in a message: `missing` for None, a text in quotes, anything else as YAML and JSON write it."""
    if value is None:
        return "missing"
    return repr(value) if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def located(key: str, name: str, given: Mapping[str, Place]) -> str:
    """`file:line:column: key` for a key of the file, `--set key` for an override, `file: key (default)` otherwise."""
    if not key:
        return name
    if key not in given:
        return f"{name}: {key} (default)"
    place = given[key]
    return f"--set {key}" if place.line is None else f"{name}:{place.line}:{place.column}: {key}"
