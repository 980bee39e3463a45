"""A config and a number of ranks, turned into the numbers of a run: degrees, accumulation, steps, warm-up, tokens."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from msmigrate.options import ExpertMesh
from msmigrate.pynative import Config
from msrt.config.degrees import EXPERT, TENSOR, Degrees, divisors, split
from msrt.config.problem import Place, Problem, refuse
from msrt.config.schedule import schedule_problems, warmup_steps

GLOBAL_BATCH = "training.global_batch_size"


@dataclass(frozen=True, slots=True)
class Resolved:
    """The derived numbers of a run, under the names that `msrt plan --json` and run.json use.

    `tokens_per_step` counts all ranks; `gradient_accumulation_steps` is micro-batches per rank and optimizer step.
    """

    world_size: int
    tensor_parallel: int
    expert_parallel: int
    data_parallel: int
    data_parallel_shard: int
    data_parallel_replicate: int
    expert_mesh: str
    gradient_accumulation_steps: int
    local_batch_size: int
    global_batch_size: int
    seq_length: int
    tokens_per_step: int
    steps: int
    warmup_steps: int


def resolve(
    config: Config,
    world: int,
    mesh: ExpertMesh = ExpertMesh.PRODUCT,
    *,
    name: str = "config",
    given: Mapping[str, Place] | None = None,
) -> Resolved:
    """The numbers of a run of `config` on `world` ranks.

    Raises `UserError` with every violated rule at once: degrees against ranks, shard degree, batch sizes, heads and
    experts against degrees, warm-up and schedule. `name` and `given` place the messages in the file.
    """
    resolved, problems = try_resolve(config, world, mesh)
    refuse(problems, name, given or {})
    assert resolved is not None
    return resolved


def try_resolve(config: Config, world: int, mesh: ExpertMesh) -> tuple[Resolved | None, list[Problem]]:
    """The numbers of a run and every violated rule; the numbers are None exactly when a rule is violated."""
    degrees, problems = split(config.parallelism, world, mesh)
    if degrees is not None:
        problems += _batch_problems(config, degrees)
    problems += _model_problems(config)
    problems += _sequence_problems(config)
    problems += _update_problems(config)
    problems += schedule_problems(config.lr_scheduler, config.training.steps)
    if problems or degrees is None:
        return None, problems
    return _resolved(config, degrees), []


def _resolved(config: Config, degrees: Degrees) -> Resolved:
    training, seq_length = config.training, config.train_dataset.dataloader.config.seq_length
    return Resolved(
        world_size=degrees.world,
        tensor_parallel=degrees.tensor,
        expert_parallel=degrees.expert,
        data_parallel=degrees.data,
        data_parallel_shard=degrees.shard,
        data_parallel_replicate=degrees.replicate,
        expert_mesh=degrees.mesh.value,
        gradient_accumulation_steps=training.global_batch_size // (training.local_batch_size * degrees.data),
        local_batch_size=training.local_batch_size,
        global_batch_size=training.global_batch_size,
        seq_length=seq_length,
        tokens_per_step=training.global_batch_size * seq_length,
        steps=training.steps,
        warmup_steps=warmup_steps(config.lr_scheduler, training.steps),
    )


def _batch_problems(config: Config, degrees: Degrees) -> list[Problem]:
    local, total = config.training.local_batch_size, config.training.global_batch_size
    unit = local * degrees.data
    factors = f"local_batch_size {local} × data_parallel {degrees.data} ({degrees.equation})"
    if total < unit:
        message = f"global_batch_size {total} is below {factors}; smallest legal value: {unit}."
        return [Problem(GLOBAL_BATCH, message)]
    if total % unit:
        below = total // unit * unit
        message = (
            f"global_batch_size {total} is not a multiple of {factors} = {unit}; "
            f"nearest legal values: {below} and {below + unit}."
        )
        return [Problem(GLOBAL_BATCH, message)]
    return []


def _model_problems(config: Config) -> list[Problem]:
    model, parallelism = config.model, config.parallelism
    shares = (
        (TENSOR, parallelism.tensor_parallel, model.num_attention_heads, "model.num_attention_heads"),
        (EXPERT, parallelism.expert_parallel, model.n_routed_experts, "model.n_routed_experts"),
    )
    return [
        Problem(
            key,
            f"{key.rpartition('.')[2]} {degree} does not divide {counted} {count}; "
            f"legal values: {', '.join(str(value) for value in divisors(count))}.",
        )
        for key, degree, count, counted in shares
        if count is not None and count % degree
    ]


def _update_problems(config: Config) -> list[Problem]:
    optimizer, problems = config.optimizer, []
    if not config.training.max_norm >= 0:
        problems.append(Problem("training.max_norm", f"is {config.training.max_norm:g}; it must be at least 0."))
    for name in ("betas", "adamw_betas"):
        betas = getattr(optimizer, name)
        if betas is not None and (len(betas) != 2 or not all(0 <= beta < 1 for beta in betas)):
            message = f"is {list(betas)}; it must be two numbers of at least 0 and below 1, such as [0.9, 0.95]."
            problems.append(Problem(f"optimizer.{name}", message))
    for name in ("eps", "adamw_eps"):
        eps = getattr(optimizer, name)
        if eps is not None and not 0 < eps < math.inf:
            message = f"is {eps:g}; it must be finite and above 0: a parameter without gradient divides 0 by it."
            problems.append(Problem(f"optimizer.{name}", message))
    if not 0 <= optimizer.momentum < 1:
        message = f"is {optimizer.momentum:g}; it must be at least 0 and below 1."
        problems.append(Problem("optimizer.momentum", message))
    if not 0 <= optimizer.weight_decay < math.inf:
        problems.append(
            Problem("optimizer.weight_decay", f"is {optimizer.weight_decay:g}; it must be finite and at least 0.")
        )
    return problems


def _sequence_problems(config: Config) -> list[Problem]:
    data, model = config.train_dataset.dataloader.config.seq_length, config.model.seq_length
    if model is None or data <= model:
        return []
    message = f"is {data}, longer than model.seq_length {model}; set both to the same number of tokens."
    return [Problem("train_dataset.dataloader.config.seq_length", message)]
