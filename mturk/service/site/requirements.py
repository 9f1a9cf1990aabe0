"""Descriptions of qualification requirements for workers."""

from __future__ import annotations

from mturk.service.rules.eligibility import COMPARATOR_PHRASES, UnmetRequirement
from mturk.service.site.countries import country_names
from mturk.service.site.texts import TEXTS, number, text

COUNTRY = "Worker_Locale"


def describe_requirement(unmet: UnmetRequirement, language: str) -> str:
    """Describe a requirement in a language; types of the requester keep their names.

    >>> describe_requirement(UnmetRequirement("Worker_Locale", "EqualTo", ("DE",)), "de")
    'Land, in dem Sie leben: Deutschland'
    >>> unmet = UnmetRequirement("Worker_NumberHITsApproved", "GreaterThanOrEqualTo", ("3000",))
    >>> describe_requirement(unmet, "en"), describe_requirement(unmet, "de")
    ('Number of your tasks approved: at least 3,000', 'Zahl Ihrer angenommenen Aufgaben: mindestens 3.000')
    """
    key = f"requirement.{unmet.name}"
    name = text(language, key) if key in TEXTS else unmet.name
    values = [
        _country(value, language) if unmet.name == COUNTRY else number(language, int(value))
        for value in unmet.values
    ]
    phrase = f"requirement.{COMPARATOR_PHRASES[unmet.comparator]}"
    return text(language, phrase, name=name, values=", ".join(values))


def _country(value: str, language: str) -> str:
    """Return the name of a country; the code of a subdivision (US-NY) is appended."""
    code, _, part = value.partition("-")
    name = country_names(language).get(code, code)
    return f"{name} ({part})" if part else name
