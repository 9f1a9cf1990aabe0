"""Descriptions of qualification requirements for workers."""

from __future__ import annotations

import re

from mturk.service.rules.eligibility import COMPARATOR_PHRASES
from mturk.service.site.countries import country_names
from mturk.service.site.texts import number

__all__ = ["describe_requirement"]

NAMES = {
    # name in `unmet_requirements`: (German, English)
    "Worker_Locale": ("Land, in dem Sie leben", "Country you live in"),
    "Worker_PercentAssignmentsApproved": (
        "Anteil Ihrer angenommenen Aufgaben in Prozent", "Percentage of your tasks approved",
    ),
    "Worker_PercentAssignmentsRejected": (
        "Anteil Ihrer abgelehnten Aufgaben in Prozent", "Percentage of your tasks rejected",
    ),
    "Worker_PercentAssignmentsSubmitted": (
        "Anteil Ihrer abgesendeten Aufgaben in Prozent", "Percentage of your tasks submitted",
    ),
    "Worker_PercentAssignmentsReturned": (
        "Anteil Ihrer zurückgegebenen Aufgaben in Prozent", "Percentage of your tasks returned",
    ),
    "Worker_PercentAssignmentsAbandoned": (
        "Anteil Ihrer nicht beendeten Aufgaben in Prozent", "Percentage of your tasks abandoned",
    ),
    "Worker_NumberHITsApproved": (
        "Zahl Ihrer angenommenen Aufgaben", "Number of your tasks approved",
    ),
    "Worker_Adult": ("Volljährigkeit", "Legal age"),
}  # fmt: skip
COMPARATOR_TEXTS = {
    "below": ("weniger als ", "less than "),
    "at most": ("höchstens ", "at most "),
    "above": ("mehr als ", "more than "),
    "at least": ("mindestens ", "at least "),
    "exactly": ("", ""),
    "other than": ("nicht ", "not "),
    "one of": ("eines von ", "one of "),
    "none of": ("keines von ", "none of "),
    "required": ("erforderlich", "required"),
    "not allowed": ("darf nicht vorhanden sein", "must not be present"),
}
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
    index = 0 if language == "de" else 1
    name = NAMES.get(match["name"], (match["name"],) * 2)[index]
    if match["presence"]:
        return f"{name}: {COMPARATOR_TEXTS[match['presence']][index]}"
    values = match["values"]
    if match["name"] == "Worker_Locale":
        values = ", ".join(_country(value, language) for value in values.split(", "))
    else:
        values = ", ".join(number(language, int(value)) for value in values.split(", "))
    return f"{name}: {COMPARATOR_TEXTS[match['comparator']][index]}{values}"


def _country(value: str, language: str) -> str:
    """Return the name of a country; the code of a subdivision (US-NY) is appended."""
    code, _, part = value.partition("-")
    name = country_names(language).get(code, code)
    return f"{name} ({part})" if part else name
