"""Languages of people: ISO 639 codes, with their names from Unicode CLDR."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping

from babel import Locale

from mturk.service.site.countries import sort_key
from mturk.service.site.texts import LANGUAGES

__all__ = ["language_names"]

CODE = re.compile("[a-z]{2,3}")
NOT_LANGUAGES = {"mul", "und", "zxx"}
"""Codes for several, unknown and no languages."""


@functools.cache
def language_names(language: str) -> Mapping[str, str]:
    """Return code -> name of every language, in German (``de``) or English (``en``), sorted by name.

    >>> language_names("de")["nl"]
    'Niederländisch'
    """
    codes = set.intersection(*(set(Locale(one).languages) for one in LANGUAGES))
    names = Locale(language).languages
    pairs = [(code, names[code]) for code in codes - NOT_LANGUAGES if CODE.fullmatch(code)]
    return dict(sorted(pairs, key=lambda pair: sort_key(pair[1])))
