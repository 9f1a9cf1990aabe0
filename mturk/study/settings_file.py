"""The TOML file with the settings of a study, and the defaults of each kind of HIT in each language.

What workers read follows the language of the dialogues: the page, the title of the HITs, the language check.
The file states what is not to follow it.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

from bws.problems import InputError, Problem
from bws.textio import display_name, read_text
from giccs.benchmark.languages import base_language, language_tag, matches
from mturk import limits
from mturk.kinds import DEFAULT_KIND, get_kind, kind_names
from mturk.kinds.texts import HIT, languages_of, load_texts, page_texts, read_texts
from mturk.money import cents
from mturk.study.settings import Settings

__all__ = [
    "SettingsFile",
    "default_settings",
    "default_toml",
    "read_settings",
    "read_settings_file",
]

FOLLOW_LANGUAGE = (
    "title",
    "description",
    "keywords",
    "language",
    "dialogue_language",
    "texts",
    "countries",
)
"""Settings whose defaults depend on the language of the study."""
OWN = r"!?[A-Z0-9]{1,64}|[A-Z0-9]{1,64}>=[0-9]{1,9}"


def default_settings(
    kind: str, language: str, *, page_language: str = "", texts: str = ""
) -> Settings:
    """Return the defaults of a kind of study, by its name, in a language.

    language: BCP 47 tag of the dialogues or sentences.
    page_language: that of the page's texts; empty: that of `texts`, or else of the dialogues.
    texts: content of a file of texts, as `mturk.kinds.texts.read_texts` returns it; empty: those that ship.

    ValueError where no texts ship in the language of the page.

    >>> settings = default_settings("verification", "en")
    >>> settings.assignments, settings.language, settings.countries
    (3, 'en', ())
    >>> default_settings("tuples", "de") == Settings()
    True
    """
    base = base_language(language)
    page = page_language or (load_texts(texts)["language"] if texts else base)
    definition = get_kind(kind)
    package, languages = definition.package, languages_of(definition.package)
    if not texts and page not in languages:
        raise ValueError(
            f"no texts of the worker page ship in {page} (built in: {', '.join(languages)}); expected a "
            'settings file with texts = "FILE.toml", or with the language of the page'
        )
    # a title may name the language of the dialogues: that of another language's page would be wrong
    hit = page_texts(package, page if texts or page == base else "en", texts)["hit"]
    return replace(
        Settings(),
        kind=kind,
        **{name: hit[name].strip() for name in HIT},
        language=page,
        dialogue_language=language,
        texts=texts,
        **{"countries": ("DE",) if base == "de" else (), **definition.defaults},
    )


@dataclass(frozen=True, slots=True)
class SettingsFile:
    """The checked settings that a file states."""

    name: str = "settings"
    """As messages call the file."""
    kind: str = DEFAULT_KIND
    values: Mapping[str, Any] = field(default_factory=dict)
    lines: Mapping[str, int | None] = field(default_factory=dict)
    """Setting -> its line."""

    def settings(self, language: str | None) -> Settings:
        """Return the settings of a study, with the defaults of its kind and language for the others.

        language: BCP 47 tag of the dialogues, or of ``--language``; None: the file must state it. Raises
        InputError where no language is known, and where the file states another one.
        """
        stated = self.values.get("dialogue_language")
        key = _names(self.kind)["dialogue_language"]
        if stated and language and not (matches(stated, language) or matches(language, stated)):
            message = f"{key} is {stated!r}, but the study is in {language}; expected the same"
            raise self._error("dialogue_language", message)
        tag = stated or language
        if tag is None:
            message = (
                "no language is stated, and the worker page depends on it; expected --language"
            )
            raise InputError(
                Problem(self.name, None, f"{message}, such as --language de, or {key}")
            )
        texts, page = self.values.get("texts", ""), self.values.get("language", "")
        if texts and page and page != load_texts(texts)["language"]:
            found = load_texts(texts)["language"]
            message = f"language is {page!r}, but the texts are in {found}; expected the same"
            raise self._error("language", message)
        try:
            defaults = default_settings(self.kind, tag, page_language=page, texts=texts)
        except ValueError as error:
            raise self._error("language" if page else "dialogue_language", str(error)) from None
        settings = replace(defaults, **self.values)
        if wrong := _wrong_together(settings):
            raise InputError(
                Problem(self.name, self.lines.get(k), said) for k, said in wrong.items()
            )
        return settings

    def _error(self, setting: str, message: str) -> InputError:
        return InputError(Problem(self.name, self.lines.get(setting), message))


def read_settings(path: str | os.PathLike[str], language: str | None = None) -> Settings:
    """Read a TOML file; what it does not name has the default of its kind and language.

    language: of the dialogues or sentences, where the file does not state it. Raises InputError as
    `read_settings_file` and `SettingsFile.settings` do.
    """
    return read_settings_file(path).settings(language)


def read_settings_file(path: str | os.PathLike[str]) -> SettingsFile:
    """Read the settings that a TOML file states; InputError with every fault and line.

    Amounts of money are written as strings, such as "0.25"; ``texts`` names a file, relative to this one.
    """
    name = display_name(path)
    text = read_text(path)
    try:
        table = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(_syntax_problem(name, error)) from None
    values: dict[str, Any] = {}
    wrong: dict[str, str] = {}
    kind = str(table["kind"]) if table.get("kind") in kind_names() else DEFAULT_KIND
    field_of = {name: setting for setting, name in _names(kind).items()}
    for key, value in table.items():
        try:
            values[field_of.get(key, key)] = _value(key, value, field_of)
        except ValueError as error:
            wrong[key] = str(error)
    if wrong:
        raise InputError(Problem(name, _line_of(text, key), said) for key, said in wrong.items())
    if file := values.pop("texts", ""):
        values["texts"] = read_texts(Path(path).parent / file, get_kind(kind).package)
    lines = {field_of.get(key, key): _line_of(text, key) for key in table}
    return SettingsFile(name, kind, values, lines)


def _syntax_problem(name: str, error: Exception) -> Problem:
    place = re.search(r" \(at line (\d+), column \d+\)$", str(error))
    said = str(error)[: place.start()] if place else str(error)
    return Problem(name, int(place[1]) if place else None, f"is not TOML: {said}")


def _line_of(text: str, key: str) -> int | None:
    found = re.search(rf"""(?m)^\s*\[?\s*["']?{re.escape(key)}\b""", text)
    return text.count("\n", 0, found.end()) + 1 if found else None


def _names(kind: str) -> dict[str, str]:
    """Return what each setting that a kind has is called in its file."""
    definition = get_kind(kind)
    names = {key: definition.setting_names.get(key, key) for key in CHECKS}
    return {key: name for key, name in names.items() if key not in definition.unused_settings}


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
    try:
        return language_tag(value if isinstance(value, str) else repr(value))
    except ValueError as error:
        raise ValueError(f"{key}: {error}") from None


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


def _kind(key: str, value: Any) -> str:
    if value not in kind_names():
        raise ValueError(f"{key} is {value!r}; allowed: {', '.join(map(repr, kind_names()))}")
    return str(value)


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
    if number is None or not number.is_finite() or not 0 < number <= MAX_RATE:
        raise ValueError(
            f"{key} is {value!r}; a number above 0 and up to {MAX_RATE} as a text is allowed, "
            'such as "0.86"'
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


MAX_RATE = 1_000_000
"""Largest exchange rate and minimum wage."""
CHECKS: Mapping[str, Check] = {
    "title": _text(limits.TITLE),
    "description": _text(limits.DESCRIPTION),
    "keywords": _text(limits.KEYWORDS),
    "language": _language_tag,
    "dialogue_language": _language_tag,
    "texts": _text(limits.Length("the name of the file", 4096, least=0)),
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
    "kind": _kind,
}

COMMENTS = {
    "kind": 'What workers are asked: "tuples" of utterances, "conditions" of sentence pairs, or their\n'
    '"verification". Each kind has a default file of its own.',
    "title": "What workers see in the list of work. At most 128 characters. By default a text in the\n"
    "language of the page; so are the next two.",
    "description": "More about it. At most 2,000 characters.",
    "keywords": "",
    "language": "Language of the page's own texts. By default that of the dialogues.",
    "dialogue_language": 'Language of the dialogues, a BCP 47 tag: "de", "en", "de-AT".\n'
    "By default what the dialogues state, or --language.",
    "texts": 'A file with the page\'s own texts, for languages other than "de" and "en":\n'
    "`mturk-hits estimate --default-texts` prints the English ones.",
    "consent": "Shown at the top of the page: who asks, what becomes of the answers, whom to write to.\n"
    'Several lines: """in three quotation marks"""',
    "language_check": "One word to fill in on each page, in the language of the dialogues. A wrong word\n"
    "turns nobody away; what follows from it is for you to decide.",
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
    "countries": "Where workers are, as they say themselves. It is no test of their language. [] for\n"
    'anywhere. By default ["DE"] for German dialogues, and [] for others.',
    "own_qualifications": 'Ids of qualification types of your own that a worker must have: "3ABC".\n'
    '"3ABC>=60" is a value of at least 60, "!3ABC" keeps out whoever has it.',
    "pseudonyms": "Worker ids become pseudonyms in the ledger and in the judgments; the key lies beside the\n"
    "ledger. false keeps the ids as they are.",
}  # fmt: skip
"""Key -> what the default file says above it; None: it stands right below the key before."""


def default_toml(kind: str = DEFAULT_KIND, language: str | None = None) -> str:
    """Return a settings file with every setting of a kind at its default and a comment on each.

    Settings that follow the language of the study are commented out; `language`, a BCP 47 tag, is stated.

    >>> tomllib.loads(default_toml())["reward"], tomllib.loads(default_toml("conditions"))["pairs_per_hit"]
    ('0.30', 3)
    >>> "language" in tomllib.loads(default_toml())
    False
    """
    blocks = [
        "# Settings of an annotation study. Leave out what is to stay as it is here. Those behind a #\n"
        "# follow the language of the dialogues unless they are set.\n"
    ]
    settings, names = default_settings(kind, "en"), _names(kind)
    comments = {**COMMENTS, **get_kind(kind).setting_comments}
    for setting in (one for one in fields(Settings) if one.name in names):
        comment = comments[setting.name]
        lines = [] if comment is None else ["", *(f"# {line}" for line in comment.splitlines())]
        states = language is not None and setting.name == "dialogue_language"
        follows = setting.name in FOLLOW_LANGUAGE and not states
        example = follows and setting.name != "countries"
        default = language if states else getattr(settings, setting.name)
        value = '""' if example else _toml(default)
        line = f"{'# ' if follows else ''}{names[setting.name]} = {value}"
        blocks.append("\n".join([*lines, line, ""]))
    return "".join(blocks)


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return f"[{', '.join(map(_toml, value))}]"
    return str(value) if isinstance(value, int) else f'"{value}"'
