"""Where a block scalar (`|`, `>`) ends: parsers count the comments behind it as part of it."""

from msmigrate.yaml.nodes import Mark, Span


def block_end(text: str, span: Span) -> Mark:
    """The end of the last line that belongs to the block scalar in `span`; kept blank lines (`|+`) belong to it."""
    header_end = text.find("\n", span.start.index)
    header = text[span.start.index : header_end if header_end >= 0 else len(text)]
    if header_end < 0:
        return _mark_after(span, header)
    lines = text[header_end + 1 : span.end.index].split("\n")
    kept = _content_lines(lines, keep="+" in header.split("#")[0])
    return _mark_after(span, "\n".join([header, *lines[:kept]]))


def _content_lines(lines: list[str], *, keep: bool) -> int:
    """How many of the lines behind the header are content."""
    first = next((line for line in lines if line.strip()), None)
    if first is None:
        return len(lines) - 1 if keep else 0
    indent = len(first) - len(first.lstrip(" "))
    inside = 0
    for number, line in enumerate(lines):
        if line.strip() and len(line) - len(line.lstrip(" ")) < indent:
            break
        if line.strip() or keep:
            inside = number + 1
    return inside - 1 if keep and inside == len(lines) and not lines[-1] else inside


def _mark_after(span: Span, piece: str) -> Mark:
    breaks = piece.count("\n")
    column = len(piece) - piece.rfind("\n") if breaks else span.start.column + len(piece)
    return Mark(span.start.index + len(piece), span.start.line + breaks, column)
