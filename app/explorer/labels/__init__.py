"""The texts of the explorer, in English and German.

The texts stand in ``LANGUAGE/PART.toml``, and a key is ``PART.KEY``: ``say("dialogues.next")``. A text may
hold ``{names}``, which the values given replace. A text is Markdown: values that come from data go in through
`literal`.
"""

from __future__ import annotations

from functools import cache
from importlib import resources

from bws.textio import parse_toml

__all__ = ["DEFAULT", "LANGUAGES", "keys", "language", "literal", "say", "text_of"]

LANGUAGES = {"en": "English", "de": "Deutsch"}
DEFAULT = "en"


def say(key: str, /, **values: object) -> str:
    """Return the text of a key in the language that is shown; KeyError where there is no such key."""
    return text_of(key, language(), **values)


def text_of(key: str, language: str, /, **values: object) -> str:
    """Return the text of a key in a language.

    >>> text_of("page.counted", "en", n=12, total=60)
    '12 of 60'
    >>> text_of("page.counted", "de", n=12, total=60)
    '12 von 60'
    """
    part, _, name = key.partition(".")
    text = _texts(language, part)[name]
    return text.format(**values) if values else text


def keys(language: str) -> frozenset[str]:
    """Return all keys of a language."""
    parts = resources.files(__name__) / language
    names = (file.name.removesuffix(".toml") for file in parts.iterdir())
    return frozenset(f"{part}.{key}" for part in names for key in _texts(language, part))


def language() -> str:
    """Return the language that the link asks for, or English."""
    from app.explorer import links

    asked = links.value("lang")
    return asked if asked in LANGUAGES else DEFAULT


def literal(text: object) -> str:
    """Return Markdown that shows a text as it is, whatever is in it: a code span.

    >>> print(literal("**b** $x$"))
    `**b** $x$`
    >>> print(literal("a `tick`"))
    `` a `tick` ``
    """
    line = " ".join(str(text).split()) or " "
    ticks = 1
    while "`" * ticks in line:
        ticks += 1
    fence, pad = "`" * ticks, " " if "`" in line else ""
    return f"{fence}{pad}{line}{pad}{fence}"


@cache
def _texts(language: str, part: str) -> dict[str, str]:
    file = resources.files(__name__) / language / f"{part}.toml"
    return parse_toml(file.read_text(encoding="utf-8"), file.name)
