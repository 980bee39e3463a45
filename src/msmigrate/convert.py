"""A Graph-mode file becomes a pynative.yaml: one decision per leaf, the text, and what it rests on."""

from dataclasses import replace
from functools import cached_property

from msmigrate.acceptance import accepted
from msmigrate.decisions import Decisions, Writer, brought_in, containers, place_of, stands_for_others
from msmigrate.entries import Conversion, ConvertedAlreadyError, Entry, Mode
from msmigrate.mapping.context import Context
from msmigrate.mapping.graph_file import Family, GraphFile, family_of, is_pynative, model_family
from msmigrate.mapping.model_values import contradictions
from msmigrate.mapping.outcome import UNTOLD, Effect, Fate, Outcome, refused
from msmigrate.mapping.rows import Table, match
from msmigrate.mapping.settle import added_by_set, carried_by_set, settle
from msmigrate.mapping.spelling import Section, decides_training, is_known, misspelt, section_of
from msmigrate.mapping.table import table_of
from msmigrate.options import Options
from msmigrate.pynative import Config, specs_of
from msmigrate.yaml.document import Document
from msmigrate.yaml.emit import emit
from msmigrate.yaml.nodes import Leaf, dotted, leaves

__all__ = ["AlreadyPynativeError", "Conversion", "Entry", "convert"]


class AlreadyPynativeError(ConvertedAlreadyError):
    """The file is a pynative.yaml: there is nothing to convert."""


def convert(document: Document, options: Options, first_line: str | None = None) -> Conversion:
    """The conversion of a parsed Graph-mode file; `first_line` is a comment for the top of the text.

    Files of families without a PyNative counterpart are refused key by key. Raises AlreadyPynativeError for a
    pynative.yaml, UserError for numbers of the wrong type.
    """
    if is_pynative(document):
        raise AlreadyPynativeError(document.source.name, Mode.PYNATIVE)
    graph = GraphFile(document)
    family = family_of(graph)
    table = table_of(model_family(graph))
    context = Context(graph, options, table.derivations)
    if context.legacy and options.hf_config is not None:
        context.options = replace(options, hf_config=None)
        context.note("--hf-config does not count: a legacy model takes what the file leaves out from its class")
    decisions = _Decisions(context, table)
    foreign = _foreign(document, family, model_family(graph))
    if foreign is None:
        _note_doubts(context)
    for leaf in leaves(document.root):
        if foreign is None:
            decisions.leaf(leaf)
        else:
            decisions.add(leaf, refused(foreign, final=True), counted=True)
    if foreign is None:
        decisions.remaining()
    facts = {"world": context.world(), "samples": context.samples()}
    conversion = Conversion(
        document, Mode.GRAPH, family, options, facts, tuple(decisions.entries), tuple(context.notes), text=None
    )  # fmt: skip
    if conversion.refusals:
        return conversion
    return accepted(conversion, emit(document, list(decisions.items()), first_line))


def _note_doubts(context: Context) -> None:
    """Notes on what the file leaves open, or says otherwise than its Hugging Face config."""
    differing = list(contradictions(context))
    if differing:
        context.note(f"{context.options.hf_config_path} is not of the file's model, which wins: {'; '.join(differing)}")


def _foreign(document: Document, family: Family, merged: Family) -> str | None:
    """Why a file cannot be converted at all; None for one that can."""
    if family is Family.SPLIT and document.missing is not None:
        return document.missing
    if family is Family.SPLIT and not document.parts:
        return "base_config names other files that belong to this one, and they were not read"
    if merged is Family.LLMTRAINER:
        return "the file has the experimental layout of LLMTrainer (training_args, …), which no release has"
    return None


