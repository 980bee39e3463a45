"""The commands of msmigrate: options in, library calls, exit statuses out."""

from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from msmigrate import __version__
from msmigrate.problems import UsageError

if TYPE_CHECKING:
    from msmigrate.options import Options

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
Pynatives = Annotated[
    list[str], typer.Argument(metavar="PYNATIVE.yaml…", help="Pynative files or folders of them; - for standard input.")
]
Output = Annotated[str | None, typer.Option("-o", "--output", help="File to write; - or nothing prints it.")]
OutDir = Annotated[str | None, typer.Option(help="Folder for the results of several files.")]
InPlace = Annotated[bool, typer.Option("--in-place", help="Replace the file; the old one stays as FILE.bak.")]
TargetName = Annotated[str, typer.Option(help="MindFormers release of the pynative file: 2.0 or 2.1.")]
ManualOnly = Annotated[bool, typer.Option("--manual-only", help="Write the manual's keys alone.")]
World = Annotated[int | None, typer.Option(min=1, help="Devices of the run.")]
Samples = Annotated[int | None, typer.Option(min=1, help="Samples of the training data set.")]
HfConfig = Annotated[str | None, typer.Option(help="The model's config.json, or its folder.")]
Mesh = Annotated[str, typer.Option(help="product (the manual's 11.4) or nested (MindFormers 2.x).")]
Sets = Annotated[list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Set a pynative key.")]
Modeline = Annotated[bool, typer.Option("--modeline", help="Let the first line name the schema, for editors.")]
Report = Annotated[
    str | None,
    typer.Option(help="File for the report, written with --check and --dry-run too; - prints it to standard error."),
]
ReportFormat = Annotated[str, typer.Option(help="text, json or markdown.")]
Diff = Annotated[bool, typer.Option("--diff", help="Print what changes as a unified diff.")]
Check = Annotated[bool, typer.Option("--check", help="Write no YAML; status 1 if -o FILE would change.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Write no YAML.")]
AllowLossy = Annotated[bool, typer.Option("--allow-lossy", help="Accept losses that change training.")]


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
    output: Output = None,
    out_dir: OutDir = None,
    in_place: InPlace = False,
    target: TargetName = "2.0",
    manual_only: ManualOnly = False,
    world: World = None,
    samples: Samples = None,
    hf_config: HfConfig = None,
    expert_mesh: Mesh = "product",
    sets: Sets = None,
    modeline: Modeline = False,
    report: Report = None,
    report_format: ReportFormat = "text",
    diff: Diff = False,
    check: Check = False,
    dry_run: DryRun = False,
    allow_lossy: AllowLossy = False,
    debug: Debug = False,
) -> None:
    """Convert graph.yaml files to pynative.yaml files that train the same run."""
    options = _options(target, manual_only, world, samples, expert_mesh, allow_lossy)
    _convert(
        graphs, output, out_dir, in_place, options, hf_config, sets, report, report_format, diff, check, dry_run,
        back=False, modeline=modeline,
    )  # fmt: skip


@app.command("reverse")
def reverse_command(
    pynatives: Pynatives,
    output: Output = None,
    out_dir: OutDir = None,
    in_place: InPlace = False,
    target: TargetName = "2.0",
    manual_only: ManualOnly = False,
    world: World = None,
    samples: Samples = None,
    hf_config: HfConfig = None,
    expert_mesh: Mesh = "product",
    sets: Sets = None,
    modeline: Modeline = False,
    report: Report = None,
    report_format: ReportFormat = "text",
    diff: Diff = False,
    check: Check = False,
    dry_run: DryRun = False,
    allow_lossy: AllowLossy = False,
    debug: Debug = False,
) -> None:
    """Turn pynative.yaml files back into graph.yaml files that train the same run."""
    options = _options(target, manual_only, world, samples, expert_mesh, allow_lossy)
    _convert(
        pynatives, output, out_dir, in_place, options, hf_config, sets, report, report_format, diff, check, dry_run,
        back=True, modeline=modeline,
    )  # fmt: skip


def _options(
    target: str, manual_only: bool, world: int | None, samples: int | None, expert_mesh: str, allow_lossy: bool
) -> "Options":
    from msmigrate.options import ExpertMesh, Options, Target

    return Options(
        target=_choice(Target, target, "--target"),
        manual_only=manual_only,
        world=_within(world, "--world"),
        samples=_within(samples, "--samples"),
        expert_mesh=_choice(ExpertMesh, expert_mesh, "--expert-mesh"),
        allow_lossy=allow_lossy,
    )


def _convert(
    paths: list[str], output: str | None, out_dir: str | None, in_place: bool, options: "Options",
    hf_config: str | None, sets: list[str] | None, report: str | None, report_format: str, diff: bool, check: bool,
    dry_run: bool, *, back: bool, modeline: bool,
) -> NoReturn:  # fmt: skip
    """What convert and reverse share: options that clash, then the files."""
    from msmigrate.convert_files import ConvertRequest, run_convert

    if (output is not None) + (out_dir is not None) + in_place > 1:
        raise UsageError("-o, --out-dir and --in-place name different outputs; give one of them")
    if "-" in paths and (in_place or len(paths) > 1):
        raise UsageError("- is standard input: it stands alone, and --in-place has no file there")
    if back and modeline:
        raise UsageError(
            "--modeline names the schema of a pynative.yaml; there is no schema of graph.yaml: leave it out"
        )
    form = _one_of(report_format, ("text", "json", "markdown"), "--report-format")
    request = ConvertRequest(
        tuple(paths), output, out_dir, in_place, options, hf_config, tuple(sets or ()), report, form, diff, check,
        dry_run, back, modeline,
    )  # fmt: skip
    raise typer.Exit(run_convert(request))


@app.command("lint")
def lint_command(
    paths: Annotated[list[str], typer.Argument(metavar="PATH…", help="Pynative files.")],
    output_format: Annotated[str, typer.Option("--format", help="text or json.")] = "text",
    target: Annotated[str, typer.Option(help="MindFormers release that reads the files: 2.0 or 2.1.")] = "2.0",
    world: Annotated[int | None, typer.Option(min=1, help="Ranks of the run; degrees and batch must fit.")] = None,
    expert_mesh: Mesh = "product",
    debug: Debug = False,
) -> None:
    """Check pynative files: names, types, bounds and choices of keys, and what the readers check at start-up."""
    from msmigrate.commands import run_lint
    from msmigrate.options import ExpertMesh, Target
    from msmigrate.pynative.start_up import Setting

    setting = Setting(_choice(Target, target, "--target"), world, _choice(ExpertMesh, expert_mesh, "--expert-mesh"))
    raise typer.Exit(run_lint(paths, _one_of(output_format, ("text", "json"), "--format"), setting))


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


def _within(count: int | None, option: str) -> int | None:
    """A count from the command line, held to the bound that counts in a file have."""
    from msmigrate.mapping.graph_file import LARGEST
    from msmigrate.wording import shown

    if count is not None and count > LARGEST:
        raise UsageError(f"{option} {shown(count)}: expected a whole number up to {LARGEST}")
    return count


def _choice(kind: Any, text: str, option: str) -> Any:
    return kind(_one_of(text, tuple(member.value for member in kind), option))


def _one_of(text: str, choices: tuple[str, ...], option: str) -> str:
    if text not in choices:
        raise UsageError(f"{option} {text}: expected one of {', '.join(choices)}")
    return text
