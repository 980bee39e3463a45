"""A pynative.yaml read into the `Config` dataclasses, or refused with every reason at once."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from msmigrate.findings import Finding, Severity
from msmigrate.problems import UserError
from msmigrate.pynative.check import Checked, Place, apply_overrides, check_document
from msmigrate.pynative.families import FAMILY_DEFAULTS
from msmigrate.pynative.keys import nested_section, specs_of
from msmigrate.pynative.model import Model
from msmigrate.pynative.overrides import yaml_value
from msmigrate.pynative.sections import Config
from msmigrate.yaml.document import parse
from msmigrate.yaml.source import source_from_bytes


@dataclass(frozen=True, slots=True)
class Loaded:
    """A file as msrt runs it.

    `given` has the place of every key the file or an override gives, by dotted path; `findings` has the warnings.
    """

    config: Config
    given: Mapping[str, Place]
    findings: tuple[Finding, ...]


def load_config(text: str, name: str, overrides: Sequence[tuple[str, str]] = ()) -> Loaded:
    """The config in a pynative.yaml's text; `overrides` are (dotted path, YAML text of the value), as `--set` gives.

    Raises UnreadableError for YAML that cannot be read, UserError with one line per finding (file:line:col, what was
    found, what to change) for unknown keys, wrong types, values out of range, and missing required keys.
    """
    document = parse(source_from_bytes(name, text.encode()))
    graph = graph_sections(document.root.get)
    if graph:
        raise UserError(
            f"{name} is a Graph-mode file (it has `{graph[0]}`); convert it first: msmigrate convert {name} -o OUT.yaml"
        )
    checked = check_document(document)
    apply_overrides(checked, ((path, yaml_value(f"--set {path}", value)) for path, value in overrides))
    errors = [finding for finding in checked.findings if finding.severity is Severity.ERROR]
    if errors:
        raise UserError("\n".join(str(finding) for finding in errors))
    config = config_of(checked)
    config = replace(config, model=_with_nullable_defaults(config.model, checked.given))
    return Loaded(config, checked.given, tuple(checked.findings))


def _with_nullable_defaults(model: Model, given: Mapping[str, Place]) -> Model:
    """The model with the family's default for keys that a file leaves out and whose null means something else."""
    defaults = FAMILY_DEFAULTS.get(model.model_type or "", {})
    left_out = {
        spec.name: defaults[spec.name]
        for spec in specs_of(Model).values()
        if spec.key.null_is_a_value and f"model.{spec.name}" not in given and spec.name in defaults
    }
    return replace(model, **left_out)  # type: ignore[arg-type]  # the table holds values of the declared types


def graph_sections(get: object) -> list[str]:
    """Top-level keys that only Graph-mode files have; `get` looks a key up in the root mapping."""
    assert callable(get)
    marks = ("runner_config", "parallel_config", "lr_schedule", "recompute_config", "runner_wrapper")
    return [key for key in marks if get(key) is not None]


def config_of(checked: Checked) -> Config:
    """The config of a checked file; a key that is missing or wrong has its default."""
    config = _built(Config, "", checked)
    assert isinstance(config, Config)
    return config


def _built(section: type, prefix: str, checked: Checked) -> object:
    given: dict[str, object] = {}
    for path, spec in specs_of(section, prefix).items():
        name = path[len(prefix) :]
        if "." in name:
            continue
        inner = nested_section(spec.annotation)
        if inner is not None and (spec.default is not None or path in checked.given):
            given[name] = _built(inner, path + ".", checked)
        elif path in checked.values:
            given[name] = checked.values[path]
    return section(**given)