class _Decisions(Decisions):
    """Graph keys, row by row; then the pynative keys that no leaf has written."""

    def __init__(self, context: Context, table: Table) -> None:
        super().__init__(context.graph.document, Mode.GRAPH)
        self.context = context
        self.table = table

    def leaf(self, leaf: Leaf, *, counted: bool = True) -> None:
        """Decide on a leaf; `counted` is False for keys that an alias or merge key brings in."""
        graph = self.context.graph
        if self.takes(leaf):
            self.expanded(leaf, counted=counted)
            return
        section = section_of(self.table, graph, leaf.path)
        row = match(self.table.by_graph_path, graph.row_key(leaf.path))
        if row is None and counted and leaf.node.span.start.index in self.written_elsewhere:
            outcome = Outcome(Fate.DROPPED, Effect.NONE, "its keys are written where aliases take them")
        elif row is None:
            outcome = self.unknown(leaf) if section is None else self.bare_section(leaf, section)
        else:
            outcome = carried_by_set(self.context, row, leaf, row.decide(self.context, leaf))
        self.add(leaf, self.settled(outcome), counted=counted)

    def takes(self, leaf: Leaf) -> bool:
        """Whether a leaf is an alias or a merge key whose keys are written out: rows know its place and carry there."""
        graph = self.context.graph
        if not stands_for_others(leaf) or not is_known(self.table, graph, place_of(leaf)):
            return False
        section = section_of(self.table, graph, leaf.path)
        if section is not None:
            return section.matters
        row = match(self.table.by_graph_path, graph.row_key(leaf.path))
        return row is None or row.fate is not Fate.DROPPED

    @cached_property
    def written_elsewhere(self) -> frozenset[int]:
        """Where the leaves start that aliases at other places write, such as those of `opt: &o` and `optimizer: *o`."""
        found: set[int] = set()
        waiting = [leaf.node for leaf in leaves(self.document.root) if self.takes(leaf) or self.takes_scalar(leaf)]
        while waiting:
            for leaf in brought_in(waiting.pop()):
                if leaf.node.span.start.index not in found:
                    found.add(leaf.node.span.start.index)
                    waiting.append(leaf.node)
        return frozenset(found)

    def takes_scalar(self, leaf: Leaf) -> bool:
        """Whether a leaf that rows know is an alias to a single value, or a list with aliases."""
        row = match(self.table.by_graph_path, self.context.graph.row_key(leaf.path))
        return row is not None and not stands_for_others(leaf)

    def settled(self, outcome: Outcome) -> Outcome:
        path = outcome.pynative or ""
        return settle(self.context, outcome, self.lost(path), told=path in self.writers)

    def lost(self, path: str) -> Effect:
        """What would change for the run without a pynative key."""
        return self.table.lost.get(path, Effect.TRAINING)

    def unknown(self, leaf: Leaf) -> Outcome:
        lost, close = misspelt(self.table, self.context.graph, leaf.path)
        advice = f"did you mean `{close}`?" if close else None
        kind = "key" if lost == dotted(leaf.path) else "section"
        where = self.section_line(leaf, lost) if kind == "section" else ""
        why = f"{kind} `{lost}`{where} is not in the mapping table; it is not carried"
        if not decides_training(self.table, close or lost):
            return Outcome(Fate.UNKNOWN, Effect.NONE, why, help=advice)
        return Outcome(Fate.UNKNOWN, Effect.TRAINING, f"{why}, {UNTOLD}", help=advice)

    def section_line(self, leaf: Leaf, section: str) -> str:
        """The line of a section around a leaf, for a sentence; empty where the section has no key of its own."""
        keys = containers(self.context.graph.document.root, leaf.path)
        lines = [key.span.start.line for count, key in enumerate(keys, 1) if dotted(leaf.path[:count]) == section]
        return f" (line {lines[0]})" if lines else ""

    def bare_section(self, leaf: Leaf, section: Section) -> Outcome:
        """A section without keys: graph mode takes its defaults, which is worth a word when it matters."""
        if self.context.graph.section(dotted(leaf.path)):  # by an alias, to keys that PyNative mode does not have
            return Outcome(Fate.DROPPED, Effect.NONE, "a section that PyNative mode does not have")
        if section.matters:
            line = (leaf.key or leaf.node).span.start.line
            self.context.note(
                f"`{dotted(leaf.path)}` (line {line}) is empty: graph mode takes the defaults of the whole section"
            )
        return Outcome(Fate.DROPPED, Effect.NONE, "an empty section: graph mode takes its defaults")

    def remaining(self) -> None:
        """Derived keys that no leaf has written, then the user's own."""
        for row in self.table.derived:
            assert row.pynative is not None
            if row.pynative in self.writers:
                continue
            outcome = self.context.derive(row.pynative)
            if outcome is None or self.mentioned(outcome):
                continue
            self.bare(self.settled(outcome))
        for path in self.context.options.overrides:
            if path not in self.writers:
                self.bare(added_by_set(self.context, path, self.lost(path)))

    def arranged(self) -> list[Writer]:
        """Keys with a source in source order, then the rest, sections in the manual's order."""
        every = [(path, outcome, leaf) for path, (outcome, leaf) in self.writers.items()]
        sourced = [writer for writer in every if writer[2] is not None]
        opened = {path.partition(".")[0] for path, _, _ in sourced}
        order = list(specs_of(Config))
        bare = [writer for writer in every if writer[2] is None]
        bare.sort(key=lambda writer: order.index(writer[0]) if writer[0] in order else len(order))
        bare.sort(key=lambda writer: writer[0].partition(".")[0] not in opened)
        return sourced + bare
