"""`--set KEY=VALUE`: one pynative key from the command line."""

from msmigrate.findings import nearest
from msmigrate.problems import UnreadableError, UsageError
from msmigrate.pynative.keys import nested_section, specs_of
from msmigrate.pynative.sections import Config
from msmigrate.pynative.values import Mismatch, typed
from msmigrate.yaml.document import parse, value_of
from msmigrate.yaml.scalars import Value
from msmigrate.yaml.source import source_from_bytes


def parse_override(text: str) -> tuple[str, Value]:
    """The dotted path and the value in `KEY=VALUE`; the value is YAML as in a file.

    Raises UsageError for a missing key or `=`, an unknown key, a section, or a value of the wrong type.
    """
    path, sign, value_text = text.partition("=")
    path = path.strip()
    if not sign or not path:
        raise UsageError(f"--set {text}: expected KEY=VALUE, such as training.steps=100")
    spec = specs_of(Config).get(path)
    if spec is None:
        close = nearest(path, specs_of(Config))
        raise UsageError(f"--set {path}: unknown key" + (f"; did you mean {close}?" if close else ""))
    if nested_section(spec.annotation) is not None:
        raise UsageError(f"--set {path}: this is a section; set one of its keys")
    value = yaml_value(f"--set {path}", value_text)
    found = typed(spec, value)
    if isinstance(found, Mismatch):
        raise UsageError(f"--set {path}: {found.message}" + (f"; {found.help}" if found.help else ""))
    return path, value


def yaml_value(name: str, text: str) -> Value:
    """One YAML value; raises UsageError for anything else."""
    try:
        document = parse(source_from_bytes(name, f"value: {text}\n".encode()))
    except UnreadableError as error:
        raise UsageError(f"{name}={text}: {error.problem}") from error
    node = document.root.get("value")
    if node is None or len(document.root.entries) != 1:
        raise UsageError(f"{name}={text}: expected one YAML value")
    return value_of(node)
