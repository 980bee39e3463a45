"""The commands of msmigrate: options in, library calls, exit statuses out."""

from typing import Annotated, Any

import typer

from msmigrate import __version__
from msmigrate.problems import UsageError

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Convert MindFormers Graph-mode configs to PyNative mode, and check them.",
)

Debug = Annotated[bool, typer.Option("--debug", help="Show Python tracebacks.")]
Graphs = Annotated[
    list[str], typer.Argument(metavar="GRAPH.yaml…", help="Graph-mode files or folders of them; - for standard input.")
]


def _version(show: bool) -> None:
    if show:
        print(f"msmigrate {__version__}")
        raise typer.Exit


@app.callback()
def _root(version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True)] = False) -> None:
    pass


@app.command("convert")
def convert_command(
    graphs: Graphs,
    output: Annotated[str | None, typer.Option("-o", "--output", help="File to write; - or nothing prints it.")] = None,
    out_dir: Annotated[str | None, typer.Option(help="Folder for the results of several files.")] = None,
    in_place: Annotated[
        bool, typer.Option("--in-place", help="Replace the file; the old one stays as FILE.bak.")
    ] = False,
    target: Annotated[str, typer.Option(help="MindFormers release to write for: 2.0 or 2.1.")] = "2.0",
    manual_only: Annotated[bool, typer.Option("--manual-only", help="Write the manual's keys alone.")] = False,
    world: Annotated[int | None, typer.Option(min=1, help="Devices of the graph run.")] = None,
    samples: Annotated[int | None, typer.Option(min=1, help="Samples of the training data set.")] = None,
    hf_config: Annotated[str | None, typer.Option(help="The model's config.json, or its folder.")] = None,
    expert_mesh: Annotated[
        str, typer.Option(help="product (the manual's 11.4) or nested (MindFormers 2.x).")
    ] = "product",
    sets: Annotated[list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Set a pynative key.")] = None,
    report: Annotated[str | None, typer.Option(help="File for the report; - prints it to standard error.")] = None,
    report_format: Annotated[str, typer.Option(help="text, json or markdown.")] = "text",
    diff: Annotated[bool, typer.Option("--diff", help="Print what changes as a unified diff.")] = False,
    check: Annotated[bool, typer.Option("--check", help="Write nothing; status 1 if -o FILE would change.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Write nothing.")] = False,
    allow_lossy: Annotated[bool, typer.Option("--allow-lossy", help="Accept losses that change training.")] = False,
    debug: Debug = False,
) -> None:
    """Convert graph.yaml files to pynative.yaml files that train the same run."""
    from msmigrate.convert_files import ConvertRequest, run_convert
    from msmigrate.options import ExpertMesh, Options, Target

    if (output is not None) + (out_dir is not None) + in_place > 1:
        raise UsageError("-o, --out-dir and --in-place name different outputs; give one of them")
    if "-" in graphs and (in_place or len(graphs) > 1):
        raise UsageError("- is standard input: it stands alone, and --in-place has no file there")
    options = Options(
        target=_choice(Target, target, "--target"),
        manual_only=manual_only,
        world=world,
        samples=samples,
        expert_mesh=_choice(ExpertMesh, expert_mesh, "--expert-mesh"),
        allow_lossy=allow_lossy,
    )
    form = _one_of(report_format, ("text", "json", "markdown"), "--report-format")
    request = ConvertRequest(
        tuple(graphs), output, out_dir, in_place, options, hf_config, tuple(sets or ()), report, form, diff, check,
        dry_run,
    )  # fmt: skip
    raise typer.Exit(run_convert(request))


@app.command("lint")
def lint_command(
    paths: Annotated[list[str], typer.Argument(metavar="PATH…", help="Pynative files.")],
    output_format: Annotated[str, typer.Option("--format", help="text or json.")] = "text",
    debug: Debug = False,
) -> None:
    """Check pynative files against the declared keys: names, types, bounds, choices."""
    from msmigrate.commands import run_lint

    raise typer.Exit(run_lint(paths, _one_of(output_format, ("text", "json"), "--format")))


@app.command("schema")
def schema_command(
    kind: Annotated[str, typer.Argument(metavar="pynative")] = "pynative",
    output: Annotated[str | None, typer.Option("-o", "--output", help="File to write.")] = None,
    check: Annotated[bool, typer.Option("--check", help="Write nothing; status 1 if -o FILE differs.")] = False,
    debug: Debug = False,
) -> None:
    """Print the JSON schema of pynative.yaml."""
    from msmigrate.commands import run_schema

    _one_of(kind, ("pynative",), "schema")
    raise typer.Exit(run_schema(output, check=check))


def _choice(kind: Any, text: str, option: str) -> Any:
    return kind(_one_of(text, tuple(member.value for member in kind), option))


def _one_of(text: str, choices: tuple[str, ...], option: str) -> str:
    if text not in choices:
        raise UsageError(f"{option} {text}: expected one of {', '.join(choices)}")
    return text
