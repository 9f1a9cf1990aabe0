"""Settings of a study: language, title, reward, times, qualifications; and what the service calls them.

Each is declared once: default, comment in the settings file, allowed values.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any

from bws.options import MAX_COUNT, option
from giccs.benchmark.languages import language_tag
from mturk import limits
from mturk.kinds.registry import DEFAULT_KIND, kind_names
from mturk.kinds.texts import built_in_texts
from mturk.money import hourly_wage, round_to_cents

__all__ = ["Settings"]

APPROVAL_RATE = "000000000000000000L0"
HITS_APPROVED = "00000000000000000040"
GERMAN = built_in_texts("mturk.kinds.tuples", "de")["hit"]
QUALIFICATION_PATTERN = r"!?[A-Z0-9]{1,64}|[A-Z0-9]{1,64}>=[0-9]{1,9}"
MAX_RATE = 1_000_000
"""Largest exchange rate and minimum wage."""
RATE = f'a number above 0 and up to {MAX_RATE} as a text, such as "0.86"'


def _text(limit: limits.LengthLimit) -> Callable[[str], str]:
    def parse(value: str) -> str:
        limit.check(value.strip())
        return value.strip()

    return parse


def _dollars(value: Any) -> Decimal:
    """Return an amount; two decimals at most, because the service takes no others."""
    if not isinstance(value, str) or limits.reward_problem(value):
        raise ValueError
    return round_to_cents(Decimal(value))


def _reward(value: Any) -> Decimal:
    if not (reward := _dollars(value)):
        raise ValueError
    return reward


def _rate(value: Any) -> Decimal:
    try:
        number = Decimal(value) if isinstance(value, str) else Decimal(0)
    except InvalidOperation:
        raise ValueError from None
    if not number.is_finite() or not 0 < number <= MAX_RATE:
        raise ValueError
    return number


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of a study; the defaults are those of the paper (section 3.2), a study in German.

    `default_settings` returns those of a study in another language.
    """

    kind: str = option(
        DEFAULT_KIND,
        'What workers are asked: "tuples" of utterances, "conditions" of sentence pairs, or their\n'
        '"verification". Each kind has a default file of its own.',
        choices=kind_names,
    )
    title: str = option(
        GERMAN["title"],
        "What workers see in the list of work. At most 128 characters. By default a text in the\n"
        "language of the page; so are the next two.",
        parse=_text(limits.TITLE),
    )
    description: str = option(
        GERMAN["description"],
        "More about it. At most 2,000 characters.",
        parse=_text(limits.DESCRIPTION),
    )
    keywords: str = option(GERMAN["keywords"], "", parse=_text(limits.KEYWORDS))
    language: str = option(
        "de",
        "Language of the page's own texts. By default that of the dialogues.",
        parse=language_tag,
    )
    dialogue_language: str = option(
        "de",
        'Language of the dialogues, a BCP 47 tag: "de", "en", "de-AT".\n'
        "By default what the dialogues state, or --language.",
        parse=language_tag,
    )
    texts: str = option(
        "",
        'A file with the page\'s own texts, for languages other than "de" and "en":\n'
        "`mturk-hits estimate --default-texts` prints the English ones.",
        parse=_text(limits.LengthLimit("the name of the file", 4096, minimum=0)),
    )
    """Content of the TOML file with the page's own texts; empty for those that ship."""
    consent: str = option(
        "",
        "Shown at the top of the page: who asks, what becomes of the answers, whom to write to.\n"
        'Several lines: """in three quotation marks"""',
        parse=_text(limits.LengthLimit("the text", 10_000, minimum=0)),
    )
    language_check: bool = option(
        True,
        "One word to fill in on each page, in the language of the dialogues. A wrong word\n"
        "turns nobody away; what follows from it is for you to decide.",
    )
    comment_box: bool = option(True, "A field for a comment, which workers may leave empty.")
    reward: Decimal = option(
        Decimal("0.30"),
        "US dollars an assignment, as a text with two decimals.",
        parse=_reward,
        expects='dollars of at least 0.01 as a text, such as "0.25"',
    )
    assignments: int = option(
        5,
        "How many workers answer each HIT. A HIT made with fewer than 10 can never be raised to\n"
        "10 or more; from 10 on the fee is 40 % instead of 20 %.",
        bounds=(limits.MAX_ASSIGNMENTS.minimum, limits.MAX_ASSIGNMENTS.maximum),
    )
    dialogues_per_hit: int = option(
        2,
        "Dialogues on a page, each with one tuple. Short ones are paired with long ones.",
        bounds=(1, 20),
    )
    seed: int = option(
        0,
        "Decides which tuples share a page. Another seed is another study.",
        bounds=(0, 2**63 - 1),
    )
    expected_seconds: int = option(
        60,
        "How long a page takes a worker: time yourself on `mturk-hits preview`. `estimate`\n"
        "shows the hourly wage that the reward amounts to and warns below the minimum wage.",
        bounds=(1, limits.ASSIGNMENT_DURATION.maximum),
    )
    currency: str = option(
        "EUR",
        "The currency of the minimum wage, and how much of it one US dollar is.",
        parse=_text(limits.LengthLimit("the text", 3, minimum=3)),
    )
    exchange_rate: Decimal = option(Decimal("0.86"), None, parse=_rate, expects=RATE)
    """How much of `currency` one US dollar is."""
    minimum_wage: Decimal = option(
        Decimal("13.90"),
        "An hour. Germany: 13.90 EUR in 2026, 14.60 EUR from January 2027.",
        parse=_rate,
        expects=RATE,
    )
    spending_limit: Decimal = option(
        Decimal("0.00"),
        'US dollars that the study may cost with all fees; "0" is no limit.',
        parse=_dollars,
        expects='dollars as a text, such as "0.25"',
    )
    lifetime: int = option(
        604_800,
        "Seconds for which a HIT is offered (30 to 31536000). 604800 is a week.",
        bounds=(limits.LIFETIME.minimum, limits.LIFETIME.maximum),
    )
    duration: int = option(
        1_800,
        "Seconds that a worker has for a HIT once it is accepted (30 to 31536000).",
        bounds=(limits.ASSIGNMENT_DURATION.minimum, limits.ASSIGNMENT_DURATION.maximum),
    )
    auto_approval_delay: int = option(
        604_800,
        "Seconds after which an answer that nobody reviewed is approved (0 to 2592000).",
        bounds=(limits.AUTO_APPROVAL_DELAY.minimum, limits.AUTO_APPROVAL_DELAY.maximum),
    )
    approval_rate_above: int = option(
        98,
        "Workers of whose answers more than so many percent were approved; -1 for all.\n"
        "A worker with fewer than 100 answers always counts as 100 %, hence the next rule.",
        bounds=(-1, 100),
    )
    """Percent of the worker's answers that must have been approved, exclusive; -1 is no such rule."""
    hits_approved_at_least: int = option(
        0,
        "Workers with at least so many approved HITs. 0 is right on a service\n"
        "of one's own, where nobody has a history; set 100 or so on a marketplace.",
        bounds=(0, MAX_COUNT),
    )
    """How many approved HITs a worker must have; 0 is everybody."""
    countries: tuple[str, ...] = option(
        ("DE",),
        "Where workers are, as they say themselves. It is no test of their language. [] for\n"
        'anywhere. By default ["DE"] for German dialogues, and [] for others.',
        pattern="[A-Z]{2}",
        expects='codes such as "DE", each once',
    )
    own_qualifications: tuple[str, ...] = option(
        (),
        'Ids of qualification types of your own that a worker must have: "3ABC".\n'
        '"3ABC>=60" is a value of at least 60, "!3ABC" keeps out whoever has it.',
        pattern=QUALIFICATION_PATTERN,
        expects='ids such as "3ABC", each once',
    )
    pseudonyms: bool = option(
        True,
        "Worker ids become pseudonyms in the ledger and in the judgments; the key lies beside the\n"
        "ledger. false keeps the ids as they are.",
    )

    def qualifications(self) -> list[dict[str, Any]]:
        """Return the QualificationRequirements in boto3's form.

        The approval rate is paired with the number of approved HITs, since whoever has few counts as 100 %.

        >>> [q["Comparator"] for q in Settings().qualifications()]
        ['GreaterThan', 'GreaterThanOrEqualTo', 'EqualTo']
        """
        required = []
        if self.approval_rate_above >= 0:
            required.append(
                _integer_requirement(APPROVAL_RATE, "GreaterThan", self.approval_rate_above)
            )
        if self.approval_rate_above >= 0 or self.hits_approved_at_least:
            required.append(
                _integer_requirement(
                    HITS_APPROVED, "GreaterThanOrEqualTo", self.hits_approved_at_least
                )
            )
        if self.countries:
            comparator = "EqualTo" if len(self.countries) == 1 else "In"
            locales = [{"Country": country} for country in self.countries]
            required.append(
                {
                    "QualificationTypeId": limits.LOCALE,
                    "Comparator": comparator,
                    "LocaleValues": locales,
                }
            )
        return [*required, *map(_own_requirement, self.own_qualifications)]

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


def _integer_requirement(qualification: str, comparator: str, value: int) -> dict[str, Any]:
    return {
        "QualificationTypeId": qualification,
        "Comparator": comparator,
        "IntegerValues": [value],
    }


def _own_requirement(text: str) -> dict[str, Any]:
    """Return the requirement that a setting means.

    >>> [_own_requirement(one)["Comparator"] for one in ("3A", "3A>=60", "!3A")]
    ['Exists', 'GreaterThanOrEqualTo', 'DoesNotExist']
    """
    name, _, value = text.partition(">=")
    if value:
        return _integer_requirement(name, "GreaterThanOrEqualTo", int(value))
    comparator = "DoesNotExist" if name.startswith("!") else "Exists"
    return {"QualificationTypeId": name.removeprefix("!"), "Comparator": comparator}
