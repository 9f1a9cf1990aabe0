"""Settings of a study: language, title, reward, times, qualifications.

Each setting is declared once, with its default, its comment in the settings file and its valid values.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any

from bws.base.options import MAX_COUNT, option
from giccs.benchmark.languages import language_tag
from mturk import limits
from mturk.kinds.registry import DEFAULT_KIND, kind_names
from mturk.kinds.texts import built_in_texts
from mturk.money import hourly_wage, round_to_cents

APPROVAL_RATE = "000000000000000000L0"
HITS_APPROVED = "00000000000000000040"
GERMAN = built_in_texts("mturk.kinds.tuples", "de")["hit"]
QUALIFICATION_PATTERN = r"!?[A-Z0-9]{1,64}|[A-Z0-9]{1,64}>=[0-9]{1,9}"
MAX_RATE = 1_000_000
"""Maximum exchange rate and minimum wage."""
RATE = f'a number above 0 and at most {MAX_RATE} as a text, such as "0.86"'


def _text(limit: limits.LengthLimit) -> Callable[[str], str]:
    def parse(value: str) -> str:
        limit.check(value.strip())
        return value.strip()

    return parse


def _dollars(value: Any) -> Decimal:
    """Return an amount with at most two decimals, as required by the service."""
    if not isinstance(value, str) or limits.reward_problem(value):
        raise ValueError
    return round_to_cents(Decimal(value))


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
    """Settings of a study; the defaults are those of the paper (section 3.2), a study in German.

    `default_settings` returns the defaults for other languages.
    """

    kind: str = option(
        DEFAULT_KIND,
        'Kind of HIT: "tuples" of utterances, plain "items", "conditions" of sentence pairs,\n'
        'their "verification", or labels again: "relabel". Each kind has its own default file.',
        choices=kind_names,
    )
    title: str = option(
        GERMAN["title"],
        "Title in the list of HITs. At most 128 characters. Title, description and keywords are in\n"
        "the language of the page by default.",
        parse=_text(limits.TITLE),
    )
    description: str = option(
        GERMAN["description"],
        "Description in the list of HITs. At most 2,000 characters.",
        parse=_text(limits.DESCRIPTION),
    )
    keywords: str = option(GERMAN["keywords"], "", parse=_text(limits.KEYWORDS))
    language: str = option(
        "de",
        "Language of the page texts. Default: the language of the dialogues.",
        parse=language_tag,
    )
    dialogue_language: str = option(
        "de",
        'Language of the dialogues, a BCP 47 tag: "de", "en", "de-AT".\n'
        "Default: the language stated in the dialogues, or --language.",
        parse=language_tag,
    )
    texts: str = option(
        "",
        "File with all texts of the page. For another language, a catalogue beside this file is better:\n"
        "see `giccs annotate check-texts`.\n"
        "`giccs annotate estimate --default-texts` prints the English ones.",
        parse=_text(limits.LengthLimit("the name of the file", 4096, minimum=0)),
    )
    """Content of the TOML file with the page texts; empty for the built-in texts."""
    consent: str = option(
        "",
        "Text at the top of the page: who runs the study, use of the answers, contact.\n"
        'Several lines: """in three quotation marks"""',
        parse=_text(limits.LengthLimit("the text", 10_000, minimum=0)),
    )
    language_check: bool = option(
        True,
        "One gap to fill per page, in the language of the dialogues. Wrong answers are only\n"
        "reported in the review.",
    )
    comment_box: bool = option(True, "Optional comment field.")
    reward: Decimal = option(
        Decimal("0.30"),
        "US dollars per assignment, as a text with two decimals.",
        parse=_dollars,
        expects='dollars of at least 0.01 as a text, such as "0.25"',
    )
    volunteers: bool = option(
        False,
        "Workers are not paid: the reward is 0.00 then, and all countries and approval rates may take part.",
    )
    assignments: int = option(
        5,
        "Workers per HIT. A HIT created with fewer than 10 cannot be extended to 10 or more;\n"
        "from 10 on, the fee is 40 % instead of 20 %.",
        bounds=(limits.MAX_ASSIGNMENTS.minimum, limits.MAX_ASSIGNMENTS.maximum),
    )
    dialogues_per_hit: int = option(
        2,
        "Dialogues per page, each with one tuple. Short dialogues are combined with long ones.",
        bounds=(1, 20),
    )
    seed: int = option(
        0,
        "Random seed for the assignment of tuples to pages. Another seed makes another study.",
        bounds=(0, 2**63 - 1),
    )
    expected_seconds: int = option(
        60,
        "Expected time per page in seconds: time yourself with `giccs annotate preview`. `estimate`\n"
        "shows the resulting hourly wage and warns if it is below the minimum wage.",
        bounds=(1, limits.ASSIGNMENT_DURATION.maximum),
    )
    currency: str = option(
        "EUR",
        "Currency of the minimum wage, and its units per US dollar.",
        parse=_text(limits.LengthLimit("the text", 3, minimum=3)),
    )
    exchange_rate: Decimal = option(Decimal("0.86"), None, parse=_rate, expects=RATE)
    """Units of `currency` per US dollar."""
    minimum_wage: Decimal = option(
        Decimal("13.90"),
        "Minimum wage per hour. Germany: 13.90 EUR in 2026, 14.60 EUR from January 2027.",
        parse=_rate,
        expects=RATE,
    )
    spending_limit: Decimal = option(
        Decimal("0.00"),
        'Maximum cost of the study with all fees, in US dollars; "0" for no limit.',
        parse=_dollars,
        expects='dollars as a text, such as "0.25"',
    )
    lifetime: int = option(
        604_800,
        "Seconds for which a HIT is offered (30 to 31536000). 604800 is one week.",
        bounds=(limits.LIFETIME.minimum, limits.LIFETIME.maximum),
    )
    duration: int = option(
        1_800,
        "Time limit in seconds per accepted HIT (30 to 31536000).",
        bounds=(limits.ASSIGNMENT_DURATION.minimum, limits.ASSIGNMENT_DURATION.maximum),
    )
    auto_approval_delay: int = option(
        604_800,
        "Seconds until an unreviewed assignment is approved automatically (0 to 2592000).",
        bounds=(limits.AUTO_APPROVAL_DELAY.minimum, limits.AUTO_APPROVAL_DELAY.maximum),
    )
    approval_rate_above: int = option(
        98,
        "Minimum approval rate in percent, exclusive; -1 for no minimum. Workers with fewer than\n"
        "100 assignments have a rate of 100 %, hence the next setting.",
        bounds=(-1, 100),
    )
    """Minimum approval rate in percent, exclusive; -1 for no minimum."""
    hits_approved_at_least: int = option(
        0,
        "Minimum number of approved HITs. 0 is suitable for your own service, where workers\n"
        "have no history; use about 100 on a marketplace.",
        bounds=(0, MAX_COUNT),
    )
    """Minimum number of approved HITs; 0 for no minimum."""
    countries: tuple[str, ...] = option(
        ("DE",),
        "Countries of workers, as stated by themselves; not a test of their language. [] for\n"
        'all. Default: ["DE"] for German dialogues, [] for others.',
        pattern="[A-Z]{2}",
        expects='codes such as "DE", each once',
    )
    own_qualifications: tuple[str, ...] = option(
        (),
        'Ids of your own qualification types that workers must have: "3ABC".\n'
        '"3ABC>=60" requires a value of at least 60, "!3ABC" excludes workers with it.',
        pattern=QUALIFICATION_PATTERN,
        expects='ids such as "3ABC", each once',
    )
    pseudonyms: bool = option(
        True,
        "Replace worker ids by pseudonyms in the ledger and in the judgments. The key is stored\n"
        "next to the ledger. false keeps the ids.",
    )

    def qualifications(self) -> list[dict[str, Any]]:
        """Return the QualificationRequirements in boto3's form.

        The approval rate is combined with the number of approved HITs: workers with few have a rate of 100 %.

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
        """Return the hourly wage for the expected time per HIT, in `currency`, not rounded.

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


def _own_requirement(value_text: str) -> dict[str, Any]:
    """Parse one element of `own_qualifications`.

    >>> [_own_requirement(text)["Comparator"] for text in ("3A", "3A>=60", "!3A")]
    ['Exists', 'GreaterThanOrEqualTo', 'DoesNotExist']
    """
    name, _, value = value_text.partition(">=")
    if value:
        return _integer_requirement(name, "GreaterThanOrEqualTo", int(value))
    comparator = "DoesNotExist" if name.startswith("!") else "Exists"
    return {"QualificationTypeId": name.removeprefix("!"), "Comparator": comparator}
