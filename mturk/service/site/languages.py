"""Languages of people: ISO 639 codes, with their names from Unicode CLDR."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping

from mturk.catalogues import locale
from mturk.service.site.countries import sort_key

CODE = re.compile("[a-z]{2,3}")
NOT_LANGUAGES = {"mul", "und", "zxx"}
"""Codes for several, unknown and no languages."""


@functools.cache
def language_names(language: str) -> Mapping[str, str]:
    """Return code -> name of every language in a language, sorted by name, with English names last.

    >>> language_names("de")["nl"], language_names("es")["nl"]
    ('Niederländisch', 'neerlandés')
    """
    english, names = locale("en").languages, locale(language).languages
    codes = (set(english) & set(locale("de").languages)) - NOT_LANGUAGES
    pairs = [(code, str(names.get(code, english[code]))) for code in codes if CODE.fullmatch(code)]
    return dict(sorted(pairs, key=lambda pair: (pair[0] not in names, sort_key(pair[1]))))
