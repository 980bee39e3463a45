"""Rules of ranks and batch: the degrees against the number of ranks, the batch against the data-parallel ranks.

MindFormers 2.x splits the ranks as `nested`: data-parallel ranks = world / (tensor · pipeline · context), and
expert_parallel divides data_parallel_shard · context · tensor. The manual's section 11.4 multiplies expert_parallel
in as well (`product`).
"""

from collections.abc import Iterator
from dataclasses import dataclass

from msmigrate.findings import Severity
from msmigrate.options import ExpertMesh, Target
from msmigrate.pynative.start_up.rule import Facts, Problem, Rule, divisors
from msmigrate.wording import counted

SECTION = "parallelism."
TENSOR, EXPERT, SHARD = SECTION + "tensor_parallel", SECTION + "expert_parallel", SECTION + "data_parallel_shard"
DEGREES = (TENSOR, EXPERT, SECTION + "pipeline_parallel", SECTION + "context_parallel")
GLOBAL, LOCAL = "training.global_batch_size", "training.local_batch_size"
READINGS = {
    ExpertMesh.PRODUCT: "the manual's product (section 11.4)",
    ExpertMesh.NESTED: "the nested mesh of MindFormers 2.x",
}


@dataclass(frozen=True, slots=True)
class Split:
    """How a number of ranks is split under one reading; `data` is 0 when the degrees need more ranks."""

    world: int
    unit: int
    """Ranks of one data-parallel rank: the product of the other degrees."""
    degrees: str
    """That product for a message: `tensor_parallel 2 × expert_parallel 4`."""

    @property
    def data(self) -> int:
        return self.world // self.unit

    @property
    def fits(self) -> bool:
        return self.world % self.unit == 0


def split(facts: Facts, mesh: ExpertMesh) -> Split:
    """The ranks of the setting under a reading; the number of ranks must be known."""
    assert facts.setting.world is not None
    here = facts.config.parallelism
    factors = {"tensor_parallel": here.tensor_parallel}
    if mesh is ExpertMesh.PRODUCT and here.expert_parallel > 1:
        factors["expert_parallel"] = here.expert_parallel
    more = {"pipeline_parallel": here.pipeline_parallel, "context_parallel": here.context_parallel}
    factors |= {name: degree for name, degree in more.items() if degree > 1}
    unit = 1
    for degree in factors.values():
        unit *= degree
    return Split(facts.setting.world, unit, " × ".join(f"{name} {degree}" for name, degree in factors.items()))


def _degrees(facts: Facts) -> Iterator[Problem]:
    found = split(facts, facts.setting.mesh)
    if found.fits:
        return
    product = found.degrees + (f" = {found.unit}" if "×" in found.degrees else "")
    key = TENSOR if facts.config.parallelism.tensor_parallel > 1 else EXPERT
    reading = f", by {READINGS[facts.setting.mesh]}" if facts.config.parallelism.expert_parallel > 1 else ""
    verb = "is" if found.world == 1 else "are"
    message = f"{counted(found.world, 'rank')} {verb} no multiple of {product}{reading}"
    below = found.data * found.unit
    advice = f"nearest numbers of ranks: {f'{below} and ' if below else ''}{below + found.unit}"
    yield Problem((key, *DEGREES), message, f"{advice}; products that fit: {divisors(found.world)}")


def _shard_zero(facts: Facts) -> Iterator[Problem]:
    if facts.config.parallelism.data_parallel_shard == 0:
        message = "data_parallel_shard is 0: the readers divide by it and stop"
        yield Problem((SHARD,), message, "write -1 for all data-parallel ranks")


def _shard(facts: Facts) -> Iterator[Problem]:
    found, wanted = split(facts, facts.setting.mesh), facts.config.parallelism.data_parallel_shard
    if not found.fits or wanted < 1 or found.data % wanted == 0:
        return
    used = _used_shard(found.data, wanted)
    message = (
        f"data_parallel_shard {wanted} does not divide data_parallel {found.data} "
        f"({counted(found.world, 'rank')} / {found.degrees}): the readers shard over {used}"
    )
    advice = f"legal values: -1, {divisors(found.data)}"
    yield Problem((SHARD, *DEGREES), message, advice, Severity.WARNING)


