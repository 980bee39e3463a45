"""The commands on weights: import, export, generate, probe. MindSpore and numpy are imported inside them."""

from pathlib import Path
from typing import Annotated

import typer

from msmigrate.interrupts import raise_on_interrupt
from msmigrate.problems import UserError
from msmigrate.streams import print_result
from msrt.command_line import Debug, note, prepare_for_models, reporting, shown, utf8
from msrt.streams import result, still_read

weights = typer.Typer()
"""These commands; `commands.app` takes them in."""

_CHECKPOINT = "A checkpoint's root, or one of its iteration folders."
_EITHER = "A checkpoint, or a Hugging Face folder."
_MODEL_OF_CONFIG = "Compute its model, with MindFormers' arithmetic."


@weights.command("import")
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
    with reporting(debug):
        prepare_for_models()
        from msrt.exchange.import_hf import import_hf_folder

        raise_on_interrupt()
        count = import_hf_folder(folder, target, config, note)
        result(f"{count} parameters\n{shown(target)}")


@weights.command("export")
def export_weights(
    checkpoint: Annotated[Path, typer.Argument(metavar="CHECKPOINT", help=_CHECKPOINT)],
    target: Annotated[Path, typer.Option("-o", metavar="HF_DIR", help="A new folder, or an empty one.")],
    debug: Debug = False,
) -> None:
    """Make a Hugging Face folder out of a checkpoint.

    Example: msrt export checkpoints/start -o hf/start
    """
    with reporting(debug):
        prepare_for_models()
        from msrt.exchange.export_hf import export_hf_folder

        raise_on_interrupt()
        result("\n".join(map(shown, export_hf_folder(checkpoint, target, note))))


@weights.command()
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
    with reporting(debug):
        prepare_for_models()
        from msrt.inference.continue_text import continue_text
        from msrt.inference.sampling import Sampler

        raise_on_interrupt()
        sampler = Sampler(temperature, top_p, seed)
        for piece in continue_text(model, utf8("--prompt", prompt), tokens=tokens, sampler=sampler, note=note):
            print_result(piece.encode())
            if not still_read():
                return
        result("")


@weights.command()
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
    with reporting(debug):
        if workers > 1:
            raise UserError(f"--workers is {workers}; probe runs on one rank: leave it out.")
        prepare_for_models()
        from msrt.exchange.source import open_source
        from msrt.inference.length import note_length
        from msrt.inference.output import refuse_what_is_read, write_output
        from msrt.inference.probe import not_finite, read_input
        from msrt.inference.probe import probe as ask

        raise_on_interrupt()
        refuse_what_is_read(target, given, config, model)
        tokens = read_input(given)
        source = open_source(model, config, note)
        note_length(source.config, tokens.input_ids.shape[1], "the input", note)
        answers = ask(source.load(), tokens, hidden=hidden, grads=grads)
        write_output(target, answers)
        for sentence in not_finite(answers):
            note(sentence)
        result(f"{len(answers)} tensors\n{shown(target)}")
