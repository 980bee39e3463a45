"""Which parameters weight decay applies to."""

from collections.abc import Sequence
from fnmatch import fnmatchcase


def decays(
    name: str, shape: Sequence[int], *, include: Sequence[str] | None = None, exclude: Sequence[str] | None = None
) -> bool:
    """Whether a parameter decays: every one but 1-D parameters and names that end in `.bias`.

    A rule of `include` stands above one of `exclude`, and both above the default. A rule matches a name that equals it,
    contains it, or fits it as a shell wildcard (MindFormers 2.x, optimizer.weight_decay_include / _exclude).
    """
    if _matches(name, include):
        return True
    if _matches(name, exclude):
        return False
    return len(shape) > 1 and not name.endswith(".bias")


def _matches(name: str, rules: Sequence[str] | None) -> bool:
    return any(rule in name or fnmatchcase(name, rule) for rule in rules or ())
