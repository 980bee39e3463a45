"""Generated YAML for graph files: nested sections, lists of mappings, anchors, aliases, merge keys, empty values."""

from dataclasses import dataclass, field
from typing import NamedTuple

from graph_text import GRAPH
from hypothesis import strategies as st

SCALARS = (
    "1", "-3", "0x1F", "0b11", "017", "1_000", "2.5", "1.e-8", "1e-5", ".inf", "-.INF", ".nan", "190:20:30", "True",
    "no", "null", "~", "", "'quoted # text'", '"a\\tb \\u4e2d"', "plain text", "语料", "a:b", "0-3", "2026-12-01",
    "!!str 5",
)  # fmt: skip
KEYS = ("alpha", "beta_2", "'two words'", "中文", "5", "True", "~", '"q"', "dash-ed")
PLACES = {
    "top": ("seed: 7\n", 0),
    "optimizer": ("  eps: 1.e-8\n", 2),
    "data": ("      eod: 1\n", 6),
    "end": ("parallel_config:\n", 2),
    "model": ("    vocab_size: 512\n", 4),
    "callback": ("  - type: MFLossMonitor\n", 4),
    "wrapper": ("  use_clip_grad: True\n", 2),
}
"""Lines of the small graph file behind which generated keys may stand, in file order, and their indentation."""


class Anchor(NamedTuple):
    """A finished anchor; `merges` when a merge key may name it."""

    name: str
    merges: bool


@dataclass
class Writer:
    """Draws a file piece by piece; anchors are known to what comes later."""

    draw: st.DrawFn
    anchors: list[Anchor] = field(default_factory=list)
    count: int = 0

    def one_of(self, *choices: str) -> str:
        return self.draw(st.sampled_from(choices))

    def key(self) -> str:
        """A key that no other mapping of the file has."""
        self.count += 1
        name = self.one_of(*KEYS)
        return f"{name[:-1]}{self.count}{name[-1]}" if name[0] in "'\"" else f"{name}{self.count}"

    def value(self, indent: int, depth: int) -> str:
        """The text behind `key:` or `-`: an inline value, or lines at `indent`; with an anchor now and then."""
        kinds = ["scalar", "scalar", "flow", "map", "maps", "list"] if depth < 3 else ["scalar", "flow"]
        kind = self.one_of(*kinds, *(["alias"] * 2 if self.anchors else []))
        if kind == "alias":
            return f" *{self.draw(st.sampled_from(self.anchors)).name} "
        text = self.body(kind, indent, depth)
        if self.draw(st.integers(0, 3)):
            return text
        self.anchors.append(Anchor(f"anchor{len(self.anchors)}", merges=kind == "map"))
        return f" &{self.anchors[-1].name}{text}"

    def body(self, kind: str, indent: int, depth: int) -> str:
        if kind == "scalar":
            return f" {self.one_of(*SCALARS)}"
        if kind == "flow":
            return " " + self.one_of("[]", "{}", "[1, [2, 3], x]", "{a: 1, b: {c: []}}", "[{d: 1}, 2]", "[[], {}]")
        if kind == "map":
            return "\n" + self.section(indent, depth)
        items = self.draw(st.integers(1, 3))
        if kind == "list":
            return "".join(f"\n{' ' * indent}- {self.one_of(*SCALARS[:6], '[1, 2]')}" for _ in range(items))
        return "".join(f"\n{' ' * indent}-{self.value(indent + 2, depth + 1)}" for _ in range(items))

    def section(self, indent: int, depth: int) -> str:
        """Lines of `key: value`, with a merge key among them now and then."""
        lines = [f"{' ' * indent}{self.key()}:{self.value(indent + 2, depth + 1)}" for _ in range(self.size())]
        sources = [anchor.name for anchor in self.anchors if anchor.merges]
        if self.draw(st.integers(0, 2)) == 0:
            chosen = [f"*{name}" for name in self.draw(st.permutations(sources))[:2]]
            merged = chosen[0] if len(chosen) == 1 else f"[{', '.join([*chosen, '{m: 1, n: [2]}'])}]"
            lines.append(f"{' ' * indent}<<: {merged} ")
        return "\n".join(lines)

    def size(self) -> int:
        return self.draw(st.integers(1, 3))


@st.composite
def graph_files(draw: st.DrawFn, without: tuple[str, ...] = ()) -> str:
    """The small graph file with generated keys in some of its sections, all of them unknown to graph mode."""
    writer = Writer(draw)
    text = GRAPH
    for place, (line, indent) in PLACES.items():
        if place not in without and draw(st.booleans()):
            text = text.replace(line, line + writer.section(indent, 1 if indent > 2 else 0) + "\n")
    return text
