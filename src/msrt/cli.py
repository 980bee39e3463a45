"""The `msrt` command: reads the command line and files, calls the library, prints, and sets the exit status.

MindSpore and numpy are imported inside the commands that need them, so that --help, --version and every check of the
config answer at once.
"""

import logging
import os
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from msmigrate.options import ExpertMesh
from msmigrate.problems import Exit, UsageError, UserError

INTERRUPTED = 130

app = typer.Typer(
    name="msrt",
    help="Train from a pynative.yaml.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Debug = Annotated[bool, typer.Option("--debug", help="Show the Python traceback of an error.")]


def main() -> None:
    """Run the command line; exits with a status of contract section 2, or 130 after Ctrl-C."""
    app()


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"msrt {_installed('msmigrate')}, mindspore {_installed('mindspore')}")
        raise typer.Exit


@app.callback()
def _options(
    show_version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the versions and exit.")
    ] = False,
) -> None:
    pass


@app.command()
def train(
    config: Annotated[str, typer.Argument(metavar="PYNATIVE.yaml", help="The config; - reads standard input.")],
    overrides: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Set a key by its dotted path; repeatable.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder of the run's files (default ./output/<config's stem>).")
    ] = None,
    workers: Annotated[int | None, typer.Option(hidden=True, min=1)] = None,
    expert_mesh: Annotated[
        ExpertMesh, typer.Option(help="How expert_parallel enters the number of ranks.")
    ] = ExpertMesh.PRODUCT,
    debug: Debug = False,
) -> None:
    """Train a model from scratch.

    Example: msrt train guide/pynative.yaml --set training.steps=20 --output runs/first
    """
    with _reporting(debug):
        from msrt.config.checked import check_config

        _needs_extra("mindspore", "numpy", "matplotlib")
        checked = check_config(config, _pairs(overrides or []), workers or _world(), expert_mesh)
        for sentence in checked.notes:
            _note(sentence)
        folder = output or Path("output") / ("stdin" if config == "-" else Path(config).stem)
        # MindSpore's own warnings speak of its API, which the user of a config never called.
        os.environ.setdefault("GLOG_v", "3")
        from rich.console import Console

        from msrt.train.run import run_training

        summary = run_training(
            checked.config,
            checked.numbers,
            config_file=config,
            output=folder,
            console=Console(stderr=True),
            note=_note,
        )
        typer.echo(summary)


@app.command("make-data")
def make_data(
    inputs: Annotated[
        list[Path], typer.Argument(metavar="INPUT…", help=".txt files, or .jsonl with a `text` each line.")
    ],
    prefix: Annotated[Path, typer.Option("-o", metavar="PREFIX", help="Writes PREFIX.bin and PREFIX.idx.")],
    tokenizer: Annotated[str, typer.Option(help="bytes: every UTF-8 byte is a token.")] = "bytes",
    append_eod: Annotated[bool, typer.Option("--append-eod", help="End each document with end-of-document.")] = False,
    debug: Debug = False,
) -> None:
    """Make a corpus that training reads.

    Example: msrt make-data book.txt -o data/book_text_document --append-eod
    """
    with _reporting(debug):
        _needs_extra("numpy")
        from msrt.data.make_data import make_data as make

        made = make(inputs, prefix, tokenizer=tokenizer, append_eod=append_eod)
        typer.echo(f"{made.documents} documents, {made.tokens} tokens ({made.dtype})")
        for path in made.files:
            typer.echo(str(path))


@app.command()
def plot(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN…", help="Run folders, or metrics.jsonl files.")],
    target: Annotated[
        Path | None, typer.Option("-o", metavar="FILE.png", help="Write an image instead of characters.")
    ] = None,
    debug: Debug = False,
) -> None:
    """Plot the loss of runs: on the terminal, or all of them in one image.

    Example: msrt plot output/pynative output/other -o loss.png
    """
    with _reporting(debug):
        from msrt.train.curve import read_curve

        curves = [read_curve(run) for run in runs]
        if target is None:
            from msrt.train.terminal_plot import plot_text

            typer.echo("\n\n".join(plot_text(curve) for curve in curves))
            return
        _needs_extra("matplotlib")
        from msrt.train.plot import plot_png

        plot_png(curves, target)
        typer.echo(str(target))


@contextmanager
def _reporting(debug: bool) -> Iterator[None]:
    """Turns an error of the user into its message on standard error and its exit status."""
    logging.basicConfig(format="warning: %(message)s", level=logging.WARNING)
    try:
        yield
    except UserError as error:
        if debug:
            traceback.print_exc()
        typer.echo(str(error), err=True)
        raise typer.Exit(error.status) from error
    except KeyboardInterrupt as error:
        if debug:
            traceback.print_exc()
        typer.echo(str(error) or "Interrupted.", err=True)
        raise typer.Exit(INTERRUPTED) from error


def _note(sentence: str) -> None:
    typer.echo(f"note: {sentence}", err=True)


def _pairs(overrides: list[str]) -> list[tuple[str, str]]:
    for override in overrides:
        if not override.partition("=")[0] or "=" not in override:
            raise UsageError(f"--set {override}: expected KEY=VALUE, such as --set training.steps=20.")
    return [(key, value) for key, _, value in (override.partition("=") for override in overrides)]


def _world() -> int:
    """Ranks of this run: what msrun announces in the environment, else 1."""
    value = os.environ.get("MS_WORKER_NUM", "1")
    if not value.isdecimal() or int(value) < 1:
        raise UserError(f"MS_WORKER_NUM in the environment is {value!r}; it must be a number of ranks of at least 1.")
    return int(value)


def _needs_extra(*modules: str) -> None:
    if any(find_spec(module) is None for module in modules):
        raise UserError("training needs the extra: pip install 'msmigrate[train]'", status=Exit.NO)


def _installed(distribution: str) -> str:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return "not installed"
