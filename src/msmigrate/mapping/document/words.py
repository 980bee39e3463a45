"""What docs/mapping.md says around the rows, in one language: titles, introductions, heads of tables, cells."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Words:
    """Every text of the document that does not come from the table; names of fields say where each stands."""

    title: str
    introduction: str
    index: str
    index_head: tuple[str, ...]
    top_level: str
    """The index's name for keys outside every section."""

    there: str
    there_introduction: str
    subjects: Mapping[str, str]
    """Titles of the modules of the table."""
    row_head: tuple[str, ...]
    model_introduction: str
    also: str

    defaults: str
    defaults_introduction: str
    defaults_head: tuple[str, ...]
    worked_out: str
    completed: str
    completed_introduction: str
    completed_head: str
    as_spelt: str
    only_pynative: str
    only_pynative_introduction: str
    only_pynative_head: tuple[str, ...]
    only_msrt: str

    legacy: str
    legacy_introduction: str
    legacy_model: str
    legacy_defaults: str
    legacy_classes: str
    legacy_classes_introduction: str
    legacy_classes_head: str
    not_read: str
    unlike: str
    unlike_head: tuple[str, ...]

    back: str
    back_introduction: str
    back_keys: str
    back_head: tuple[str, ...]
    back_model: str
    back_model_introduction: str
    back_added: str
    back_added_introduction: str
    back_added_head: tuple[str, ...]
    by_file: str

    yes: str
    no: str
    refused_unless: str
    while_on: str
    by_rule: str
    carried: str
    left_out: str
    follows: str
    elsewhere: str
    appendix: str


ENGLISH = Words(
    title="Every key: graph.yaml to pynative.yaml and back",
    introduction="""\
This file is made from the mapping table in `src/msmigrate/mapping/table` by
`python -m msmigrate.mapping.document > docs/mapping.md`. Do not edit it. To find a key of your file, search for it; the
index leads from a section of a graph file to the tables that have its keys.

**Graph key.** `callbacks[CheckpointMonitor].prefix` is `prefix` of the callback of that type, `callbacks[]` stands for
any other callback, and `handler[]` for any item of a list. `parallel.*` takes every key below `parallel` that has no
line of its own. A key that no line takes has the fate `unknown`: it is reported and not carried.

**Fate** is what becomes of a key: `same`, `renamed` (also moved), `computed` (part of a computation), `flattened` (out
of `model.model_config`), `default` (written because the modes default differently), `dropped`, `refused` (stops the
conversion unless you say `--allow-lossy`). *By rule* marks a fate that depends on the value or on other keys: the
usual fate is shown, and the reason says when it is another. *While on* marks a switch that is dropped while it is
false, null, 0 or empty.

**2.0, 2.1, manual only** tell whether the pynative key is written for that reader (`--target 2.0`, `--target 2.1`,
`--manual-only`): *yes*; *dropped*, with the effect of that; *refused*, with the one value that can be left out because
it holds anyway; — where nothing is written in any case.

**Effect** is the gravest that losing the key can have: `none`, `speed`, `memory`, or `training`, where the run would
learn something else. A switch that is off has none.

**Manual** is the section of the manual ("Pynative 模式配置说明"), — where the manual does not name the key.
""",
    index="Index of graph files",
    index_head=("In your file", "Tables"),
    top_level="keys outside every section",
    there="From graph.yaml to pynative.yaml",
    there_introduction="""\
Keys of a graph file with `use_legacy: False`. What lies outside the model section holds for legacy files too.
""",
    subjects={
        "checkpoint": "Saving and loading",
        "training": "Length, batch and randomness",
        "optimizer": "Optimizer, clipping and loss scale",
        "learning_rate": "Learning rate",
        "parallelism": "Parallelism",
        "recompute": "Recomputation",
        "dataset": "Data",
        "foreign_data": "Ways to data that PyNative mode does not have",
        "callbacks": "Callbacks",
        "graph_only": "Only in Graph mode",
        "model": "Model",
    },
    row_head=("Graph key", "PyNative key", "Fate", "2.0", "2.1", "Manual only", "Effect", "Reason", "Manual"),
    model_introduction="""\
`model.model_config` moves flat into `model`. Other names of a key are listed with it; a value is written under the name
that the reader of the model's family takes, which is the Hugging Face name where the family has one.
""",
    also="also",
    defaults="Written because the modes differ",
    defaults_introduction="""\
Where no key of the graph file says otherwise, the converter writes these keys, because PyNative mode would take another
value or needs one that follows from the whole file.
""",
    defaults_head=(
        "PyNative key", "Graph mode's default", "PyNative's default", "2.0", "2.1", "Manual only", "Rule", "Manual",
    ),
    worked_out="worked out",
    completed="Model keys that the file leaves out",
    completed_introduction="""\
With `--hf-config` they come from that `config.json`. Without it, a model section that gives `model_type` and no shape
is completed with the defaults of the family's class:
""",
    completed_head="PyNative key",
    as_spelt="{value} as {name}",
    only_pynative="PyNative keys without a counterpart",
    only_pynative_introduction="No graph key becomes one of these; set one with `--set KEY=VALUE`.\n",
    only_pynative_head=("PyNative key", "Default", "2.0", "2.1", "Meaning", "In msrt", "Manual"),
    only_msrt="msrt only",
    legacy="Legacy model files",
    legacy_introduction="""\
Files with `use_legacy: True`, or with a model class and no `use_legacy`. Their model section and `moe_config` have
these rows instead; every key is refused where the class has no PyNative counterpart.
""",
    legacy_model="Keys of legacy models",
    legacy_defaults="Worked out for legacy models",
    legacy_classes="What a legacy class takes for an absent key",
    legacy_classes_introduction="""\
Written for the classes that have a PyNative counterpart, here with its `model_type`. The keys of `model` at the end are
those that a class has no key for, because it is always so.
""",
    legacy_classes_head="Graph key",
    not_read="not read",
    unlike="Legacy models without a counterpart",
    unlike_head=("Class", "Why it is refused"),
    back="From pynative.yaml to graph.yaml",
    back_introduction="""\
`msmigrate reverse` reads the table from its other side and writes the file of an mcore model. *Carried* is the value
itself; where the file leaves the key out, PyNative's default is written if graph mode has another. *Follows* is worked
out from the whole file. A value that asks for nothing, such as the default, is always dropped.
""",
    back_keys="Keys outside the model",
    back_head=("PyNative key", "Graph key", "How", "PyNative's default", "Manual"),
    back_model="Model keys on the way back",
    back_model_introduction="""\
Model keys move into `model.model_config` under the name that the file uses, but for these:
""",
    back_added="Graph keys that no pynative key names",
    back_added_introduction="""\
The values are those of a run on one device that leaves every key but the required ones to its default; — marks a key
that such a run does not need.
""",
    back_added_head=("Graph key", "Value", "Reason"),
    by_file="by the file",
    yes="yes",
    no="no",
    refused_unless="refused unless {value}",
    while_on="while on",
    by_rule="by rule",
    carried="carried",
    left_out="carried; left out, {rule}",
    follows="follows",
    elsewhere="other keys say it",
    appendix="appendix",
)  # fmt: skip
