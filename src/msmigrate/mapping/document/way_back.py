"""The way from pynative.yaml to graph.yaml: what each pynative key becomes, and what a graph file needs besides."""

from msmigrate.mapping.back.context import BackContext
from msmigrate.mapping.back.decide import carrying_row, unsaid
from msmigrate.mapping.back.pynative_file import read_pynative
from msmigrate.mapping.document.cells import manual
from msmigrate.mapping.document.markdown import NOTHING, code, default_of, table, text, value
from msmigrate.mapping.document.words import Words
from msmigrate.mapping.outcome import Carry, Effect
from msmigrate.mapping.rows import Row
from msmigrate.mapping.table import MCORE
from msmigrate.mapping.table.dataset import LOADERS
from msmigrate.mapping.table.learning_rate import DEFAULT_TYPE
from msmigrate.options import Options
from msmigrate.pynative import Config, Spec, nested_section, specs_of
from msmigrate.pynative.families import ARCHITECTURES
from msmigrate.yaml.document import parse
from msmigrate.yaml.source import source_from_bytes

_SOME_VALUE = "any value but the default"


def back_keys(words: Words) -> str:
    """One line per pynative key outside the model."""
    specs = [spec for path, spec in specs_of(Config).items() if not path.startswith("model.")]
    return table(words.back_head, [_line(spec, words) for spec in specs if nested_section(spec.annotation) is None])


def back_model(words: Words) -> str:
    """Model keys that graph keys follow from by a rule."""
    ruled = [
        spec
        for path, spec in specs_of(Config).items()
        if path.startswith("model.") and any(row.back for row in MCORE.by_pynative.get(path, ()))
    ]
    return table(words.back_head, [_line(spec, words) for spec in ruled])


def _line(spec: Spec, words: Words) -> tuple[str, ...]:
    graph, how = _becomes(spec, words)
    return code(spec.path), graph, how, default_of(spec), manual(spec.key.manual, words)


def _becomes(spec: Spec, words: Words) -> tuple[str, str]:
    rows = MCORE.by_pynative.get(spec.path, ())
    ruled = [row for row in rows if row.back]
    if ruled:
        named = [row for row in ruled if row.graph] or _of_the_same_rule(ruled)
        named = named or [row for row in rows if row.graph][:1]
        graphs = ", ".join(code(row.graph) for row in named)
        return graphs or NOTHING, words.follows if graphs else words.elsewhere
    home = carrying_row(rows)
    if home is not None:
        return code(home.graph), words.carried
    lost = unsaid(spec, _SOME_VALUE)
    return NOTHING, str(lost.fate) if lost.effect is Effect.NONE else f"{lost.fate} ({lost.effect})"


def _of_the_same_rule(ruled: list[Row]) -> list[Row]:
    rules = {row.back for row in ruled}
    return [row for row in MCORE.rows if row.graph and row.back in rules]


def added(words: Words) -> str:
    """Graph keys that no pynative key names, with the value that a run of defaults on one device gives them."""
    context = _run_of_defaults()
    rows = [row for row in MCORE.rows if row.graph and row.back and row.pynative is None]
    return table(words.back_added_head, [_added_line(row, context) for row in rows])


def _added_line(row: Row, context: BackContext) -> tuple[str, ...]:
    assert row.back is not None
    found = context.outcome(row.back)
    if found is None or not found.writes or isinstance(found.value, Carry):
        return code(row.graph), NOTHING, NOTHING
    return code(row.graph), value(found.value), text(found.why)


def _run_of_defaults() -> BackContext:
    kind = next(iter(ARCHITECTURES))
    lines = (
        f"model: {{model_type: {kind}, architectures: {ARCHITECTURES[kind]}}}",
        f"train_dataset: {{dataloader: {{type: {LOADERS[0]}}}}}",
        f"lr_scheduler: {{type: {DEFAULT_TYPE}}}",
    )
    document = parse(source_from_bytes("pynative.yaml", "\n".join(lines).encode()))
    return BackContext(read_pynative(document, {}), Options(world=1, samples=1000), MCORE.graph_defaults)
