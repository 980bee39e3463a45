"""Pipeline stages and split sequences of a pynative.yaml as graph mode has them, and how graph mode cuts the layers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from msmigrate.mapping.back.context import Back, BackContext
from msmigrate.mapping.layers import Stages, cut, first_of_each
from msmigrate.mapping.outcome import Effect, Outcome, dropped, written
from msmigrate.yaml.scalars import Value

_STAGES, _CONTEXT = "parallelism.pipeline_parallel", "parallelism.context_parallel"
_METHOD = "parallelism.context_parallel_method"
_ALGORITHMS = {"colossal": "colossalai_cp", "ulysses": "ulysses_cp"}
"""Graph mode's names of the ways to attend over split sequences."""


def stage(context: BackContext) -> Outcome:
    """parallel_config.pipeline_stage."""
    count = context.integer(_STAGES)
    why = "one stage holds all layers" if count == 1 else "as pipeline_parallel"
    return written(context.fate(_STAGES), "parallel_config.pipeline_stage", count, why)


def context_parallel(context: BackContext) -> Outcome | None:
    """parallel_config.context_parallel, which graph mode takes as 1 when it is left out."""
    degree = context.integer(_CONTEXT)
    if degree == 1:
        return dropped("1: sequences are not split, as in graph mode by default") if context.given(_CONTEXT) else None
    return context.bring("parallel_config.context_parallel", _CONTEXT)


def context_algorithm(context: BackContext) -> Outcome | None:
    """parallel_config.context_parallel_algo, where the sequences are split by a method that graph mode has."""
    if not context.given(_METHOD):
        return None
    method, target = context.text(_METHOD), "parallel_config.context_parallel_algo"
    if context.integer(_CONTEXT) == 1:
        return dropped("sequences are not split")
    if method not in _ALGORITHMS:
        why = f"graph mode takes its default, colossalai_cp: {method} is not known there, and the numbers are the same"
        return dropped(why, Effect.SPEED)
    return written(context.fate(_METHOD), target, _ALGORITHMS[method], "graph mode's name for it")


def ulysses_degree(context: BackContext) -> Outcome | None:
    """parallel_config.ulysses_degree_in_cp, where sequences are split."""
    key = "parallelism.ulysses_degree_in_cp"
    if not context.given(key):
        return None
    if context.integer(_CONTEXT) == 1 or context.value(key) is None:
        return dropped("sequences are not split" if context.value(key) is not None else "null, as if it were absent")
    return context.bring("parallel_config.ulysses_degree_in_cp", key)


TURNED_BACK: Mapping[str, Back] = {
    "context_parallel": context_parallel,
    "context_parallel_method": context_algorithm,
    "ulysses_degree_in_cp": ulysses_degree,
    "pipeline_parallel": stage,
}
"""What the keys of parallelism become that no graph key becomes."""


@dataclass(frozen=True, slots=True)
class Spread:
    """The decoder over two stages or more: `offset` is graph mode's, 0 where the stages hold equally many layers."""

    stages: Stages
    offset: Value
    extra: int
    """Layers of multi-token prediction, which stand behind the last stage."""

    def counts(self, ids: Sequence[int]) -> list[int]:
        """How many of the layers each stage has."""
        row = self.stages.layers[0]
        firsts = [self.stages.first_layer(0, number) for number in range(len(row))]
        ends = [*firsts[1:], sum(row) + self.extra]
        return [sum(first <= one < end for one in ids) for first, end in zip(firsts, ends, strict=True)]

    def are_first(self, ids: Sequence[int]) -> bool:
        """Whether the layers are the first ones of their stages, which is all that counts can say."""
        return first_of_each(self.stages, [self.counts(ids)], self.extra) == sorted(ids)


def spread(layers: int, extra: int, count: int) -> Spread | str:
    """The layers over `count` stages, the later ones with one more where they do not divide; or why they cannot be."""
    rest = layers % count
    offset: Value = [int(number >= count - rest) for number in range(count)] if rest else 0
    stages = cut(layers, count, 1, offset)
    return stages if isinstance(stages, str) else Spread(stages, offset, extra)
