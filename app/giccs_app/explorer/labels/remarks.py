"""Translations of the notes that computations return with their numbers, in English.

The notes are those of terminal, files and report (`bws.base.notes`). ``notes/LANGUAGE.toml`` has the
translations by English template; values that are words, and beginnings of lines, have tables of their own,
as have titles of pictures. A remark may consist of several notes; other text remains in English.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache, lru_cache, partial
from importlib import resources
from string import Formatter

from bws.base.notes import pattern
from bws.base.text import parse_toml
from giccs_app.explorer.labels import DEFAULT, current_language, local_numbers

Fill = Callable[[re.Match[str]], str]
Replacement = tuple[re.Pattern[str], Fill]
FIRST_MARK = 0xF0000
"""First of the characters for private use that stand for notes."""
WORDS = frozenset(
    {
        "answer",
        "coefficient",
        "components",
        "expected",
        "history",
        "metric",
        "order",
        "other",
        "part",
    }
    | {"split", "unit", "values"}
)
"""Values of notes that are words."""
NUMBERS = frozenset({"estimate", "p", "quantiles", "shares", "values"})
"""Values of notes that are texts with numbers."""


def local_remark(remark: str, language: str = "") -> str:
    """Return a remark in a language, by default the current one.

    >>> local_remark("all: 5 annotators: the interval is approximate below 20", "de")
    'alle: 5 Annotierende: Das Intervall ist bei weniger als 20 nur eine Näherung'
    """
    language = language or current_language()
    return remark if language == DEFAULT else _translated(remark, language)


@lru_cache(maxsize=4096)
def _translated(remark: str, language: str) -> str:
    """Return the remark with its notes translated.

    A character for private use replaces each note until all are found, so that neither translations nor
    values of notes are searched again. A remark that has such characters remains in English.
    """
    if any(ord(character) >= FIRST_MARK for character in remark):
        return remark
    found: list[str] = []

    def expanded(text: str) -> str:
        return "".join(found[ord(c) - FIRST_MARK] if ord(c) >= FIRST_MARK else c for c in text)

    def mark(fill: Fill, match: re.Match[str]) -> str:
        found.append(expanded(fill(match)))
        return chr(FIRST_MARK + len(found) - 1)

    for searched, fill in _replacements(language):
        remark = searched.sub(partial(mark, fill), remark)
    return expanded(remark)


def local_title(title: str) -> str:
    """Return the title of a picture, an axis or a series in the current language."""
    language = current_language()
    return title if language == DEFAULT else translations(language)["titles"].get(title, title)


@cache
def translations(language: str) -> Mapping[str, Mapping[str, str]]:
    """Return the tables of translations: ``words``, ``beginnings``, ``titles`` and ``notes``."""
    file = resources.files(__package__) / "notes" / f"{language}.toml"
    return parse_toml(file.read_text("utf-8"), file.name)


@cache
def _replacements(language: str) -> list[Replacement]:
    """Return the patterns of notes, longest first, with what replaces them."""
    tables = translations(language)
    templates = {**tables["notes"], **tables["beginnings"]}
    return [
        (pattern(template), partial(_filled, template, templates[template], language))
        for template in sorted(templates, key=len, reverse=True)
    ]


def _filled(template: str, translation: str, language: str, match: re.Match[str]) -> str:
    numbers = {name for _, name, form, _ in Formatter().parse(template) if form}
    values = {
        name: _local_number(value, language)
        if name in numbers
        else _local_value(name, value, language)
        for name, value in match.groupdict().items()
    }
    return translation.format(**values)


def _local_value(name: str, value: str, language: str) -> str:
    """Return a value that is text: a note, a word or numbers; names and ids are not translated."""
    if name == "reason":
        return local_remark(value, language)
    if name in WORDS:
        value = translations(language)["words"].get(value, value)
    return local_numbers(value, language) if name in NUMBERS else value


def _local_number(value: str, language: str) -> str:
    return local_numbers(value, language).replace("%", "\N{NO-BREAK SPACE}%")
