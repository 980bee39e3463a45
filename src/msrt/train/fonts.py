"""What of a name can be drawn with the installed fonts."""

from functools import cache
from pathlib import Path

CHINESE = (
    "Noto Sans CJK SC", "Noto Sans SC", "Source Han Sans SC", "Source Han Sans CN", "WenQuanYi Micro Hei",
    "WenQuanYi Zen Hei", "SimHei", "Microsoft YaHei", "PingFang SC", "Heiti SC", "Noto Sans CJK JP",
    "Droid Sans Fallback",
)  # fmt: skip
"""Fonts with Chinese characters, as far as a Linux, Windows or macOS machine may have them."""


@cache
def families() -> list[str]:
    """matplotlib's own font, then the first installed one of `CHINESE`; each character is drawn with the first that
    has it."""
    from matplotlib import font_manager

    installed = {font.name for font in font_manager.fontManager.ttflist}
    return ["DejaVu Sans", *[name for name in CHINESE if name in installed][:1]]


def drawable(name: str) -> str:
    """`name` with an escape such as \\u4e2d for each character that no font of `families` has."""
    known = _characters()
    return "".join(
        char if ord(char) in known and char.isprintable() else char.encode("unicode_escape").decode() for char in name
    )


@cache
def _characters() -> frozenset[int]:
    from matplotlib import font_manager, ft2font

    manager = font_manager.fontManager
    paths = [Path(manager.findfont(family, fallback_to_default=False)) for family in families()]
    return frozenset(code for path in paths for code in ft2font.FT2Font(str(path)).get_charmap())
