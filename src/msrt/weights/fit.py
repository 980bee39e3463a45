"""Whether stored tensors are those that a model needs: everything that is wrong is said at once."""

from collections.abc import Mapping

from msmigrate.problems import UserError

LISTED = 10
"""Names that a message lists of each kind."""

Shapes = Mapping[str, tuple[int, ...]]


def refuse_misfits(wanted: Shapes, stored: Shapes, source: str) -> None:
    """Nothing when both have the same names and shapes; else one UserError that lists what is missing in `source`,
    what is not expected there, and what has a wrong shape."""
    misshapen = [
        f"{name} is {stored[name]}, the model needs {shape}"
        for name, shape in wanted.items()
        if name in stored and stored[name] != shape
    ]
    sentences = [
        _listed("missing", sorted(wanted.keys() - stored.keys())),
        _listed("unexpected", sorted(stored.keys() - wanted.keys())),
        _listed("of a wrong shape", misshapen),
    ]
    found = [sentence for sentence in sentences if sentence]
    if found:
        raise UserError(f"The weights in {source} do not fit the model. " + " ".join(found))


def _listed(kind: str, names: list[str]) -> str:
    if not names:
        return ""
    more = f" and {len(names) - LISTED} more" if len(names) > LISTED else ""
    count = "1 tensor is" if len(names) == 1 else f"{len(names)} tensors are"
    return f"{count} {kind}: {', '.join(names[:LISTED])}{more}."
