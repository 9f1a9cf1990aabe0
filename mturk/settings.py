"""What a study is set to: title, reward, times, qualifications, as they stand in a TOML file."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from decimal import Decimal, InvalidOperation
from typing import Any

from bws.problems import InputError, Problem
from bws.textio import display_name, read_text
from mturk import limits
from mturk.csts.defaults import COMMENTS as SENTENCE_COMMENTS
from mturk.csts.defaults import DEFAULTS
from mturk.money import cents, hourly_wage

__all__ = ["KINDS", "LANGUAGES", "Settings", "default_settings", "default_toml", "read_settings"]

APPROVAL_RATE = "000000000000000000L0"
HITS_APPROVED = "00000000000000000040"
LANGUAGES = ("de", "en")
KINDS = ("tuples", *DEFAULTS)
SENTENCE_NAMES = {"dialogues_per_hit": "pairs_per_hit", "dialogue_language": "sentence_language"}
"""What settings are called in the file of a study of sentence pairs."""
DIALOGUES_ONLY = ("language_check",)
OWN = r"!?[A-Z0-9]{1,64}|[A-Z0-9]{1,64}>=[0-9]{1,9}"


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of a study; the defaults are those of the paper (section 3.2) where it gives one."""

    kind: str = "tuples"
    """What workers are asked: tuples of utterances; conditions of sentence pairs; their verification."""
    title: str = "Deutsche Dialoge: Welche Äußerung ist am ähnlichsten?"
    """What workers see in the list of work; 1 to 128 characters."""
    description: str = (
        "Lesen Sie zwei kurze Dialoge und wählen Sie jeweils die Äußerung, die der letzten Äußerung "
        "am ähnlichsten ist, und die, die ihr am unähnlichsten ist. Nur für Personen, "
        "die fließend Deutsch sprechen."
    )
    keywords: str = "Deutsch, Dialog, Sprache, Ähnlichkeit, Auswahl"
    language: str = "de"
    """Language of the page's own texts: de or en."""
    dialogue_language: str = "de"
    """Language of the dialogues or sentences, as HTML's lang has it; screen readers go by it."""
    consent: str = ""
    """Who asks, what becomes of the answers and whom to write to; shown on the page, empty for nothing."""
    language_check: bool = True
    """Whether the page of a German dialogue asks for one German word."""
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


def default_settings(kind: str = "tuples") -> Settings:
    """Return the defaults of a kind of study, one of `KINDS`.

    >>> default_settings("verification").assignments
    3
    """
    return Settings() if kind == "tuples" else replace(Settings(), kind=kind, **DEFAULTS[kind])


def read_settings(path: str | os.PathLike[str]) -> Settings:
    """Read a TOML file; what it does not name has its kind's default. InputError with every fault and line.

    Amounts of money are written as strings, such as "0.25".
    """
    name = display_name(path)
    text = read_text(path)
    try:
        table = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise InputError(_syntax_problem(name, error)) from None
    values: dict[str, Any] = {}
    wrong: dict[str, str] = {}
    kind = str(table["kind"]) if table.get("kind") in KINDS else "tuples"
    field_of = {name: field for field, name in _names(kind).items()}
    for key, value in table.items():
        try:
            values[field_of.get(key, key)] = _value(key, value, field_of)
        except ValueError as error:
            wrong[key] = str(error)
    settings = replace(default_settings(kind), **values)
    if not wrong:
        wrong = _wrong_together(settings)
    if wrong:
        raise InputError(Problem(name, _line_of(text, key), said) for key, said in wrong.items())
    return settings


def _syntax_problem(name: str, error: Exception) -> Problem:
    place = re.search(r" \(at line (\d+), column \d+\)$", str(error))
    said = str(error)[: place.start()] if place else str(error)
    return Problem(name, int(place[1]) if place else None, f"is not TOML: {said}")


def _line_of(text: str, key: str) -> int | None:
    found = re.search(rf"""(?m)^\s*\[?\s*["']?{re.escape(key)}\b""", text)
    return text.count("\n", 0, found.end()) + 1 if found else None


def _names(kind: str) -> dict[str, str]:
    """Return what each setting that a kind has is called in its file."""
    if kind == "tuples":
        return {key: key for key in CHECKS}
    return {key: SENTENCE_NAMES.get(key, key) for key in CHECKS if key not in DIALOGUES_ONLY}


