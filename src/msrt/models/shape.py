"""The sizes of a model under their Hugging Face names: read with their types, and what must hold between them."""

import dataclasses
import math
import sys
import types
import typing
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Self

from msmigrate.problems import UserError
from msmigrate.pynative.families import FAMILY_DEFAULTS
from msmigrate.pynative.keys import specs_of
from msmigrate.pynative.model import Model
from msrt.config.problem import shown
from msrt.models.config import Sizes

LARGEST = 2**31 - 1
"""The largest size: numbers of rows and columns are 32-bit integers where they are computed with."""

MOST_LAYERS = 10_000
"""Layers are listed one by one."""


@dataclass(frozen=True, kw_only=True)
class Shape:
    """What every family has; a family adds its own."""

    vocab_size: int
    hidden_size: int
    intermediate_size: int
    num_hidden_layers: int
    num_attention_heads: int
    max_position_embeddings: int
    rope_theta: float
    rms_norm_eps: float
    hidden_act: str
    tie_word_embeddings: bool
    initializer_range: float

    @classmethod
    def of(cls, model_type: str, values: Mapping[str, object]) -> Self:
        """The shape with the given `values`, others at the family's defaults; keys that are no sizes are left alone.

        Raises UserError with every value of a wrong type and every broken relation.
        """
        hints = typing.get_type_hints(cls)
        known = {**_defaults(model_type), **values}
        given = {field.name: known[field.name] for field in dataclasses.fields(cls) if field.name in known}
        problems = [
            f"model.{name} is {shown(value)}; it must be {_spelled(hints[name])}."
            for name, value in given.items()
            if not _fits(value, hints[name])
        ]
        if not problems:
            shape = cls(**given)  # type: ignore[arg-type]  # _fits has checked the types
            problems = list(shape.beyond_bounds()) or list(shape.problems())
        if problems:
            raise UserError("\n".join(problems))
        return shape

    def sizes(self) -> Sizes:
        """The values that the config of any family has from its shape."""
        return Sizes(
            vocab_size=self.vocab_size, hidden_size=self.hidden_size, intermediate_size=self.intermediate_size,
            num_hidden_layers=self.num_hidden_layers, rms_norm_eps=self.rms_norm_eps,
            tie_word_embeddings=self.tie_word_embeddings, initializer_range=self.initializer_range,
        )  # fmt: skip

    def beyond_bounds(self) -> Iterator[str]:
        """One sentence for each number that is not finite, below the least that its key takes, or beyond measure."""
        specs, hints = specs_of(Model), typing.get_type_hints(type(self))
        for field in dataclasses.fields(self):
            value, spec = getattr(self, field.name), specs.get(field.name)
            if isinstance(value, bool) or not isinstance(value, int | float):
                continue
            most: float = MOST_LAYERS if field.name == "num_hidden_layers" else LARGEST
            if hints[field.name] is float:
                most = sys.float_info.max
            least = spec.key.minimum if spec is not None and hints[field.name] is float else None
            if isinstance(value, float) and not math.isfinite(value):
                yield f"model.{field.name} is {value}; it must be a finite number."
            elif value > most:
                yield f"model.{field.name} is {_short(value)}; it must be at most {_short(most)}."
            elif least is not None and value < least:
                yield f"model.{field.name} is {value}; it must be at least {least:g}."

    def problems(self) -> Iterator[str]:
        """One sentence for each relation that does not hold."""
        yield from self.too_small(
            1, "vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads",
            "max_position_embeddings",
        )  # fmt: skip
        if self.hidden_act not in ("silu", "swiglu", "fusedswiglu"):
            yield f"model.hidden_act is {shown(self.hidden_act)}; the MLPs of msrt's families know silu only."

    def too_small(self, least: int, *names: str) -> Iterator[str]:
        """One sentence for each of the sizes `names` that is below `least`; null is no size."""
        for name in names:
            value = getattr(self, name)
            if value is not None and value < least:
                yield f"model.{name} is {value}; it must be at least {least}."


def _defaults(model_type: str) -> dict[str, object]:
    """The family's defaults by the names of the model section, whichever alias the family spells them with."""
    canonical = {alias: name for name, spec in specs_of(Model).items() for alias in spec.key.aliases}
    return {canonical.get(name, name): value for name, value in FAMILY_DEFAULTS[model_type].items()}


def _short(value: float) -> str:
    """A number of a message's length; Python writes out no integer of thousands of digits."""
    if isinstance(value, float):
        return f"{value:g}"
    return f"{value:,}" if value < 10**30 else f"an integer of about {int(math.log10(value))} digits"


def _fits(value: object, annotation: object) -> bool:
    if isinstance(annotation, types.UnionType):
        return any(_fits(value, part) for part in annotation.__args__)
    if isinstance(value, bool):
        return annotation is bool
    if annotation is float:
        return isinstance(value, int | float)
    return isinstance(annotation, type) and isinstance(value, annotation)


_KINDS: Mapping[object, str] = {
    int: "an integer", float: "a number", str: "a text", bool: "true or false", types.NoneType: "null",
}  # fmt: skip


def _spelled(annotation: object) -> str:
    if isinstance(annotation, types.UnionType):
        return " or ".join(_spelled(part) for part in annotation.__args__)
    return _KINDS[annotation]
