"""How many ranks this run has: what a launcher announces in the environment."""

from collections.abc import Mapping

from msmigrate.problems import UserError

WORLD, NODE, ROLE = "MS_WORKER_NUM", "MS_NODE_ID", "MS_ROLE"


def world_of(environment: Mapping[str, str]) -> int:
    """MS_WORKER_NUM, 1 when no launcher has set it.

    Raises UserError for numbers that are none, for a process that is not to train (a scheduler), for a rank outside
    the world, for a rank without a world, and for several ranks, which are not there yet.
    """
    role = environment.get(ROLE, "MS_WORKER")
    if role != "MS_WORKER":
        raise UserError(f"{ROLE} in the environment is {role!r}; only an MS_WORKER trains. Unset it to train here.")
    if WORLD not in environment:
        if NODE in environment:
            raise UserError(f"{NODE} in the environment is {environment[NODE]!r}, but {WORLD} is not set. Unset it.")
        return 1
    world = _number(environment, WORLD, 1)
    if world > 1:
        raise UserError(
            f"{WORLD} in the environment is {world}; training on several ranks is not there yet. Unset it, or set it "
            "to 1."
        )
    rank = _number(environment, NODE, 0) if NODE in environment else 0
    if rank >= world:
        raise UserError(f"{NODE} in the environment is {rank}; with {WORLD} {world} it must be from 0 to {world - 1}.")
    return world


def _number(environment: Mapping[str, str], name: str, least: int) -> int:
    value = environment[name]
    if not (value.isascii() and value.isdecimal()) or int(value) < least:
        raise UserError(f"{name} in the environment is {value!r}; it must be a whole number of at least {least}.")
    return int(value)