def _value(key: str, value: Any, field_of: Mapping[str, str]) -> Any:
    """Return a checked value; ValueError says what is wrong and what is allowed."""
    if key not in field_of:
        raise ValueError(f"{key} is no setting; allowed: {', '.join(field_of)}")
    return CHECKS[field_of[key]](key, value)


def _wrong_together(settings: Settings) -> dict[str, str]:
    problems = limits.qualification_problems(settings.qualifications())
    return {"countries": "; ".join(problems)} if problems else {}


Check = Callable[[str, Any], Any]


def _language_tag(key: str, value: Any) -> str:
    if not isinstance(value, str) or not re.fullmatch(r"[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})*", value):
        raise ValueError(f'{key} is {value!r}; a language tag such as "de" or "de-AT" is allowed')
    return value


def _text(limit: limits.Length) -> Check:
    def check(key: str, value: Any) -> str:
        if not isinstance(value, str):
            raise ValueError(f'{key} is {value!r}; a text in "quotes" is allowed')
        if problem := limit.problem(value.strip()):
            raise ValueError(f"{key}: {problem}")
        return value.strip()

    return check


def _whole(low: int, high: int) -> Check:
    def check(key: str, value: Any) -> int:
        if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
            raise ValueError(f"{key} is {value!r}; a whole number from {low} to {high} is allowed")
        return value

    return check


def _yes_or_no(key: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"{key} is {value!r}; true and false are allowed")
    return value


def _one_of(*allowed: str) -> Check:
    def check(key: str, value: Any) -> str:
        if value not in allowed:
            raise ValueError(f"{key} is {value!r}; allowed: {', '.join(map(repr, allowed))}")
        return str(value)

    return check


def _dollars(key: str, value: Any) -> Decimal:
    """Two decimals at most, because the service takes no others."""
    if not isinstance(value, str) or limits.reward_problem(value):
        raise ValueError(f'{key} is {value!r}; dollars as a text are allowed, such as "0.25"')
    return cents(Decimal(value))


def _reward(key: str, value: Any) -> Decimal:
    reward = _dollars(key, value)
    if not reward:
        raise ValueError(f"{key} is {value!r}; at least 0.01 is allowed")
    return reward


def _positive(key: str, value: Any) -> Decimal:
    try:
        number = Decimal(value) if isinstance(value, str) else None
    except InvalidOperation:
        number = None
    if number is None or not number.is_finite() or number <= 0:
        raise ValueError(
            f'{key} is {value!r}; a number above 0 as a text is allowed, such as "0.86"'
        )
    return number


def _codes(pattern: str, example: str) -> Check:
    def check(key: str, value: Any) -> tuple[str, ...]:
        whole = isinstance(value, list) and all(
            isinstance(one, str) and re.fullmatch(pattern, one) for one in value
        )
        if not whole or len(set(value)) < len(value):
            raise ValueError(
                f'{key} is {value!r}; a list such as ["{example}"] is allowed, each once'
            )
        return tuple(value)

    return check


CHECKS: Mapping[str, Check] = {
    "title": _text(limits.TITLE),
    "description": _text(limits.DESCRIPTION),
    "keywords": _text(limits.KEYWORDS),
    "language": _one_of(*LANGUAGES),
    "dialogue_language": _language_tag,
    "consent": _text(limits.Length("the text", 10_000, least=0)),
    "language_check": _yes_or_no,
    "comment_box": _yes_or_no,
    "reward": _reward,
    "assignments": _whole(limits.MAX_ASSIGNMENTS.low, limits.MAX_ASSIGNMENTS.high),
    "dialogues_per_hit": _whole(1, 20),
    "seed": _whole(0, 2**63 - 1),
    "expected_seconds": _whole(1, limits.ASSIGNMENT_DURATION.high),
    "currency": _text(limits.Length("the text", 3, least=3)),
    "exchange_rate": _positive,
    "minimum_wage": _positive,
    "spending_limit": _dollars,
    "lifetime": _whole(limits.LIFETIME.low, limits.LIFETIME.high),
    "duration": _whole(limits.ASSIGNMENT_DURATION.low, limits.ASSIGNMENT_DURATION.high),
    "auto_approval_delay": _whole(limits.AUTO_APPROVAL_DELAY.low, limits.AUTO_APPROVAL_DELAY.high),
    "approval_rate_above": _whole(-1, 100),
    "hits_approved_at_least": _whole(0, 10**9),
    "countries": _codes(r"[A-Z]{2}", "DE"),
    "own_qualifications": _codes(OWN, "3ABC"),
    "pseudonyms": _yes_or_no,
    "kind": _one_of(*KINDS),
}

