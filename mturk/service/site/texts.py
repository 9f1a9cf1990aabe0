"""Texts of the site, and formatting of money, durations and times, in every language with a catalogue.

The English texts are in ``texts.en.toml`` (``one|many`` where ``{n}`` counts), their translations in
`mturk.catalogues`.
"""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from importlib import resources
from pathlib import Path

from babel.dates import format_date, format_time
from babel.lists import format_list
from babel.numbers import format_currency, format_decimal
from babel.units import format_unit

from mturk.catalogues import (
    SOURCE_LANGUAGE,
    available_languages,
    best_language,
    is_translated,
    locale,
    translate,
    translations,
)

TEXTS: Mapping[str, str] = tomllib.loads(
    (resources.files("mturk.service.site") / "texts.en.toml").read_text("utf-8")
)
"""Key -> English text."""
_folders: list[Path] = []


def use_folder(folder: Path) -> None:
    """Read the catalogues of a folder, too, such as that of the studies file; they take precedence."""
    if folder not in _folders:
        _folders.insert(0, folder)
        languages.cache_clear()


def folders() -> tuple[Path, ...]:
    """Return the folders of catalogues besides the package."""
    return tuple(_folders)


@functools.cache
def languages() -> Mapping[str, str]:
    """Return the languages of the site with their own names.

    >>> languages()["de"], languages()["en"]
    ('Deutsch', 'English')
    """
    names = {tag: locale(tag).get_display_name() or tag for tag in available_languages(folders())}
    return {tag: name[0].upper() + name[1:] for tag, name in names.items()}


def has_text(language: str, key: str) -> bool:
    """Return whether a text exists in a language; otherwise `text` returns the English one."""
    return is_translated(language, key, TEXTS[key], folders())


def text(language: str, key: str, **values: object) -> str:
    """Return a text; ``n`` selects the singular or plural, and numbers are formatted.

    >>> text("en", "work.tasks", n=1), text("de", "work.tasks", n=1000)
    ('1 task', '1.000 Aufgaben')
    """
    n = values.get("n", 0)
    message = _message(language, folders(), key, n if isinstance(n, int) else 0)
    formatted = {
        name: number(language, value) if isinstance(value, (int, float)) else value
        for name, value in values.items()
    }
    return message.format(**formatted)


@functools.lru_cache(maxsize=8192)
def _message(language: str, folders: tuple[Path, ...], key: str, n: int) -> str:
    return translate(translations(language, folders), key, TEXTS[key], n)


@functools.lru_cache(maxsize=1024)
def number(language: str, value: float) -> str:
    """Format a number with the separators of the language.

    >>> number("de", 2500.5), number("en", 3000.0)
    ('2.500,5', '3,000')
    """
    return format_decimal(value, locale=locale(language))


def error_title(language: str, status: int) -> str:
    """Return the title of the error page of an HTTP status.

    >>> error_title("de", 404), error_title("en", 413)
    ('Seite nicht gefunden', 'Request not possible')
    """
    key = f"error.title.{status}"
    return text(language, key if key in TEXTS else "error.title")


def choose_language(accepted: str) -> str:
    """Return the language of the site that an Accept-Language header prefers, or else English.

    >>> choose_language("cy, de-AT;q=0.8, en;q=0.3"), choose_language(""), choose_language("en, de")
    ('de', 'en', 'en')
    """
    weights: dict[str, float] = {}
    for part in accepted.split(","):
        tag, _, weight = part.strip().partition(";q=")
        weights[tag] = max(weights.get(tag, 0.0), _parse_weight(weight))
    wanted = sorted((tag for tag in weights if weights[tag] > 0), key=lambda tag: -weights[tag])
    return best_language(wanted, languages()) or SOURCE_LANGUAGE


def _parse_weight(text: str) -> float:
    try:
        return float(text) if text else 1.0
    except ValueError:
        return 0.0


@functools.lru_cache(maxsize=256)
def money(language: str, amount: Decimal) -> str:
    """Format US dollars with cents.

    >>> money("en", Decimal("1234.5")), money("de", Decimal("0.25"))
    ('$1,234.50', '0,25\\xa0$')
    """
    return format_currency(amount, "USD", locale=locale(language))


def iso(seconds: float) -> str:
    """Format a time as ISO 8601 in UTC.

    >>> iso(0)
    '1970-01-01T00:00:00Z'
    """
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def clock(seconds: float, language: str) -> str:
    """Format a time in UTC for browsers without scripts; scripts replace it by the local time.

    >>> clock(0, "de"), clock(0, "es")
    ('01.01.1970 00:00 UTC', '1 ene 1970 0:00 UTC')
    """
    time, tag = datetime.fromtimestamp(seconds, UTC), locale(language)
    return f"{format_date(time, locale=tag)} {format_time(time, 'short', locale=tag)} UTC"


UNITS: Sequence[tuple[int, str]] = (
    (86_400, "duration-day"),
    (3_600, "duration-hour"),
    (60, "duration-minute"),
    (1, "duration-second"),
)


@functools.lru_cache(maxsize=1024)
def duration(language: str, seconds: int) -> str:
    """Format a duration in its two largest units.

    >>> [duration("en", n).replace("\xa0", " ") for n in (5400, 1800, 45)]
    ['1 hour, 30 minutes', '30 minutes', '45 seconds']
    """
    tag = locale(language)
    parts: list[str] = []
    for length, unit in UNITS:
        count, seconds = divmod(seconds, length)
        if count or (unit == UNITS[-1][1] and not parts):
            parts.append(str(format_unit(count, unit, locale=tag)).replace(" ", "\xa0"))
    return format_list(parts[:2], style="unit", locale=tag)
