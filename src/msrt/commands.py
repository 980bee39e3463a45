"""The commands of `msrt`: each reads its arguments and files, calls the library, prints, and sets the exit status.

MindSpore and numpy are imported inside the commands that need them, so that --help, --version and every check of the
config answer at once.
"""

import math
import os
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from msmigrate.interrupts import raise_on_interrupt
from msmigrate.options import ExpertMesh
from msmigrate.problems import Exit, UsageError
from msrt.command_line import Debug, installed, needs_extra, note, pairs, reporting, shown
from msrt.streams import result
from msrt.weight_commands import weights

app = typer.Typer(
    name="msrt",
    help="Train from a pynative.yaml.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        with reporting(debug=False):
            result(f"msrt {installed('msmigrate')}, mindspore {installed('mindspore')}")
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
    resume: Annotated[
        str | None,
        typer.Option(
            metavar="auto|PATH", help="Go on from a checkpoint; auto: from the newest one in checkpoint.save_path."
        ),
    ] = None,
    workers: Annotated[int | None, typer.Option(hidden=True, min=1)] = None,
    expert_mesh: Annotated[
        ExpertMesh, typer.Option(help="How expert_parallel enters the number of ranks.")
    ] = ExpertMesh.PRODUCT,
    debug: Debug = False,
) -> None:
    """Train a model, from scratch or on from a checkpoint.

    Example: msrt train guide/pynative.yaml --set training.steps=20 --output runs/first
    """
    with reporting(debug):
        from msrt.config.checked import check_config
        from msrt.config.world import world_of
        from msrt.train.folder import claimed

        needs_extra("mindspore", "numpy", "matplotlib", "tensorboardX")
        if output == "":
            raise UsageError("--output is empty; name a folder for the run's files.")
        if resume == "":
            raise UsageError("--resume is empty; name a checkpoint, or write auto.")
        world = world_of(os.environ) if workers is None else workers
        checked = check_config(config, pairs(overrides or []), world, expert_mesh)
        for sentence in checked.notes:
            note(sentence)
        with claimed(Path(output or _default_output(config)), note) as folder:
            # MindSpore's own warnings speak of its API, which the user of a config never called.
            os.environ.setdefault("GLOG_v", "3")
            from rich.console import Console

            from msrt.train.run import run_training

            raise_on_interrupt()
            run_training(
                checked, config_file=config, output=folder, console=Console(stderr=True), note=note, resume=resume
            )


@app.command("make-data")
def make_data(
    inputs: Annotated[
        list[str],
        typer.Argument(
            metavar="INPUT…",
            help="Folders (all but what begins with a dot), .txt (one document each), .jsonl (one document a line), "
            "also .gz; - reads text from stdin.",
        ),
    ],
    prefix: Annotated[str, typer.Option("-o", metavar="PREFIX", help="Writes PREFIX.bin and PREFIX.idx.")],
    tokenizer: Annotated[
        str, typer.Option(help="bytes: every UTF-8 byte is a token; or the path of a tokenizer.json.")
    ] = "bytes",
    append_eod: Annotated[bool, typer.Option("--append-eod", help="End each document with end-of-document.")] = False,
    eod_token: Annotated[
        str | None, typer.Option(metavar="TEXT", help="The end-of-document token of a tokenizer.json.")
    ] = None,
    json_key: Annotated[str, typer.Option(metavar="KEY", help="The key of the text in a .jsonl line.")] = "text",
    workers: Annotated[int, typer.Option(min=1, help="Processes that make tokens; the files stay the same.")] = 1,
    force: Annotated[bool, typer.Option("--force", help="Write over an existing PREFIX.")] = False,
    debug: Debug = False,
) -> None:
    """Make a corpus that training reads.

    Example: msrt make-data book.txt -o data/book_text_document --append-eod
    """
    with reporting(debug):
        needs_extra("numpy")
        from rich.console import Console

        from msrt.data.make_data import make_data as make
        from msrt.data.read_progress import read_progress

        raise_on_interrupt()
        with read_progress(Console(stderr=True)) as report:
            made = make(
                inputs,
                prefix,
                tokenizer=tokenizer,
                append_eod=append_eod,
                eod_token=eod_token,
                json_key=json_key,
                workers=workers,
                force=force,
                report=report,
            )
        if made.eod is not None:
            note(f"documents end with the token {made.eod}: write it in train_dataset.dataloader.config.eod.")
        documents = "1 document" if made.documents == 1 else f"{made.documents} documents"
        tokens = "1 token" if made.tokens == 1 else f"{made.tokens} tokens"
        result("\n".join([f"{documents}, {tokens} ({made.dtype})", *map(shown, made.files)]))


@app.command()
def compare(
    left: Annotated[Path, typer.Argument(metavar="RUN_A", help="A run folder, or a metrics.jsonl file.")],
    right: Annotated[Path, typer.Argument(metavar="RUN_B", help="The run to hold against it.")],
    tolerance: Annotated[
        float, typer.Option(min=0, help="The largest relative difference of loss, grad_norm and lr; 0: equal bits.")
    ] = 0.0,
    common_steps: Annotated[
        bool, typer.Option("--common-steps", help="Judge the steps that both have; else one lacking step is a no.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print every step as JSON.")] = False,
    debug: Debug = False,
) -> None:
    """Compare two runs step by step: status 0 when they are the same within the tolerance, 1 when not.

    Runs of which no loss is a finite number are never the same: they prove nothing.

    Example: msrt compare output/one_rank output/four_ranks --tolerance 1e-5
    """
    with reporting(debug):
        from msrt.train.compare import compare_runs
        from msrt.train.compare_report import comparison_json, comparison_text

        if not math.isfinite(tolerance):
            raise UsageError(f"--tolerance is {tolerance}; expected a finite number, such as 1e-5.")
        raise_on_interrupt()
        found = compare_runs(left, right, tolerance, note, common_only=common_steps)
        result(comparison_json(found) if as_json else comparison_text(found))
        if not found.same:
            raise typer.Exit(Exit.NO)


@app.command()
def plot(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN…", help="Run folders, or metrics.jsonl files.")],
    target: Annotated[
        Path | None, typer.Option("-o", metavar="FILE.png", help="Write an image instead of characters.")
    ] = None,
    debug: Debug = False,
) -> None:
    """Plot the loss of runs: on the terminal, or all of them in one image with gradient norms and learning rates.

    Example: msrt plot output/pynative output/other -o loss.png
    """
    with reporting(debug):
        from msrt.train.curve import named_apart, read_curve

        if target is not None and target.suffix.lower() != ".png":
            raise UsageError(f"-o {shown(target)}: the image is a PNG; give it a name that ends in .png.")
        raise_on_interrupt()
        curves = [replace(read_curve(run, note), name=name) for run, name in zip(runs, named_apart(runs), strict=True)]
        if target is None:
            from msrt.train.terminal_plot import plot_text

            result("\n\n".join(plot_text(curve) for curve in curves))
            return
        needs_extra("matplotlib")
        from msrt.train.folder import make_folder
        from msrt.train.plot import plot_png

        make_folder(target.parent, "-o")
        plot_png(curves, target)
        result(shown(target))


def _default_output(config: str) -> Path:
    return Path("output") / ("stdin" if config == "-" else Path(config).stem)


app.add_typer(weights)