COMMENTS = {
    "kind": 'What workers are asked: "tuples" of utterances, "conditions" of sentence pairs, or their\n'
    '"verification". Each kind has a default file of its own.',
    "title": "What workers see in the list of work. At most 128 characters.",
    "description": "More about it. At most 2,000 characters.",
    "keywords": "",
    "language": 'Language of the page\'s own texts: "de" or "en". The dialogues stay as they are.',
    "dialogue_language": 'Language of the dialogues, for screen readers: "de", "en", "de-AT".',
    "consent": "Shown at the top of the page: who asks, what becomes of the answers, whom to write to.\n"
    'Several lines: """in three quotation marks"""',
    "language_check": "One German word to fill in on each page, for German dialogues. A wrong word turns\n"
    "nobody away; what follows from it is for you to decide.",
    "comment_box": "A field for a comment, which workers may leave empty.",
    "reward": "US dollars an assignment, as a text with two decimals.",
    "assignments": "How many workers answer each HIT. A HIT made with fewer than 10 can never be raised to\n"
    "10 or more; from 10 on the fee is 40 % instead of 20 %.",
    "dialogues_per_hit": "Dialogues on a page, each with one tuple. Short ones are paired with long ones.",
    "seed": "Decides which tuples share a page. Another seed is another study.",
    "expected_seconds": "How long a page takes a worker: time yourself on `mturk-hits preview`. `estimate`\n"
    "shows the hourly wage that the reward amounts to and warns below the minimum wage.",
    "currency": "The currency of the minimum wage, and how much of it one US dollar is.",
    "exchange_rate": None,
    "minimum_wage": "An hour. Germany: 13.90 EUR in 2026, 14.60 EUR from January 2027.",
    "spending_limit": 'US dollars that the study may cost with all fees; "0" is no limit.',
    "lifetime": "Seconds for which a HIT is offered (30 to 31536000). 604800 is a week.",
    "duration": "Seconds that a worker has for a HIT once it is accepted (30 to 31536000).",
    "auto_approval_delay": "Seconds after which an answer that nobody reviewed is approved (0 to 2592000).",
    "approval_rate_above": "Workers of whose answers more than so many percent were approved; -1 for all.\n"
    "A worker with fewer than 100 answers always counts as 100 %, hence the next rule.",
    "hits_approved_at_least": "Workers with at least so many approved HITs. 0 is right on a service\n"
    "of one's own, where nobody has a history; set 100 or so on a marketplace.",
    "countries": "Where workers are, as they say themselves. It is no test of their German. [] for anywhere.",
    "own_qualifications": 'Ids of qualification types of your own that a worker must have: "3ABC".\n'
    '"3ABC>=60" is a value of at least 60, "!3ABC" keeps out whoever has it.',
    "pseudonyms": "Worker ids become pseudonyms in the ledger and in the judgments; the key lies beside the\n"
    "ledger. false keeps the ids as they are.",
}  # fmt: skip
"""Key -> what the default file says above it; None: it stands right below the key before."""


def default_toml(kind: str = "tuples") -> str:
    """Return a settings file with every setting of a kind at its default and a comment on each.

    >>> tomllib.loads(default_toml())["reward"], tomllib.loads(default_toml("conditions"))["pairs_per_hit"]
    ('0.30', 3)
    """
    blocks = ["# Settings of an annotation study. Leave out what is to stay as it is here.\n"]
    settings, names = default_settings(kind), _names(kind)
    comments = COMMENTS if kind == "tuples" else {**COMMENTS, **SENTENCE_COMMENTS}
    for field in (field for field in fields(Settings) if field.name in names):
        comment = comments[field.name]
        lines = [] if comment is None else ["", *(f"# {line}" for line in comment.splitlines())]
        value = _toml(getattr(settings, field.name))
        blocks.append("\n".join([*lines, f"{names[field.name]} = {value}", ""]))
    return "".join(blocks)


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return f"[{', '.join(map(_toml, value))}]"
    return str(value) if isinstance(value, int) else f'"{value}"'
