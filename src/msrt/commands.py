"""The commands of `msrt`: each reads its arguments and files, calls the library, prints, and sets the exit status.

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
from msmigrate.streams import say
from msrt.interrupts import INTERRUPTED, raise_on_interrupt
from msrt.streams import result

app = typer.Typer(
    name="msrt",
    help="Train from a pynative.yaml.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Debug = Annotated[bool, typer.Option("--debug", help="Show the Python traceback of an error.")]


def _print_version(wanted: bool) -> None:
    if wanted:
        with _reporting(debug=False):
            result(f"msrt {_installed('msmigrate')}, mindspore {_installed('mindspore')}")
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
        str | None, typer.Option(metavar="DIR", help="Folder of the run's files (default ./output/<config's stem>).")
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
        from msrt.config.world import world_of
        from msrt.train.folder import claimed

        _needs_extra("mindspore", "numpy", "matplotlib")
        if output == "":
            raise UsageError("--output is empty; name a folder for the run's files.")
        world = world_of(os.environ) if workers is None else workers
        checked = check_config(config, _pairs(overrides or []), world, expert_mesh)
        for sentence in checked.notes:
            _note(sentence)
        with claimed(Path(output or _default_output(config)), _note) as folder:
            # MindSpore's own warnings speak of its API, which the user of a config never called.
            os.environ.setdefault("GLOG_v", "3")
            from rich.console import Console

            from msrt.train.run import run_training

            raise_on_interrupt()
            run_training(checked, config_file=config, output=folder, console=Console(stderr=True), note=_note)


@app.command("make-data")
def make_data(
    inputs: Annotated[
        list[str],
        typer.Argument(metavar="INPUT…", help=".txt, or .jsonl with a `text` each line; - reads text from stdin."),
    ],
    prefix: Annotated[str, typer.Option("-o", metavar="PREFIX", help="Writes PREFIX.bin and PREFIX.idx.")],
    tokenizer: Annotated[str, typer.Option(help="bytes: every UTF-8 byte is a token.")] = "bytes",
    append_eod: Annotated[bool, typer.Option("--append-eod", help="End each document with end-of-document.")] = False,
    debug: Debug = False,
) -> None:
    """Make a corpus that training reads.

    Example: msrt make-data book.txt -o data/book_text_document --append-eod
    """
    with _reporting(debug):
        _needs_extra("numpy")
        from rich.console import Console

        from msrt.data.make_data import make_data as make
        from msrt.data.read_progress import read_progress

        raise_on_interrupt()
        with read_progress(Console(stderr=True)) as report:
            made = make(inputs, prefix, tokenizer=tokenizer, append_eod=append_eod, report=report)
        documents = "1 document" if made.documents == 1 else f"{made.documents} documents"
        result("\n".join([f"{documents}, {made.tokens} tokens ({made.dtype})", *map(_path, made.files)]))


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

        if target is not None and target.suffix.lower() != ".png":
            raise UsageError(f"-o {_path(target)}: the image is a PNG; give it a name that ends in .png.")
        raise_on_interrupt()
        curves = [read_curve(run) for run in runs]
        if target is None:
            from msrt.train.terminal_plot import plot_text

            result("\n\n".join(plot_text(curve) for curve in curves))
            return
        _needs_extra("matplotlib")
        from msrt.train.folder import make_folder
        from msrt.train.plot import plot_png

        make_folder(target.parent, "-o")
        plot_png(curves, target)
        result(_path(target))


@contextmanager
def _reporting(debug: bool) -> Iterator[None]:
    """Turns an error of the user into its message on standard error and its exit status."""
    logging.basicConfig(format="warning: %(message)s", level=logging.WARNING)
    try:
        yield
    except UserError as error:
        if debug:
            traceback.print_exc()
        say(str(error))
        raise typer.Exit(error.status) from error
    except KeyboardInterrupt as error:
        if debug:
            traceback.print_exc()
        say(str(error) or "Interrupted.")
        raise typer.Exit(INTERRUPTED) from error


def _note(sentence: str) -> None:
    say(f"note: {sentence}")


def _path(path: Path) -> str:
    from msmigrate.yaml.source import shown_path

    return shown_path(str(path))


def _default_output(config: str) -> Path:
    return Path("output") / ("stdin" if config == "-" else Path(config).stem)


def _pairs(overrides: list[str]) -> list[tuple[str, str]]:
    """The overrides as (key, value); the command line is UTF-8 whatever the locale, as the files are."""
    pairs = []
    for override in overrides:
        try:
            key, equals, value = os.fsencode(override).decode().partition("=")
        except UnicodeDecodeError as error:
            shown = _path(Path(override))
            raise UsageError(f"--set {shown}: byte 0x{error.object[error.start]:02x} is not UTF-8.") from error
        if not key or not equals:
            raise UsageError(f"--set {override}: expected KEY=VALUE, such as --set training.steps=20.")
        pairs.append((key, value))
    return pairs


def _needs_extra(*modules: str) -> None:
    if any(find_spec(module) is None for module in modules):
        raise UserError("training needs the extra: pip install 'msmigrate[train]'", status=Exit.NO)


def _installed(distribution: str) -> str:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return "not installed"
