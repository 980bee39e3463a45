"""Numbers and values as sentences for users have them."""

from msmigrate.yaml.scalars import Value, spell

_LONGEST = 60


def counted(number: int, noun: str) -> str:
    """A number with its noun, singular or plural: `1 rank`, `2 ranks`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def shown(value: Value) -> str:
    """The YAML text of a value, cut where it is too long for a sentence."""
    return cut(spell(value))


def cut(text: str) -> str:
    """A text, cut where it is too long for a sentence, with its length then."""
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}… ({len(text)} characters)"
