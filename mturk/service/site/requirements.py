"""Descriptions of qualification requirements for workers."""

from __future__ import annotations

import re

from mturk.service.rules.eligibility import COMPARATOR_PHRASES
from mturk.service.site.countries import country_names
from mturk.service.site.texts import TEXTS, number, text

LINE = re.compile(
    rf"(?P<name>.+) (?:must be (?P<comparator>{'|'.join(COMPARATOR_PHRASES.values())}) (?P<values>.+)|"
    r"is (?P<presence>required|not allowed))"
)


def describe_requirement(line: str, language: str) -> str:
    """Translate a line of `unmet_requirements`; lines of another form are returned unchanged.

    >>> describe_requirement("Worker_Locale must be exactly DE", "de")
    'Land, in dem Sie leben: Deutschland'
    >>> describe_requirement("Worker_NumberHITsApproved must be at least 100", "en")
    'Number of your tasks approved: at least 100'
    >>> describe_requirement("Worker_NumberHITsApproved must be at least 3000", "de")
    'Zahl Ihrer angenommenen Aufgaben: mindestens 3.000'
    """
    match = LINE.fullmatch(line)
    if match is None:
        return line
    key = f"requirement.{match['name']}"
    name = text(language, key) if key in TEXTS else match["name"]
    values = match["values"] or ""
    if match["name"] == "Worker_Locale":
        values = ", ".join(_country(value, language) for value in values.split(", ") if value)
    else:
        values = ", ".join(number(language, int(value)) for value in values.split(", ") if value)
    phrase = match["presence"] or match["comparator"]
    return text(language, f"requirement.{phrase}", name=name, values=values)


def _country(value: str, language: str) -> str:
    """Return the name of a country; the code of a subdivision (US-NY) is appended."""
    code, _, part = value.partition("-")
    name = country_names(language).get(code, code)
    return f"{name} ({part})" if part else name
