"""Countries in which a worker may live: ISO 3166-1 codes, with their names from Unicode CLDR."""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Mapping

from giccs.benchmark.languages import base_language
from mturk.catalogues import locale

CODE = re.compile("[A-Z]{2}")
NOT_COUNTRIES = {
    "AC", "CP", "CQ", "DG", "EA", "IC", "TA",  # islands and exclaves of countries
    "EU", "EZ", "UN", "QO", "XA", "XB", "ZZ",
}  # fmt: skip
SHORT_NAMES: Mapping[str, dict[str, str]] = {
    "de": {
        "FK": "Falklandinseln (Malwinen)", "HK": "Hongkong", "MO": "Macau", "PS": "Palästina",
    },
    "en": {
        "FK": "Falkland Islands (Islas Malvinas)", "HK": "Hong Kong", "MO": "Macao",
        "PS": "Palestine",
    },
}  # fmt: skip
"""Names for menus, which CLDR has as alternatives and Babel leaves out."""
BASE_LETTERS = str.maketrans("łŁøØđĐı", "lLoOdDi")
"""Letters whose accent is not a combining character."""


@functools.cache
def country_names(language: str) -> Mapping[str, str]:
    """Return code -> name of every country in a language, or its English name.

    >>> country_names("de")["EG"], country_names("es")["EG"]
    ('Ägypten', 'Egipto')
    """
    english, names = locale("en").territories, locale(language).territories
    codes = set(filter(CODE.fullmatch, english)) - NOT_COUNTRIES
    short_names = SHORT_NAMES.get(base_language(language), {})
    return {code: str(names.get(code, english[code])) for code in codes} | short_names


@functools.cache
def countries(language: str) -> list[tuple[str, str]]:
    """Return (code, name) of every country, in alphabetical order of the names.

    >>> countries("de")[0]
    ('AF', 'Afghanistan')
    """
    return sorted(country_names(language).items(), key=lambda country: sort_key(country[1]))


def sort_key(name: str) -> str:
    """Return a name without its accents, so that Ägypten is next to Albanien."""
    letters = unicodedata.normalize("NFD", name.translate(BASE_LETTERS))
    return "".join(letter for letter in letters if not unicodedata.combining(letter)).casefold()
