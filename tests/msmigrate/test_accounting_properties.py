"""Whatever a graph file holds: every leaf once in the account, the same bytes each time, and never converted twice."""

from collections import Counter
from collections.abc import Iterator

import pytest
import yaml
from graph_text import converted, document, edited
from graph_trees import graph_files
from hypothesis import HealthCheck, given, settings

from msmigrate.convert import AlreadyPynativeError, Conversion
from msmigrate.options import Options
from msmigrate.report import report_object, totals

SLOW = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)


class Walker:
    """The leaves of a file by PyYAML's own nodes: an alias shows as a node that has been met before."""

    def __init__(self) -> None:
        self.met: set[int] = set()

    def leaves(self, node: yaml.Node, path: str) -> Iterator[str]:
        if isinstance(node, yaml.ScalarNode):
            yield path
            return
        assert isinstance(node, yaml.CollectionNode)
        if id(node) in self.met or not node.value:
            yield path
            return
        self.meet(node)
        if isinstance(node, yaml.MappingNode):
            for key, value in node.value:
                yield from self.entry(key, value, f"{path}.{key.value}" if path else key.value)
        elif self.holds_mappings(node):
            for position, item in enumerate(node.value):
                yield from self.leaves(item, f"{path}[{position}]")
        else:
            self.meet_all(node)
            yield path

    def entry(self, key: yaml.ScalarNode, value: yaml.Node, path: str) -> Iterator[str]:
        if key.tag == "tag:yaml.org,2002:merge":
            self.meet_all(value)
            yield path
            return
        yield from self.leaves(value, path)

    def holds_mappings(self, node: yaml.Node) -> bool:
        if isinstance(node, yaml.SequenceNode):
            return any(self.holds_mappings(item) for item in node.value)
        return isinstance(node, yaml.MappingNode)

    def meet(self, node: yaml.Node) -> None:
        self.met.add(id(node))

    def meet_all(self, node: yaml.Node) -> None:
        """Anchors inside what counts as one leaf are met too."""
        self.meet(node)
        if isinstance(node, yaml.SequenceNode):
            for item in node.value:
                self.meet_all(item)
        elif isinstance(node, yaml.MappingNode):
            for _, value in node.value:
                self.meet_all(value)


def expected_leaves(text: str) -> Counter[str]:
    root = yaml.compose(text, Loader=yaml.SafeLoader)
    assert root is not None
    return Counter(Walker().leaves(root, ""))


def accounted(conversion: Conversion) -> Counter[str]:
    return Counter(entry.graph for entry in conversion.entries if entry.graph is not None)


def test_the_walker_counts_as_the_report_promises() -> None:
    text = "a: &x {b: 1, c: []}\nd: *x\ne: [[1, 2], 3]\nf:\n  - g: ~\n  - i\n  - *x\nk:\n  <<: *x\ns: &s 1\nt: *s\n"
    assert list(expected_leaves(text)) == ["a.b", "a.c", "d", "e", "f[0].g", "f[1]", "f[2]", "k.<<", "s", "t"]


@SLOW
@given(graph_files())
def test_every_leaf_has_exactly_one_entry(text: str) -> None:
    expected = expected_leaves(text)
    assert max(expected.values()) == 1
    conversion = converted(text)
    assert accounted(conversion) == expected
    counts = totals(conversion)
    assert counts["leaves_read"] == sum(expected.values())
    assert counts["leaves_read"] == sum(count for fate, count in counts.items() if fate != "leaves_read")
    assert report_object(conversion)["totals"] == counts


@SLOW
@given(graph_files())
def test_files_of_other_families_are_accounted_for_too(text: str) -> None:
    foreign = f"training_args:\n  a: 1\n{text}"
    conversion = converted(foreign, Options(allow_lossy=True))
    assert accounted(conversion) == expected_leaves(foreign)
    assert {entry.outcome.fate.value for entry in conversion.entries} == {"refused"}
    assert conversion.text is None


@SLOW
@given(graph_files(without=("model",)))
def test_the_same_file_gives_the_same_bytes_and_is_converted_once(text: str) -> None:
    first, second = converted(text), converted(text)
    assert first.text is not None
    assert (first.text, first.notes) == (second.text, second.notes)
    assert report_object(first) == report_object(second)
    with pytest.raises(AlreadyPynativeError, match="nothing was written"):
        converted(first.text)


def test_a_list_of_aliases_is_a_list_of_mappings() -> None:
    saver = '  - type: MFLossMonitor\n  - type: CheckpointMonitor\n    prefix: "run"\n    save_checkpoint_steps: 50\n'
    text = "saver: &saver\n  type: CheckpointMonitor\n  prefix: kept\n" + edited((saver, "  - *saver\n"))
    conversion = converted(text)
    assert accounted(conversion) == expected_leaves(text)
    assert conversion.text is not None
    assert yaml.safe_load(conversion.text)["checkpoint"]["prefix"] == "kept"
    assert document(text).find(("callbacks", 0, "prefix")) is not None
