"""Real graph files to PyNative mode and back: nothing that one of the directions carries is lost in the other."""

from dataclasses import replace
from pathlib import Path

import pytest
from test_graph_corpus import MCORE, converted, generous, paths_of

from msmigrate.convert import Conversion, convert
from msmigrate.mapping.back.context import plain
from msmigrate.mapping.model_values import canonical
from msmigrate.mapping.outcome import Fate
from msmigrate.options import ExpertMesh, Options
from msmigrate.pynative import Config, specs_of
from msmigrate.report import report_object, totals
from msmigrate.reverse import reverse
from msmigrate.yaml.document import Document, parse, value_of
from msmigrate.yaml.nodes import leaves
from msmigrate.yaml.scalars import Value
from msmigrate.yaml.source import read_source, source_from_bytes

FILES = [name for name in MCORE if name != "telechat3_train"]
CARRIED = (Fate.SAME, Fate.RENAMED, Fate.FLATTENED)
OTHER_PLACE = {"pretrained_model_dir": "load_checkpoint"}
"""Graph keys that come back under a key of the same meaning."""


def document(text: str) -> Document:
    return parse(source_from_bytes("file.yaml", text.encode()))


def back(text: str, options: Options) -> Conversion:
    found = reverse(document(text), options)
    assert found.text is not None, [entry.outcome.why for entry in found.refusals]
    return found


def world_of(first: Conversion) -> int:
    world = first.facts["world"].value
    assert isinstance(world, int)
    return world


@pytest.mark.parametrize("name", FILES)
def test_what_was_carried_comes_back_exactly(shared: Path, name: str) -> None:
    first = converted(shared, name, generous(name))
    assert first.text is not None
    options = Options(
        world=world_of(first), samples=generous(name).samples, expert_mesh=ExpertMesh.NESTED, allow_lossy=True
    )
    second = back(first.text, options)
    home = {entry.pynative: entry for entry in second.entries if entry.pynative is not None}
    compared = 0
    for entry in first.entries:
        outcome = entry.outcome
        if outcome.fate not in CARRIED or not outcome.writes or "[" in str(outcome.target) or entry.graph is None:
            continue
        found = home[str(outcome.target)]
        assert found.new == entry.old, (entry, found)
        assert same_place(entry.graph, str(found.graph)), (entry, found)
        compared += 1
    assert compared > 20


def same_place(first: str, second: str) -> bool:
    """Whether two graph keys are one, model keys by the name that all their spellings stand for."""
    if first.startswith("callbacks["):
        return second.startswith("callbacks[") and first.rpartition(".")[2] == second.rpartition(".")[2]
    section, _, name = first.rpartition(".")
    other, _, other_name = second.rpartition(".")
    if section == "model.model_config" == other:
        return canonical(name) == canonical(other_name)
    return OTHER_PLACE.get(first, first) == second


@pytest.mark.parametrize("name", FILES)
def test_the_graph_file_that_comes_back_is_the_same_run(shared: Path, name: str) -> None:
    first = converted(shared, name, generous(name))
    assert first.text is not None
    samples = generous(name).samples
    options = Options(world=world_of(first), samples=samples, expert_mesh=ExpertMesh.NESTED, allow_lossy=True)
    second = back(first.text, options)
    assert account(second)
    again = convert(document(str(second.text)), Options(samples=samples, allow_lossy=True))
    assert again.text is not None, [entry.outcome.why for entry in again.refusals]
    assert effective(again.text) == effective(first.text)
    assert back(again.text, options).text is not None


def effective(text: str) -> dict[str, Value]:
    """What a pynative file says, keys at their defaults left out; aliases by their canonical names."""
    found: dict[str, Value] = {}
    specs = specs_of(Config)
    read = value_of(document(text).root)
    for path in paths_of(read):
        value = at(read, path)
        name = path.removeprefix("model.")
        key = f"model.{canonical(name) or name}" if path.startswith("model.") else path
        if key not in specs or value not in (plain(specs[key].default), None):
            found[key] = value
    return found


def at(value: Value, path: str) -> Value:
    for part in path.split(".", 1 if "select_module" in path.partition(".")[0] else -1):
        assert isinstance(value, dict)
        value = value[part]
    return value


def account(conversion: Conversion) -> bool:
    """Whether each leaf has exactly one entry, and the totals add up."""
    counts = totals(conversion)
    sources = [entry.pynative for entry in conversion.entries if entry.source is not None]
    report = report_object(conversion)
    assert isinstance(report["source"], dict)
    return (
        len(set(sources)) == len(sources) == counts["leaves_read"]
        and counts["leaves_read"] == sum(1 for _ in leaves(conversion.document.root))
        and counts["leaves_read"] == sum(count for fate, count in counts.items() if fate != "leaves_read")
        and counts["unknown"] == 0
        and report["source"]["mode"] == "pynative"
    )


@pytest.mark.parametrize("path", ["cases/base/pynative.yaml", "spec/pynative-sample.yaml"])
def test_the_manuals_samples_survive_the_way_there_and_back(shared: Path, path: str) -> None:
    sample = parse(read_source(str(shared / path)))
    legal: dict[str, Value] = {"training.global_batch_size": 8}
    options = Options(world=8, overrides=legal)
    second = reverse(sample, options)
    assert second.text is not None, [entry.outcome.why for entry in second.refusals]
    assert account(replace(second))
    again = convert(document(second.text), Options())
    assert again.text is not None, [entry.outcome.why for entry in again.refusals]
    expected = {**effective(sample.source.text), **legal}
    found = effective(again.text)
    changed = {
        key: (expected.get(key), found.get(key)) for key in {*expected, *found} if expected.get(key) != found.get(key)
    }
    idle = {
        "checkpoint.save_path",  # nothing is saved in the one sample that loses it
        "checkpoint.no_load_optim",  # nothing is loaded
        "parallelism.sequence_parallel",  # comes with tensor_parallel: 2.1 needs it
        "recompute_comm.select_module",  # off is off, with a list or without
    }
    assert set(changed) <= idle, changed
