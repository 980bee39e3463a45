"""The commands of `msrt`: each reads its arguments and files, calls the library, prints, and sets the exit status.

MindSpore and numpy are imported inside the commands that need them, so that --help, --version and every check of the
config answer at once.
"""

import logging
import math
import os
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from msmigrate.interrupts import INTERRUPTED, raise_on_interrupt
from msmigrate.options import ExpertMesh
from msmigrate.problems import Exit, UsageError, UserError
from msmigrate.streams import print_result, say
from msrt.streams import result, still_read

app = typer.Typer(
    name="msrt",
    help="Train from a pynative.yaml.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Debug = Annotated[bool, typer.Option("--debug", help="Show the Python traceback of an error.")]

_CHECKPOINT = "A checkpoint's root, or one of its iteration folders."
_EITHER = "A checkpoint, or a Hugging Face folder."
_MODEL_OF_CONFIG = "Compute its model, with MindFormers' arithmetic."


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
    with _reporting(debug):
        from msrt.config.checked import check_config
        from msrt.config.world import world_of
        from msrt.train.folder import claimed

        _needs_extra("mindspore", "numpy", "matplotlib", "tensorboardX")
        if output == "":
            raise UsageError("--output is empty; name a folder for the run's files.")
        if resume == "":
            raise UsageError("--resume is empty; name a checkpoint, or write auto.")
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
            run_training(
                checked, config_file=config, output=folder, console=Console(stderr=True), note=_note, resume=resume
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
    with _reporting(debug):
        _needs_extra("numpy")
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
            _note(f"documents end with the token {made.eod}: write it in train_dataset.dataloader.config.eod.")
        documents = "1 document" if made.documents == 1 else f"{made.documents} documents"
        tokens = "1 token" if made.tokens == 1 else f"{made.tokens} tokens"
        result("\n".join([f"{documents}, {tokens} ({made.dtype})", *map(_path, made.files)]))


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
    with _reporting(debug):
        from msrt.train.compare import compare_runs
        from msrt.train.compare_report import comparison_json, comparison_text

        if not math.isfinite(tolerance):
            raise UsageError(f"--tolerance is {tolerance}; expected a finite number, such as 1e-5.")
        raise_on_interrupt()
        found = compare_runs(left, right, tolerance, _note, common_only=common_steps)
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
    with _reporting(debug):
        from msrt.train.curve import named_apart, read_curve

        if target is not None and target.suffix.lower() != ".png":
            raise UsageError(f"-o {_path(target)}: the image is a PNG; give it a name that ends in .png.")
        raise_on_interrupt()
        curves = [replace(read_curve(run, _note), name=name) for run, name in zip(runs, named_apart(runs), strict=True)]
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


@app.command("import")
def import_weights(
    folder: Annotated[Path, typer.Argument(metavar="HF_DIR", help="config.json and safetensors files.")],
    target: Annotated[Path, typer.Option("-o", metavar="CHECKPOINT_DIR", help="A new folder, or an empty one.")],
    config: Annotated[
        str | None,
        typer.Option(metavar="PYNATIVE.yaml", help="The same model as it is trained; held against config.json."),
    ] = None,
    debug: Debug = False,
) -> None:
    """Make a checkpoint out of a Hugging Face folder.

    Example: msrt import DeepSeek-V3-small -o checkpoints/start --config pynative.yaml
    """
    with _reporting(debug):
        _prepare_for_models()
        from msrt.exchange.import_hf import import_hf_folder

        raise_on_interrupt()
        count = import_hf_folder(folder, target, config, _note)
        result(f"{count} parameters\n{_path(target)}")


@app.command("export")
def export_weights(
    checkpoint: Annotated[Path, typer.Argument(metavar="CHECKPOINT", help=_CHECKPOINT)],
    target: Annotated[Path, typer.Option("-o", metavar="HF_DIR", help="A new folder, or an empty one.")],
    debug: Debug = False,
) -> None:
    """Make a Hugging Face folder out of a checkpoint.

    Example: msrt export checkpoints/start -o hf/start
    """
    with _reporting(debug):
        _prepare_for_models()
        from msrt.exchange.export_hf import export_hf_folder

        raise_on_interrupt()
        result("\n".join(map(_path, export_hf_folder(checkpoint, target, _note))))


@app.command()
def generate(
    model: Annotated[Path, typer.Argument(metavar="CHECKPOINT|HF_DIR", help=_EITHER)],
    prompt: Annotated[str, typer.Option(metavar="TEXT", help="The text to continue.")],
    tokens: Annotated[int, typer.Option(min=1, help="How many tokens at most.")] = 64,
    temperature: Annotated[float, typer.Option(min=0, help="0: always the most likely token.")] = 0.0,
    top_p: Annotated[
        float, typer.Option("--top-p", min=0, max=1, help="Draw from the most likely tokens that sum to this.")
    ] = 1.0,
    seed: Annotated[int, typer.Option(min=0, help="Of the draws at a temperature above 0.")] = 0,
    debug: Debug = False,
) -> None:
    """Continue a text; what is new goes to standard output as it comes.

    Example: msrt generate checkpoints/start --prompt "Once upon a time" --temperature 0.8 --top-p 0.9
    """
    with _reporting(debug):
        _prepare_for_models()
        from msrt.inference.continue_text import continue_text
        from msrt.inference.sampling import Sampler

        raise_on_interrupt()
        sampler = Sampler(temperature, top_p, seed)
        for piece in continue_text(model, _utf8("--prompt", prompt), tokens=tokens, sampler=sampler, note=_note):
            print_result(piece.encode())
            if not still_read():
                return
        result("")


@app.command()
def probe(
    model: Annotated[Path, typer.Argument(metavar="CHECKPOINT|HF_DIR", help=_EITHER)],
    given: Annotated[
        Path, typer.Option("--input", metavar="FILE.safetensors", help="input_ids; also labels, loss_mask.")
    ],
    target: Annotated[
        Path,
        typer.Option(
            "-o",
            metavar="FILE.safetensors",
            help="Gets logits, losses and more; replaces an earlier file, but none that is read.",
        ),
    ],
    config: Annotated[str | None, typer.Option(metavar="PYNATIVE.yaml", help=_MODEL_OF_CONFIG)] = None,
    workers: Annotated[int, typer.Option(hidden=True, min=1)] = 1,
    hidden: Annotated[bool, typer.Option("--hidden", help="Add hidden states and router values.")] = False,
    grads: Annotated[bool, typer.Option("--grads", help="Add the loss's gradients.")] = False,
    debug: Debug = False,
) -> None:
    """Write what a model makes of given tokens.

    Example: msrt probe checkpoints/start --input tokens.safetensors -o answers.safetensors --hidden
    """
    with _reporting(debug):
        if workers > 1:
            raise UserError(f"--workers is {workers}; probe runs on one rank: leave it out.")
        _prepare_for_models()
        from msrt.exchange.source import open_source
        from msrt.inference.length import note_length
        from msrt.inference.output import refuse_what_is_read, write_output
        from msrt.inference.probe import not_finite, read_input
        from msrt.inference.probe import probe as ask

        raise_on_interrupt()
        refuse_what_is_read(target, given, config, model)
        tokens = read_input(given)
        source = open_source(model, config, _note)
        note_length(source.config, tokens.input_ids.shape[1], "the input", _note)
        answers = ask(source.load(), tokens, hidden=hidden, grads=grads)
        write_output(target, answers)
        for sentence in not_finite(answers):
            _note(sentence)
        result(f"{len(answers)} tensors\n{_path(target)}")


@contextmanager
def _reporting(debug: bool) -> Iterator[None]:
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


def _prepare_for_models() -> None:
    _needs_extra("mindspore", "numpy")
    # MindSpore's own warnings speak of its API, which the user of a command never called.
    os.environ.setdefault("GLOG_v", "3")


def _note(sentence: str) -> None:
    say(f"note: {sentence}")


def _path(path: Path) -> str:
    from msmigrate.yaml.source import shown_path

    return shown_path(str(path))


def _default_output(config: str) -> Path:
    return Path("output") / ("stdin" if config == "-" else Path(config).stem)


def _pairs(overrides: list[str]) -> list[tuple[str, str]]:
    """The overrides as (key, value)."""
    pairs = []
    for override in overrides:
        key, equals, value = _utf8("--set", override).partition("=")
        if not key or not equals:
            raise UsageError(f"--set {override}: expected KEY=VALUE, such as --set training.steps=20.")
        pairs.append((key, value))
    return pairs


def _utf8(option: str, given: str) -> str:
    """The value of an option: the command line is UTF-8 whatever the locale, as the files are."""
    try:
        return os.fsencode(given).decode()
    except UnicodeDecodeError as error:
        shown = _path(Path(given))
        raise UsageError(f"{option} {shown}: byte 0x{error.object[error.start]:02x} is not UTF-8.") from error


def _needs_extra(*modules: str) -> None:
    if any(find_spec(module) is None for module in modules):
        raise UserError("training needs the extra: pip install 'msmigrate[train]'", status=Exit.NO)


def _installed(distribution: str) -> str:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return "not installed"
