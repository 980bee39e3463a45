"""Scalars as the real readers see them: PyYAML's YAML 1.1 rules, and spellings that PyYAML reads back unchanged."""

import datetime
import math
import re

Value = None | bool | int | float | str | list["Value"] | dict[str, "Value"]
"""What a node means: scalars, lists and mappings with text keys."""

_WORDS: dict[str, bool | None] = {
    **dict.fromkeys(("yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"), True),
    **dict.fromkeys(("no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"), False),
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
}
_FLOAT = re.compile(
    r"""[-+]?(?:[0-9][0-9_]*)\.[0-9_]*(?:[eE][-+][0-9]+)?
      | \.[0-9][0-9_]*(?:[eE][-+][0-9]+)?
      | [-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+\.[0-9_]*
      | [-+]?\.(?:inf|Inf|INF)
      | \.(?:nan|NaN|NAN)""",
    re.VERBOSE,
)
_INT = re.compile(
    r"""[-+]?0b[0-1_]+
      | [-+]?0[0-7_]+
      | [-+]?(?:0|[1-9][0-9_]*)
      | [-+]?0x[0-9a-fA-F_]+
      | [-+]?[1-9][0-9_]*(?::[0-5]?[0-9])+""",
    re.VERBOSE,
)
_TIMESTAMP = re.compile(
    r"""[0-9]{4}-[0-9]{2}-[0-9]{2}
      | [0-9]{4}-[0-9]{1,2}-[0-9]{1,2}(?:[Tt]|[ \t]+)[0-9]{1,2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]*)?
        (?:[ \t]*(?:Z|[-+][0-9]{1,2}(?::?[0-9]{2})?))?""",
    re.VERBOSE,
)
_LOOKS_NUMERIC = re.compile(r"[-+]?(?:[0-9][0-9_]*)(?:\.[0-9_]*)?[eE][-+]?[0-9]+")


def resolve_plain(text: str) -> Value:
    """The value PyYAML's safe loader gives a plain scalar, such as "1e-5" (a string) or "1.e-5" (a float).

    Timestamps stay text: no reader of these files uses dates. Raises ValueError for text that PyYAML takes for a
    number and then cannot convert, such as "0_" in octal.
    """
    if text in _WORDS:
        return _WORDS[text]
    if _FLOAT.fullmatch(text):
        return to_float(text)
    if _INT.fullmatch(text):
        return to_int(text)
    return text


def to_int(text: str) -> int:
    """The whole number that PyYAML makes of a text with the tag int; raises ValueError when it makes none."""
    digits = text.replace("_", "")
    sign = -1 if digits.startswith("-") else 1
    digits = digits.lstrip("+-")
    if digits == "0":
        return 0
    if digits.startswith("0b"):
        return sign * int(digits[2:], 2)
    if digits.startswith("0x"):
        return sign * int(digits[2:], 16)
    if digits.startswith("0"):
        return sign * int(digits, 8)
    if ":" in digits:
        return sign * int(_sexagesimal(digits, int))
    return sign * int(digits)


def to_float(text: str) -> float:
    """The number that PyYAML makes of a text with the tag float; raises ValueError when it makes none."""
    digits = text.replace("_", "").lower()
    sign = -1.0 if digits.startswith("-") else 1.0
    digits = digits.lstrip("+-")
    if digits == ".inf":
        return sign * math.inf
    if digits == ".nan":
        return math.nan
    if ":" in digits:
        return sign * _sexagesimal(digits, float)
    return sign * float(digits)


def _sexagesimal(digits: str, number: type[int] | type[float]) -> float:
    total: float = 0
    for part in digits.split(":"):
        total = total * 60 + number(part)
    return total


def is_unsafe_float(text: str) -> bool:
    """Whether a plain scalar is a number for people and a string for PyYAML, such as "1e-5"."""
    return bool(_LOOKS_NUMERIC.fullmatch(text)) and not _FLOAT.fullmatch(text)


def is_date(text: str) -> bool:
    """Whether PyYAML takes a plain scalar for a date or a time."""
    return bool(_TIMESTAMP.fullmatch(text))


def is_broken_date(text: str) -> bool:
    """Whether PyYAML takes a plain scalar for a date that does not exist, and stops at it."""
    if not is_date(text):
        return False
    year, month, day = (int(part) for part in re.split(r"[^0-9]", text)[:3])
    try:
        datetime.date(year, month, day)
    except ValueError:
        return True
    return False


def spell(value: Value) -> str:
    """Plain or quoted YAML text that PyYAML reads back as exactly `value`; lists and mappings in flow style."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "True" if value else "False"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return spell_float(value)
    if isinstance(value, list):
        return "[" + ", ".join(_in_flow(item) for item in value) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_in_flow(key)}: {_in_flow(item)}" for key, item in value.items()) + "}"
    return _spell_text(str(value))


def spell_float(value: float) -> str:
    """The shortest spelling that both PyYAML and YAML 1.2 readers take for this float, such as "1.0e-05"."""
    if math.isnan(value):
        return ".nan"
    if math.isinf(value):
        return ".inf" if value > 0 else "-.inf"
    text = repr(value)
    mantissa, exponent_sign, exponent = text.partition("e")
    if not exponent_sign:
        return text
    if "." not in mantissa:
        mantissa += ".0"
    return f"{mantissa}e{exponent}"


_PLAIN = re.compile(r"[A-Za-z0-9_./\\(+$^~*-][^\x00-\x1f\x7f]*")
_RISKY_START = ("- ", "? ", ": ", "*", "&", "!", "~")


def _spell_text(text: str) -> str:
    if _is_plain(text):
        return text
    if text.isprintable():
        return "'" + text.replace("'", "''") + "'"
    return '"' + "".join(_escape(char) for char in text) + '"'


def _is_plain(text: str) -> bool:
    return (
        bool(_PLAIN.fullmatch(text))
        and text.isprintable()
        and isinstance(_plain_or_none(text), str)
        and not is_unsafe_float(text)
        and not _TIMESTAMP.fullmatch(text)
        and not text.startswith(_RISKY_START)
        and text not in ("-", "=", "<<", "---", "...")
        and ": " not in text
        and " #" not in text
        and not text.endswith((":", " "))
    )


def _plain_or_none(text: str) -> Value:
    try:
        return resolve_plain(text)
    except ValueError:
        return None


def _escape(char: str) -> str:
    if char in '"\\':
        return "\\" + char
    if char.isprintable():
        return char
    code = ord(char)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _in_flow(value: Value) -> str:
    if isinstance(value, str) and any(char in value for char in ",[]{}?"):
        return "'" + value.replace("'", "''") + "'" if value.isprintable() else _spell_text(value)
    return spell(value)
