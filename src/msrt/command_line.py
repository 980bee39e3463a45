"""What all commands of `msrt` share: errors told and turned into a status, options read, notes, what is installed."""

import logging
import os
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from msmigrate.interrupts import INTERRUPTED
from msmigrate.problems import Exit, UsageError, UserError
from msmigrate.streams import say

Debug = Annotated[bool, typer.Option("--debug", help="Show the Python traceback of an error.")]


@contextmanager
def reporting(debug: bool) -> Iterator[None]:
    """Turns an error of the user into its message on standard error and its exit status."""
    logging.basicConfig(format="warning: %(message)s", level=logging.WARNING)
    try:
        with warnings.catch_warnings():
            # numpy's speak of its own lines; values that are not finite are told of where they matter.
            warnings.filterwarnings("ignore", category=RuntimeWarning)
            yield
    except MemoryError as error:
        if debug:
            traceback.print_exc()
        from msrt.train.memory import out_of_memory

        say(out_of_memory(error))
        raise typer.Exit(Exit.NO) from error
    except UserError as error:
        if debug:
            traceback.print_exc()
        say(str(error))
        raise typer.Exit(error.status) from error
    except KeyboardInterrupt as error:
        if debug:
            traceback.print_exc()
        say(str(error) or "Interrupted.")
        raise typer.Exit(getattr(error, "status", INTERRUPTED)) from error


def prepare_for_models() -> None:
    """Makes ready for the import of MindSpore. Raises UserError when the training extra is not installed."""
    needs_extra("mindspore", "numpy")
    # MindSpore's own warnings speak of its API, which the user of a command never called.
    os.environ.setdefault("GLOG_v", "3")


def note(sentence: str) -> None:
    """Tell the user something on standard error."""
    say(f"note: {sentence}")


def shown(path: Path) -> str:
    """A path as messages show it."""
    from msmigrate.yaml.source import shown_path

    return shown_path(str(path))


def pairs(overrides: list[str]) -> list[tuple[str, str]]:
    """The overrides as (key, value)."""
    pairs = []
    for override in overrides:
        key, equals, value = utf8("--set", override).partition("=")
        if not key or not equals:
            raise UsageError(f"--set {override}: expected KEY=VALUE, such as --set training.steps=20.")
        pairs.append((key, value))
    return pairs


def utf8(option: str, given: str) -> str:
    """The value of an option: the command line is UTF-8 whatever the locale, as the files are."""
    try:
        return os.fsencode(given).decode()
    except UnicodeDecodeError as error:
        text = shown(Path(given))
        raise UsageError(f"{option} {text}: byte 0x{error.object[error.start]:02x} is not UTF-8.") from error


def needs_extra(*modules: str) -> None:
    """Raises UserError when one of the modules of the training extra is missing."""
    if any(find_spec(module) is None for module in modules):
        raise UserError("training needs the extra: pip install 'msmigrate[train]'", status=Exit.NO)


def installed(distribution: str) -> str:
    """The version of a distribution, or "not installed"."""
    try:
        return version(distribution)
    except PackageNotFoundError:
        return "not installed"
