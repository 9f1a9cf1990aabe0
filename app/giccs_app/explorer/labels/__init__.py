"""The texts of the explorer, in English and German.

The texts are in ``LANGUAGE/PART.toml``; a key is ``PART.KEY``: ``say("dialogues.next")``. A text may contain
``{names}``, which are replaced by values. Texts are Markdown: values from data are escaped with `literal`.
"""

from __future__ import annotations

import re
from functools import cache
from importlib import resources

from bws.base.tables import number_text
from bws.base.text import parse_toml

__all__ = [
    "DEFAULT",
    "LANGUAGES",
    "current_language",
    "format_number",
    "keys",
    "literal",
    "local_numbers",
    "plain",
    "say",
    "text_of",
]

LANGUAGES = {"en": "English", "de": "Deutsch"}
DEFAULT = "en"
GERMAN_SEPARATORS = str.maketrans({",": ".", ".": ",", "%": "\u00a0%"})


def say(key: str, /, **values: object) -> str:
    """Return the text of a key in the current language; KeyError if the key is unknown."""
    return text_of(key, current_language(), **values)


def text_of(key: str, language: str, /, **values: object) -> str:
    """Return the text of a key in a language; integers get thousands separators.

    >>> text_of("page.counted", "en", n=12, total=60)
    '12 of 60'
    >>> text_of("page.counted", "de", n=12, total=3000)
    '12 von 3.000'
    """
    part, _, name = key.partition(".")
    text = _texts(language, part)[name]
    texts = {
        name: format_number(value, ",", language) if type(value) is int else value
        for name, value in values.items()
    }
    return text.format(**texts) if texts else text


def format_number(value: float, spec: str, language: str = "") -> str:
    """Return a number with the separators of a language, by default the current one.

    spec: as of `format`.

    >>> format_number(3000, ",", "de"), format_number(0.38, ".0%", "de"), format_number(0.384, ".2f", "en")
    ('3.000', '38\xa0%', '0.38')
    """
    text = number_text(value, spec)
    return text.translate(GERMAN_SEPARATORS) if (language or current_language()) == "de" else text


def local_numbers(text: str, language: str = "") -> str:
    """Return a text with numbers and intervals with the separators of a language, by default the current one.

    >>> local_numbers("0.108 [-0.012, 0.225]", "de"), local_numbers("0.108 [-0.012, 0.225]", "en")
    ('0,108 [-0,012; 0,225]', '0.108 [-0.012, 0.225]')
    """
    if (language or current_language()) != "de":
        return text
    return re.sub(r"(?<=\d)\.(?=\d)", ",", text.replace(", ", "; "))


def keys(language: str) -> frozenset[str]:
    """Return all keys of a language."""
    parts = resources.files(__name__) / language
    names = (file.name.removesuffix(".toml") for file in parts.iterdir())
    return frozenset(f"{part}.{key}" for part in names for key in _texts(language, part))


def current_language() -> str:
    """Return the language given by the link, by default English."""
    from giccs_app.explorer import links

    tag = links.value("lang")
    return tag if tag in LANGUAGES else DEFAULT


def literal(text: object) -> str:
    """Return a text as a Markdown code span, so that nothing in it is rendered.

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


def plain(text: object) -> str:
    """Return a text as Markdown in which only web addresses and arrows are rendered, in the font of the page.

    >>> print(plain("**b** $x$, 3:w [0.1, 0.2]"))
    \\*\\*b\\*\\* \\$x\\$, 3\\:w \\[0.1, 0.2\\]
    >>> print(plain("- 1 item"), plain("1. item"))
    \\- 1 item 1\\. item
    """
    line = " ".join(str(text).split())
    line = re.sub(r":(?=[\w/+-]+:)", ":\u2060", line)  # Streamlit searches icons after Markdown
    line = re.sub(r"([\\`*_\[\]<>$#~|&]|:(?=\w))", r"\\\1", line)
    return re.sub(r"^(\d*)([-+=.)])", r"\1\\\2", line)


@cache
def _texts(language: str, part: str) -> dict[str, str]:
    file = resources.files(__name__) / language / f"{part}.toml"
    return parse_toml(file.read_text(encoding="utf-8"), file.name)
