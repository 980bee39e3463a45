"""Text continued by the model of a checkpoint or Hugging Face folder, handed out as it comes."""

from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

import numpy as np

from msmigrate.problems import UsageError, UserError
from msrt.exchange.source import open_source
from msrt.inference.generate import continued
from msrt.inference.length import note_length
from msrt.inference.sampling import Sampler
from msrt.inference.text import ByteText, Text, text_of
from msrt.ops.autograd import Array
from msrt.train.memory import shortage_told


def continue_text(
    path: Path, prompt: str, *, tokens: int, sampler: Sampler, note: Callable[[str], None]
) -> Iterator[str]:
    """Pieces of the text behind `prompt`, up to `tokens` tokens or to one that ends the text.

    `note` takes a sentence when text is read as bytes, and when it is longer than those the model is made for.
    Raises UserError and UnreadableError for models, weights, tokenizers and prompts that cannot be used.
    """
    source = open_source(path, note=note)
    text = text_of(source.hf_files, source.config.vocab_size, path)
    given = text.encode(prompt)
    _check_length(len(given), tokens, source.config.max_sequence)
    note_length(source.config, len(given) + tokens, "--prompt and --tokens", note)
    if isinstance(text, ByteText):
        note("There is no tokenizer.json: every byte of the text is a token.")
    return _pieces(source.load(), text, given, tokens, sampler)


def _pieces(model: object, text: Text, prompt: list[int], tokens: int, sampler: Sampler) -> Iterator[str]:
    def choose(scores: Array) -> int:
        # Rows of the vocabulary behind the last token stand for no text.
        usable = scores[: text.size]
        wrong = int(np.count_nonzero(~np.isfinite(usable)))
        if wrong:
            raise UserError(
                f"{wrong:,} of the {usable.size:,} scores of the next token are not finite (NaN or infinite): no token "
                "can be chosen. Look at the weights, or at rms_norm_eps and the rotary settings of the model."
            )
        return sampler(usable)

    with shortage_told(f"a prompt of {len(prompt)} tokens", "Give a shorter --prompt, or lower --tokens."):
        for token in islice(continued(model, prompt, choose), tokens):
            if token in text.ends:
                break
            yield text.put(token)
        yield text.rest()


def _check_length(prompt: int, tokens: int, longest: int | None) -> None:
    if prompt == 0:
        raise UsageError("--prompt is empty; give at least one character to continue.")
    if longest is not None and prompt + tokens > longest:
        room = longest - prompt
        advice = f"lower --tokens to {room}" if room > 0 else "give a shorter --prompt"
        raise UserError(
            f"The prompt has {prompt} tokens and --tokens asks for {tokens}: together {prompt + tokens}, more than the "
            f"model's {longest} (model.seq_length); {advice}."
        )
