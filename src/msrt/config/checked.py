"""A config file read and checked against the ranks of this run, before anything slow is imported."""

from collections.abc import Sequence
from dataclasses import dataclass

from msmigrate.options import ExpertMesh
from msmigrate.pynative import Config
from msmigrate.pynative.load import load_config
from msmigrate.yaml.source import read_source
from msrt.config.problem import Problem, refuse
from msrt.config.refusals import judge
from msrt.config.resolve import Resolved, try_resolve
from msrt.models import unknown_family


@dataclass(frozen=True, slots=True)
class Checked:
    """A config that can run, the name of its file, its derived numbers, and sentences the user should read first."""

    name: str
    config: Config
    numbers: Resolved
    notes: tuple[str, ...]


def check_config(path: str, overrides: Sequence[tuple[str, str]], world: int, mesh: ExpertMesh) -> Checked:
    """The config of file `path` ("-" for standard input) for a run on `world` ranks.

    Raises `UserError` with every reason why it cannot run, and `UnreadableError` when it cannot be read.
    """
    source = read_source(path)
    loaded = load_config(source.text, source.name, overrides)
    verdict = judge(loaded.config, loaded.given, world)
    numbers, problems = try_resolve(loaded.config, world, mesh)
    unknown = unknown_family(loaded.config.model.model_type)
    family = [] if unknown is None else [Problem("model.model_type", unknown)]
    refuse([*problems, *family, *verdict.problems], source.name, loaded.given)
    assert numbers is not None
    return Checked(source.name, loaded.config, numbers, (*map(str, loaded.findings), *verdict.notes))
