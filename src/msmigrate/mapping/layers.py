"""Layer ids from graph mode's per-stage counts, and layer ids as the ranges that pynative files write."""

from collections.abc import Sequence
from dataclasses import dataclass

from msmigrate.wording import counted, shown
from msmigrate.yaml.scalars import Value

MOST_LAYERS = 100_000
"""Far past any model: a bound against typing errors."""


@dataclass(frozen=True, slots=True)
class Stages:
    """How graph mode cuts the decoder: `layers` of each (interleave chunk, stage), chunks outermost, in layer order."""

    layers: tuple[tuple[int, ...], ...]

    @property
    def pipeline_stage(self) -> int:
        return len(self.layers[0])

    def first_layer(self, chunk: int, stage: int) -> int:
        """Id of the first layer of a part."""
        before = sum(sum(row) for row in self.layers[:chunk])
        return before + sum(self.layers[chunk][:stage])


def cut(num_layers: int, pipeline_stage: int, interleave: int, offset: Value) -> Stages | str:
    """The parts of the decoder, or a sentence on why the numbers do not fit.

    Each part has num_layers // (pipeline_stage × interleave) layers plus its offset; `offset` is 0, one number per
    stage, or one list per interleave chunk.
    """
    parts = pipeline_stage * interleave
    if parts > num_layers:
        have = f"{counted(parts, 'part')} (stages × interleave chunks)"
        return f"{have} for {counted(num_layers, 'layer')}: a part would have none"
    table = per_stage(offset if offset != 0 else [0] * pipeline_stage, pipeline_stage, interleave, "`offset`")
    if isinstance(table, str):
        return table
    base = num_layers // parts
    layers = tuple(tuple(base + extra for extra in row) for row in table)
    total = sum(sum(row) for row in layers)
    least = min(min(row) for row in layers)
    held = f"{counted(parts, 'part')} of {counted(base, 'layer')} plus the offsets"
    if least < 0:
        return f"{held} leave one part with {least} layers"
    if total != num_layers:
        return f"{held} hold {counted(total, 'layer')}, the model has {num_layers}"
    return Stages(layers)


def per_stage(value: Value, pipeline_stage: int, interleave: int, subject: str) -> list[list[int]] | str:
    """A per-stage list as a table [chunk][stage], or a sentence about `subject` on why its shape does not fit."""
    rows = value if isinstance(value, list) and value and all(isinstance(row, list) for row in value) else [value]
    if len(rows) == 1 and interleave > 1 and isinstance(rows[0], list) and not any(rows[0]):
        rows = rows * interleave
    table: list[list[int]] = []
    for row in rows:
        numbers = (
            [item for item in row if isinstance(item, int) and not isinstance(item, bool)]
            if isinstance(row, list)
            else []
        )
        if not isinstance(row, list) or len(numbers) != len(row):
            return f"{subject} is {shown(value)}; expected a list of whole numbers, one for each pipeline stage"
        if len(row) != pipeline_stage:
            stages = f"{counted(pipeline_stage, 'pipeline stage')} it needs {pipeline_stage}"
            return f"{subject} {shown(row)} holds {counted(len(row), 'number')}; with {stages}"
        table.append(numbers)
    if len(table) != interleave:
        return f"{subject} {shown(value)} holds {counted(len(table), 'list')}; pp_interleave_num is {interleave}"
    return table


def first_of_each(stages: Stages, counts: Sequence[Sequence[int]], extra: int = 0) -> list[int]:
    """Ids of the first `counts[chunk][stage]` layers of every part, ascending; a count past a part takes it whole.

    `extra` layers, those of multi-token prediction, stand behind the last part.
    """
    ids: list[int] = []
    for chunk, row in enumerate(counts):
        for stage, count in enumerate(row):
            first = stages.first_layer(chunk, stage)
            last_part = chunk == len(counts) - 1 and stage == len(row) - 1
            held = stages.layers[chunk][stage] + (extra if last_part else 0)
            ids.extend(range(first, first + min(count, held)))
    return ids


def ranges(ids: Sequence[int]) -> list[Value]:
    """Ascending ids as a layer list: 0, 1, 2, 5 becomes ["0-2", 5]."""
    found: list[tuple[int, int]] = []
    for number in ids:
        if found and found[-1][1] == number - 1:
            found[-1] = (found[-1][0], number)
        else:
            found.append((number, number))
    return [low if low == high else f"{low}-{high}" for low, high in found]


@dataclass(frozen=True, slots=True)
class Chunks:
    """One pipeline stage cut into interleave chunks, so that given sets of layers are the first layers of chunks.

    `starts` are the first layers of the chunks. The last chunk has the layers of multi-token prediction behind it.
    """

    starts: tuple[int, ...]

    def offset(self, num_layers: int) -> list[Value]:
        """graph mode's `offset` for these chunks, with num_layers decoder layers."""
        base = num_layers // len(self.starts)
        ends = (*self.starts[1:], num_layers)
        return [[end - start - base] for start, end in zip(self.starts, ends, strict=True)]

    def counts(self, ids: Sequence[int]) -> list[Value]:
        """The layers of one set as graph mode's counts: one number for one chunk, else a list per chunk."""
        chosen = set(ids)
        found: list[Value] = []
        for place, start in enumerate(self.starts):
            end = self.starts[place + 1] if place + 1 < len(self.starts) else max(chosen, default=0) + 1
            count = next((number for number, one in enumerate(range(start, end)) if one not in chosen), end - start)
            found.append([max(count, 0)])
        return [found[0][0]] if len(found) == 1 and isinstance(found[0], list) else found


def chunks_of(*sets: Sequence[int]) -> Chunks:
    """The fewest chunks in which each set of layers is made of first layers: a chunk for the start of every run."""
    starts = {0}
    for ids in sets:
        held = set(ids)
        starts |= {one for one in held if one - 1 not in held}
    return Chunks(tuple(sorted(starts)))


def ids_of(parts: Sequence[object]) -> list[int]:
    """The ids of a checked layer list: 0, "2-3" becomes 0, 2, 3."""
    return [one for part in parts for one in range(_ends(part)[0], _ends(part)[1] + 1)]


def highest_id(parts: Sequence[object]) -> int:
    """The last id of a checked, ascending layer list; -1 for an empty one."""
    return _ends(parts[-1])[1] if parts else -1


def _ends(part: object) -> tuple[int, int]:
    low, _, high = str(part).strip().partition("-")
    return int(low), int(high or low)
