"""How many ways the ranks of a run are split: the arithmetic of the manual's section 11.4, and of MindFormers 2.x."""

from dataclasses import dataclass

from msmigrate.options import ExpertMesh
from msmigrate.pynative.sections import Parallelism
from msrt.config.problem import Problem

TENSOR = "parallelism.tensor_parallel"
EXPERT = "parallelism.expert_parallel"
SHARD = "parallelism.data_parallel_shard"


@dataclass(frozen=True, slots=True)
class Degrees:
    """The split of `world` ranks; `shard` × `replicate` = `data`."""

    world: int
    mesh: ExpertMesh
    tensor: int
    expert: int
    data: int
    shard: int
    replicate: int

    @property
    def equation(self) -> str:
        """Where `data` comes from, for messages: `8 ranks / tensor_parallel 2`."""
        divisors = f"tensor_parallel {self.tensor}"
        if self.expert > 1 and self.mesh is ExpertMesh.PRODUCT:
            divisors += f" / expert_parallel {self.expert}"
        return f"{ranks(self.world)} / {divisors}"


def split(parallelism: Parallelism, world: int, mesh: ExpertMesh) -> tuple[Degrees | None, list[Problem]]:
    """The degrees of `world` ranks (None when the ranks cannot be divided at all) and every rule they violate.

    `data_parallel_shard` -1 stands for all data-parallel ranks.
    """
    tensor, expert = parallelism.tensor_parallel, parallelism.expert_parallel
    problems = _world_problems(tensor, expert, world, mesh)
    if problems:
        return None, problems
    data = world // _unit(tensor, expert, mesh)
    shard = data if parallelism.data_parallel_shard == -1 else parallelism.data_parallel_shard
    if shard < 1 or data % shard:
        legal = ", ".join(str(value) for value in divisors(data))
        message = (
            f"data_parallel_shard {shard} does not divide data_parallel {data} "
            f"({Degrees(world, mesh, tensor, expert, data, data, 1).equation}); legal values: -1, {legal}."
        )
        return Degrees(world, mesh, tensor, expert, data, data, 1), [Problem(SHARD, message)]
    degrees = Degrees(world, mesh, tensor, expert, data, shard, data // shard)
    return degrees, _nested_expert_problems(degrees)


def ranks(count: int) -> str:
    """`1 rank`, `8 ranks`."""
    return f"{count} rank" if count == 1 else f"{count} ranks"


def divisors(number: int) -> list[int]:
    """The positive divisors, ascending."""
    return [value for value in range(1, number + 1) if number % value == 0]


def _unit(tensor: int, expert: int, mesh: ExpertMesh) -> int:
    return tensor * expert if mesh is ExpertMesh.PRODUCT else tensor


def _world_problems(tensor: int, expert: int, world: int, mesh: ExpertMesh) -> list[Problem]:
    degrees = {TENSOR: tensor, EXPERT: expert}
    below_one = [Problem(key, f"is {value}; it must be at least 1.") for key, value in degrees.items() if value < 1]
    if below_one:
        return below_one
    unit = _unit(tensor, expert, mesh)
    if world % unit == 0:
        return []
    name = f"tensor_parallel {tensor}"
    if unit != tensor:
        name += f" × expert_parallel {expert} = {unit}"
    key = TENSOR if tensor > 1 else EXPERT
    if unit > world:
        lower = " and ".join(f"{path}: 1" for path, degree in degrees.items() if degree > 1)
        message = (
            f"{name} needs at least {unit} ranks; this run has {world}. Several ranks are not there yet; set {lower}."
        )
        return [Problem(key, message)]
    legal = ", ".join(str(value) for value in divisors(world))
    message = (
        f"{ranks(world)} cannot be divided by {name}; nearest numbers of ranks: {world // unit * unit} and "
        f"{(world // unit + 1) * unit}, or choose degrees whose product divides {world}: {legal}."
    )
    return [Problem(key, message)]


def _nested_expert_problems(degrees: Degrees) -> list[Problem]:
    room = degrees.shard * degrees.tensor
    if degrees.mesh is ExpertMesh.PRODUCT or room % degrees.expert == 0:
        return []
    legal = ", ".join(str(value) for value in divisors(room))
    message = (
        f"expert_parallel {degrees.expert} does not divide data_parallel_shard {degrees.shard} × tensor_parallel "
        f"{degrees.tensor} = {room} (--expert-mesh nested); legal values: {legal}."
    )
    return [Problem(EXPERT, message)]
