"""What a start-up rule is: a function on the values of a whole file that yields problems as data."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from msmigrate.findings import Severity
from msmigrate.options import ExpertMesh, Target
from msmigrate.pynative.check import Written
from msmigrate.pynative.families import FAMILY_DEFAULTS
from msmigrate.pynative.keys import specs_of
from msmigrate.pynative.model import Model
from msmigrate.pynative.sections import Config

BOTH = tuple(Target)


@dataclass(frozen=True, slots=True)
class Setting:
    """Who reads the file and on how many ranks; `world` is None when nobody says."""

    target: Target = Target.V2_0
    world: int | None = None
    mesh: ExpertMesh = ExpertMesh.PRODUCT


@dataclass(frozen=True, slots=True)
class Facts:
    """All that a rule may ask: the typed config with defaults, the keys as written by canonical path, the setting."""

    config: Config
    written: Mapping[str, Written]
    setting: Setting

    def model(self, name: str) -> object:
        """A key of the model section as the reader has it: from the file, else the default of the family's class."""
        if f"model.{name}" in self.written:
            found: object = getattr(self.config.model, name)
            return found
        defaults = FAMILY_DEFAULTS.get(self.config.model.model_type or "", {})
        spellings = (name, *specs_of(Model)[name].key.aliases)
        return next((defaults[spelling] for spelling in spellings if spelling in defaults), None)

    def count(self, name: str) -> int | None:
        """A whole number of the model section, None when it has none."""
        value = self.model(name)
        return value if isinstance(value, int) and not isinstance(value, bool) else None


@dataclass(frozen=True, slots=True)
class Problem:
    """One broken rule. An error stops the reader; a warning is what it ignores or changes in silence."""

    keys: tuple[str, ...]
    """Canonical dotted paths: first the key to change, then the others that take part."""
    message: str
    help: str | None = None
    severity: Severity = Severity.ERROR


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule with its stable code, the releases that have it, and whether it needs the number of ranks.

    `untrained` tells that a reader which goes on trains something other than the file says: no conversion writes that.
    """

    code: str
    name: str
    check: Callable[[Facts], Iterator[Problem]]
    targets: tuple[Target, ...] = BOTH
    needs_world: bool = False
    untrained: bool = False

    def problems(self, facts: Facts) -> list[Problem]:
        """What breaks the rule; nothing where it does not hold or cannot be judged."""
        if facts.setting.target not in self.targets or (self.needs_world and facts.setting.world is None):
            return []
        return list(self.check(facts))


def divisors(number: int) -> str:
    """The positive divisors for a message: `1, 2, 4`."""
    return ", ".join(str(value) for value in range(1, number + 1) if number % value == 0)
