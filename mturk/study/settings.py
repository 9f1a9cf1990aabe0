"""Settings of a study: language, title, reward, times, qualifications; and what the service calls them."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from mturk import limits
from mturk.kinds.texts import texts_of
from mturk.money import hourly_wage

__all__ = ["Settings"]

APPROVAL_RATE = "000000000000000000L0"
HITS_APPROVED = "00000000000000000040"
GERMAN = texts_of("mturk.kinds.tuples", "de")["hit"]


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of a study; the defaults are those of the paper (section 3.2), a study in German.

    `default_settings` returns those of a study in another language.
    """

    kind: str = "tuples"
    """What workers are asked: tuples of utterances; conditions of sentence pairs; their verification."""
    title: str = GERMAN["title"]
    """What workers see in the list of work; 1 to 128 characters."""
    description: str = GERMAN["description"]
    keywords: str = GERMAN["keywords"]
    language: str = "de"
    """Language of the page's own texts: one in which the kind has texts, or that of `texts`."""
    dialogue_language: str = "de"
    """Language of the dialogues or sentences, a BCP 47 tag; it is the ``lang`` of their HTML elements."""
    texts: str = ""
    """Content of the TOML file with the page's own texts; empty for those that ship."""
    consent: str = ""
    """Who asks, what becomes of the answers and whom to write to; shown on the page, empty for nothing."""
    language_check: bool = True
    """Whether the page asks for one word in the language of the dialogues."""
    comment_box: bool = True
    """Whether the page has a field for a comment."""
    reward: Decimal = Decimal("0.30")
    """US dollars an assignment."""
    assignments: int = 5
    """Workers a HIT (MaxAssignments)."""
    dialogues_per_hit: int = 2
    """Dialogues, each with one tuple, on a page; or sentence pairs."""
    seed: int = 0
    """Decides which tuples share a HIT."""
    expected_seconds: int = 60
    """How long a HIT takes a worker; for the hourly wage only."""
    currency: str = "EUR"
    """The currency of the minimum wage."""
    exchange_rate: Decimal = Decimal("0.86")
    """How much of `currency` one US dollar is."""
    minimum_wage: Decimal = Decimal("13.90")
    """An hour, in `currency`."""
    spending_limit: Decimal = Decimal("0.00")
    """US dollars that the study may cost with all fees; 0 is no limit."""
    lifetime: int = 604_800
    """Seconds for which a HIT is offered."""
    duration: int = 1_800
    """Seconds that a worker has for a HIT."""
    auto_approval_delay: int = 604_800
    """Seconds after which an answer that nobody reviewed is approved."""
    approval_rate_above: int = 98
    """Percent of the worker's answers that must have been approved, exclusive; -1 is no such rule."""
    hits_approved_at_least: int = 0
    """How many approved HITs a worker must have; 0 is everybody."""
    countries: tuple[str, ...] = ("DE",)
    """Two-letter codes of the countries workers may be in; empty is no such rule."""
    own_qualifications: tuple[str, ...] = ()
    """Ids of qualification types of your own that a worker must have, ``ID>=60`` with at least this value,
    or, as ``!ID``, must not have."""
    pseudonyms: bool = True
    """Whether worker ids are replaced by pseudonyms in the ledger and the judgments."""

    def qualifications(self) -> list[dict[str, Any]]:
        """Return the QualificationRequirements in boto3's form.

        The approval rate is paired with the number of approved HITs, since whoever has few counts as 100 %.

        >>> [q["Comparator"] for q in Settings().qualifications()]
        ['GreaterThan', 'GreaterThanOrEqualTo', 'EqualTo']
        """
        required = []
        if self.approval_rate_above >= 0:
            required.append(_number(APPROVAL_RATE, "GreaterThan", self.approval_rate_above))
        if self.approval_rate_above >= 0 or self.hits_approved_at_least:
            required.append(
                _number(HITS_APPROVED, "GreaterThanOrEqualTo", self.hits_approved_at_least)
            )
        if self.countries:
            comparator = "EqualTo" if len(self.countries) == 1 else "In"
            places = [{"Country": country} for country in self.countries]
            required.append(
                {
                    "QualificationTypeId": limits.LOCALE,
                    "Comparator": comparator,
                    "LocaleValues": places,
                }
            )
        return [*required, *map(_own, self.own_qualifications)]

    def hit_type(self) -> dict[str, Any]:
        """Return the arguments of boto3's ``create_hit_type``."""
        return {
            "Title": self.title,
            "Description": self.description,
            "Keywords": self.keywords,
            "Reward": str(self.reward),
            "AssignmentDurationInSeconds": self.duration,
            "AutoApprovalDelayInSeconds": self.auto_approval_delay,
            "QualificationRequirements": self.qualifications(),
        }

    def hourly_wage(self) -> Decimal:
        """Return what a worker of the expected speed earns an hour, in `currency`, not rounded.

        >>> Settings(reward=Decimal("0.30"), expected_seconds=60, exchange_rate=Decimal("0.5")).hourly_wage()
        Decimal('9.000')
        """
        return hourly_wage(self.reward, self.expected_seconds) * self.exchange_rate


def _number(qualification: str, comparator: str, value: int) -> dict[str, Any]:
    return {
        "QualificationTypeId": qualification,
        "Comparator": comparator,
        "IntegerValues": [value],
    }


def _own(written: str) -> dict[str, Any]:
    """Return the requirement that a setting means.

    >>> [_own(one)["Comparator"] for one in ("3A", "3A>=60", "!3A")]
    ['Exists', 'GreaterThanOrEqualTo', 'DoesNotExist']
    """
    name, _, value = written.partition(">=")
    if value:
        return _number(name, "GreaterThanOrEqualTo", int(value))
    comparator = "DoesNotExist" if name.startswith("!") else "Exists"
    return {"QualificationTypeId": name.removeprefix("!"), "Comparator": comparator}
