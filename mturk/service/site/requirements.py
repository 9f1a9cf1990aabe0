"""What a worker lacks for a HIT, in words that a person uses."""

from __future__ import annotations

import re

from mturk.service.rules.eligibility import WORDS
from mturk.service.site.countries import country_names

__all__ = ["in_words"]

NAMES = {
    # name in `eligibility.unmet`: (German, English)
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
        "Anteil Ihrer liegen gelassenen Aufgaben in Prozent", "Percentage of your tasks abandoned",
    ),
    "Worker_NumberHITsApproved": (
        "Zahl Ihrer angenommenen Aufgaben", "Number of your tasks approved",
    ),
    "Worker_Adult": ("Volljährigkeit", "Being of age"),
}  # fmt: skip
HOW = {
    "below": ("weniger als ", "less than "),
    "at most": ("höchstens ", "at most "),
    "above": ("mehr als ", "more than "),
    "at least": ("mindestens ", "at least "),
    "exactly": ("", ""),
    "other than": ("nicht ", "not "),
    "one of": ("eines von ", "one of "),
    "none of": ("keines von ", "none of "),
    "required": ("wird verlangt", "is required"),
    "not allowed": ("darf nicht vorhanden sein", "must not be there"),
}
LINE = re.compile(
    rf"(?P<name>.+) (?:must be (?P<how>{'|'.join(WORDS.values())}) (?P<values>.+)|"
    r"is (?P<there>required|not allowed))"
)


def in_words(line: str, language: str) -> str:
    """Say a line of `eligibility.unmet` in the worker's language; one of another form stays as it is.

    >>> in_words("Worker_Locale must be exactly DE", "de")
    'Land, in dem Sie leben: Deutschland'
    >>> in_words("Worker_NumberHITsApproved must be at least 100", "en")
    'Number of your tasks approved: at least 100'
    """
    found = LINE.fullmatch(line)
    if found is None:
        return line
    place = 0 if language == "de" else 1
    name = NAMES.get(found["name"], (found["name"],) * 2)[place]
    if found["there"]:
        return f"{name}: {HOW[found['there']][place]}"
    values = found["values"]
    if found["name"] == "Worker_Locale":
        values = ", ".join(_country(value, language) for value in values.split(", "))
    return f"{name}: {HOW[found['how']][place]}{values}"


def _country(value: str, language: str) -> str:
    """Name a country; a part of one (US-NY) keeps its code behind it."""
    code, _, part = value.partition("-")
    name = country_names(language).get(code, code)
    return f"{name} ({part})" if part else name
