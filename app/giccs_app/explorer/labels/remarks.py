"""Translations of the remarks that computations return with their numbers, in English.

The remarks are those of terminal, files and report. ``notes/LANGUAGE.toml`` has the translations by English
text, in which ``{n:d}`` is an integer, ``{n:f}`` a number, ``{unit}`` one of its words, and another name any
text. Titles of pictures are in a table of their own. A remark may consist of several notes; those without a
translation remain in English.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import cache, partial
from importlib import resources
from string import Formatter

from bws.base.text import parse_toml
from giccs_app.explorer.labels import DEFAULT, current_language

Replacement = tuple[re.Pattern[str], Callable[[re.Match[str]], str]]
VALUES = {"d": r"\d+", "f": r"[-.\d]+"}
"""Format of a value in a template -> its pattern."""


def local_remark(remark: str, language: str = "") -> str:
    """Return a remark in a language, by default the current one.

    >>> local_remark("all: 5 annotators: the interval is approximate below 20", "de")
    'alle: 5 Annotierende: Das Intervall ist bei weniger als 20 nur eine Näherung'
    """
    language = language or current_language()
    if language == DEFAULT:
        return remark
    for pattern, fill in _replacements(language):
        remark = pattern.sub(fill, remark)
    return remark


def local_title(title: str) -> str:
    """Return the title of a picture, an axis or a series in the current language."""
    language = current_language()
    return title if language == DEFAULT else _tables(language)["titles"].get(title, title)


@cache
def _tables(language: str) -> Mapping[str, Mapping[str, str]]:
    file = resources.files(__package__) / "notes" / f"{language}.toml"
    return parse_toml(file.read_text("utf-8"), file.name)


def translations(language: str) -> tuple[Mapping[str, str], Mapping[str, str]]:
    """Return the translations of words and of notes."""
    tables = _tables(language)
    return tables["words"], tables["notes"]


@cache
def _replacements(language: str) -> list[Replacement]:
    words, notes = translations(language)
    return [
        (_pattern(template, words), partial(_filled, translation, words))
        for template, translation in notes.items()
    ]


def _pattern(template: str, words: Iterable[str]) -> re.Pattern[str]:
    units = "|".join(map(re.escape, sorted(words, key=len, reverse=True)))
    pattern = r"(?<!\w)"
    for text, name, form, _ in Formatter().parse(template):
        value = units if name == "unit" else VALUES.get(form or "", ".+?")
        pattern += re.escape(text) + (f"(?P<{name}>{value})" if name else "")
    return re.compile(pattern)


def _filled(translation: str, words: Mapping[str, str], match: re.Match[str]) -> str:
    return translation.format(
        **{name: words.get(value, value) for name, value in match.groupdict().items()}
    )
