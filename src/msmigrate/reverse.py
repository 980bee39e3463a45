"""A pynative.yaml becomes a graph.yaml that trains the same run: the mapping table read from its other side."""

from dataclasses import replace

from msmigrate.decisions import Decisions, Writer, place_of, stands_for_others
from msmigrate.entries import Conversion, ConvertedAlreadyError, Mode
from msmigrate.findings import Severity
from msmigrate.mapping.back.context import BackContext
from msmigrate.mapping.back.decide import decide, remaining
from msmigrate.mapping.back.pynative_file import declared, read_pynative
from msmigrate.mapping.graph_file import GRAPH_SECTIONS, PYNATIVE_SECTIONS, Family, is_graph
from msmigrate.mapping.outcome import Fate, Outcome
from msmigrate.mapping.table import MCORE
from msmigrate.options import Options
from msmigrate.problems import UserError
from msmigrate.pynative.start_up import Setting, broken_rules
from msmigrate.yaml.document import Document
from msmigrate.yaml.emit import emit
from msmigrate.yaml.nodes import Leaf, Path, leaves


def reverse(document: Document, options: Options) -> Conversion:
    """The graph file of a parsed pynative file, for an mcore model.

    Raises ConvertedAlreadyError for a graph.yaml, UserError for a file that no PyNative reader would take: values of
    a wrong type or out of bounds, required keys that are missing, sections of both modes.
    """
    if is_graph(document):
        raise ConvertedAlreadyError(document.source.name, Mode.GRAPH)
    _refuse_a_mixture(document)
    context = BackContext(read_pynative(document, options.overrides), options, MCORE.graph_defaults)
    _note_idle_options(context)
    _note_two_readings(context)
    decisions = _Decisions(document, context)
    for leaf in leaves(document.root):
        decisions.leaf(leaf)
    for outcome in remaining(context, MCORE):
        decisions.without_a_leaf(outcome)
    facts = {"world": context.world(), "samples": context.samples()}
    conversion = Conversion(
        document, Mode.PYNATIVE, Family.MCORE, options, facts, tuple(decisions.entries), tuple(context.notes), text=None
    )  # fmt: skip
    if conversion.refusals:
        return conversion
    return replace(conversion, text=emit(document, list(decisions.items())))


def _refuse_a_mixture(document: Document) -> None:
    has = [entry.key for entry in document.root.entries]
    graph = next((key for key in has if key.text in GRAPH_SECTIONS), None)
    other = next((key for key in has if key.text in PYNATIVE_SECTIONS), None)
    if graph is not None and other is not None:
        raise UserError(
            f"{document.source.name}:{graph.span.start.line}:{graph.span.start.column}: `{graph.text}` is a section of "
            f"Graph mode, and `{other.text}` on line {other.span.start.line} one of PyNative mode; a file has one kind"
        )


def _note_two_readings(context: BackContext) -> None:
    """Model keys that MindFormers ignores or takes otherwise in silence: the graph file has the manual's meaning."""
    checked, options = context.file.checked, context.options
    for _, problem in broken_rules(checked, Setting(options.target, options.world, options.expert_mesh)):
        key = problem.keys[0]
        if problem.severity is Severity.WARNING and key.startswith("model."):
            span = checked.written[key].span
            place = f"line {span.start.line}" if span else "--set"
            context.note(
                f"MindFormers reads the file otherwise ({place}): {problem.message}; the graph file has the value that "
                "stands here, which the manual and msrt take"
            )


def _note_idle_options(context: BackContext) -> None:
    if context.options.manual_only:
        context.note("--manual-only has no effect: it chooses among pynative keys, and a graph file is written")
    if context.options.hf_config is not None:
        context.note("--hf-config has no effect: a pynative file that leaves model keys out takes the class defaults")


class _Decisions(Decisions):
    """Pynative keys, leaf by leaf; then the graph keys that no leaf has written."""

    def __init__(self, document: Document, context: BackContext) -> None:
        super().__init__(document, Mode.PYNATIVE)
        self.context = context
        self.callbacks: list[str] = []

    def leaf(self, leaf: Leaf, *, counted: bool = True) -> None:
        place = place_of(leaf)
        if stands_for_others(leaf) and (not place or declared(place) is not None):
            self.expanded(leaf, counted=counted)
        else:
            self.add(leaf, decide(self.context, MCORE, leaf), counted=counted)

    def without_a_leaf(self, outcome: Outcome) -> None:
        """Account for a key that follows from the whole file, unless a leaf has told of it."""
        if (outcome.writes or outcome.fate is Fate.REFUSED) and not self.mentioned(outcome):
            self.bare(outcome)

    def arranged(self) -> list[Writer]:
        """Single values at the top first, then sections as they come; a `type` before what it takes."""
        every = [(path, outcome, leaf) for path, (outcome, leaf) in self.writers.items()]
        every.sort(key=lambda writer: writer[2] is None and not writer[0].endswith(".type"))
        every.sort(key=lambda writer: ("." in writer[0], _is_setting_of_a_callback(writer[0])))
        return every

    def names(self, path: str) -> Path:
        """The place of a key; the callback of a kind is one item of the list."""
        section, bracket, rest = path.partition("[")
        if not bracket:
            return super().names(path)
        kind, _, key = rest.partition("].")
        if kind not in self.callbacks:
            self.callbacks.append(kind)
        return (section, self.callbacks.index(kind), *key.split("."))


def _is_setting_of_a_callback(path: str) -> bool:
    return path.startswith("callbacks[") and not path.endswith("].type")