def _used_shard(data: int, wanted: int) -> int:
    """What the readers make of a shard degree: whole replicas first, then the ranks of each."""
    return data if wanted < 1 else data // max(data // wanted, 1)


def _expert(facts: Facts) -> Iterator[Problem]:
    """In the nested mesh expert_parallel lives inside one replica."""
    found, here = split(facts, ExpertMesh.NESTED), facts.config.parallelism
    if facts.setting.mesh is not ExpertMesh.NESTED or not found.fits:
        return
    shard = _used_shard(found.data, here.data_parallel_shard)
    room = shard * here.context_parallel * here.tensor_parallel
    if room % here.expert_parallel:
        message = (
            f"expert_parallel {here.expert_parallel} does not divide data_parallel_shard {shard} × context_parallel "
            f"{here.context_parallel} × tensor_parallel {here.tensor_parallel} = {room}"
        )
        yield Problem((EXPERT, SHARD, *DEGREES), message, f"legal values: {divisors(room)}")


def _batch(facts: Facts) -> Iterator[Problem]:
    found, training = split(facts, facts.setting.mesh), facts.config.training
    total, unit = training.global_batch_size, training.local_batch_size * found.data
    if not found.fits or total % training.local_batch_size or total % unit == 0:
        return
    factors = (
        f"local_batch_size {training.local_batch_size} × data_parallel {found.data} "
        f"({counted(found.world, 'rank')} / {found.degrees}) = {unit}"
    )
    keys = (GLOBAL, LOCAL, *DEGREES)
    if total < unit:
        yield Problem(keys, f"global_batch_size {total} is below {factors}", f"smallest legal value: {unit}")
        return
    below = total // unit * unit
    stops = facts.setting.target is not Target.V2_0
    yield Problem(
        keys,
        f"global_batch_size {total} is not a multiple of {factors}"
        + ("" if stops else f"; MindFormers 2.0 trains {counted(below, 'sample')} a step and says nothing"),
        f"nearest legal values: {below} and {below + unit}",
        Severity.ERROR if stops else Severity.WARNING,
    )


def _batch_on_no_ranks(facts: Facts) -> Iterator[Problem]:
    """What needs no number of ranks: a global batch that is no multiple of the local one."""
    total, local = facts.config.training.global_batch_size, facts.config.training.local_batch_size
    if total % local == 0:
        return
    below = total // local * local
    stops = facts.setting.target is not Target.V2_0 or total < local
    yield Problem(
        (GLOBAL, LOCAL),
        f"global_batch_size {total} is not a multiple of local_batch_size {local}: it fits no number of ranks",
        f"nearest legal values: {f'{below} and ' if below else ''}{below + local}",
        Severity.ERROR if stops else Severity.WARNING,
    )


def _readings(facts: Facts) -> Iterator[Problem]:
    """Both readings with their numbers where they differ."""
    expert = facts.config.parallelism.expert_parallel
    if expert == 1:
        return
    shown = "; ".join(f"{_numbers(facts, mesh)} by {name}" for mesh, name in READINGS.items())
    message = f"expert_parallel {expert} has two readings: {shown}"
    yield Problem((EXPERT, GLOBAL, LOCAL, *DEGREES), message, "--expert-mesh chooses one", Severity.NOTE)


def _numbers(facts: Facts, mesh: ExpertMesh) -> str:
    found, training = split(facts, mesh), facts.config.training
    if not found.fits:
        return f"{counted(found.world, 'rank')} {'does' if found.world == 1 else 'do'} not fit {found.degrees}"
    steps, rest = divmod(training.global_batch_size, training.local_batch_size * found.data)
    passes = (
        counted(steps, "accumulation step")
        if rest == 0
        else f"no whole number of accumulation steps ({steps}, {rest} over)"
    )
    return f"data_parallel {found.data} and {passes}"


RULES = (
    Rule("P050", "degrees-against-ranks", _degrees, needs_world=True),
    Rule("P051", "shard-of-nothing", _shard_zero),
    Rule("P052", "shard-rounded", _shard, needs_world=True),
    Rule("P053", "expert-degree", _expert, needs_world=True),
    Rule("P054", "global-batch", _batch, needs_world=True),
    Rule("P055", "global-batch-fits-no-ranks", _batch_on_no_ranks, untrained=True),
    Rule("P056", "two-readings", _readings, needs_world=True),
)
