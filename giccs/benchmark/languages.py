"""Languages of dialogues and benchmarks: BCP 47 tags, and the language of a data set."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from bws.base.problems import InputError, Problem
from giccs.benchmark.items import Dialogue, Item

LANGUAGE_HELP = (
    "BCP 47 tag (de, en, pt-BR) of data without a stated language; must agree with stated ones."
)
"""Help of the option ``--language`` of all commands."""
RTL_LANGUAGES = frozenset(
    ["ar", "arc", "arz", "ckb", "dv", "fa", "he", "nqo", "ps", "sd", "syr", "ug", "ur", "yi"]
)
RTL_SCRIPTS = frozenset(["Adlm", "Arab", "Hebr", "Nkoo", "Rohg", "Samr", "Syrc", "Thaa"])
TAG = re.compile(r"[a-z]{2,3}(-[a-z]{4})?(-([a-z]{2}|[0-9]{3}))?(-[a-z0-9]{2,8})*", re.IGNORECASE)


def language_tag(text: str) -> str:
    """Return a BCP 47 language tag in its usual case; raise ValueError for invalid text.

    Only the form is validated, not whether the language is registered.

    >>> language_tag("DE"), language_tag("pt-br"), language_tag("ZH-hant-tw")
    ('de', 'pt-BR', 'zh-Hant-TW')
    """
    if not TAG.fullmatch(text):
        raise ValueError(
            f"{text!r} is not a BCP 47 language tag; expected a tag such as de, en or pt-BR"
        )
    first, *subtags = text.lower().split("-")
    return "-".join([first, *map(_usual_case, subtags)])


def _usual_case(subtag: str) -> str:
    """Return a region in upper case, a script in title case, and other subtags unchanged."""
    if len(subtag) == 4 and subtag.isalpha():
        return subtag.title()
    return subtag.upper() if len(subtag) == 2 else subtag


def base_language(tag: str) -> str:
    """Return the language of a tag without script, region or variant.

    >>> base_language("pt-BR")
    'pt'
    """
    return tag.partition("-")[0]


def text_direction(tag: str) -> str:
    """Return the direction of writing of a language: ``rtl`` (from right to left) or ``ltr``.

    >>> text_direction("ar-EG"), text_direction("az"), text_direction("az-Arab"), text_direction("ur-Latn")
    ('rtl', 'ltr', 'rtl', 'ltr')
    """
    subtags = tag.split("-")
    script = next((subtag for subtag in subtags[1:] if len(subtag) == 4 and subtag.isalpha()), "")
    is_right_to_left = script.title() in RTL_SCRIPTS if script else subtags[0] in RTL_LANGUAGES
    return "rtl" if is_right_to_left else "ltr"


def matches(language_range: str, tag: str) -> bool:
    """Return whether a tag equals a language range or is one of its variants (RFC 4647, section 3.3.1).

    >>> matches("pt", "pt-BR"), matches("pt-BR", "pt")
    (True, False)
    """
    return f"{tag}-".startswith(f"{language_range}-")


def single_language(records: Sequence[Dialogue | Item]) -> str | None:
    """Return the language stated by all dialogues or items; None if it is missing or inconsistent."""
    tags = {record.language for record in records}
    return tags.pop() if len(tags) == 1 else None


def check_language(
    records: Iterable[Dialogue | Item], name: str, option: str | None
) -> Counter[str | None]:
    """Return the number of records of each language; raise InputError if one contradicts ``--language``.

    name, option: see `data_language`.
    """
    counts = Counter(record.language for record in records)
    if option and not all(matches(option, tag) for tag in counts if tag):
        message = (
            f"the language of the data is {_format_counts(counts)}, but --language is {option}; expected "
            "the same"
        )
        raise InputError(Problem(name, None, message))
    return counts


def record_languages(
    records: Iterable[Dialogue | Item], name: str, option: str | None, purpose: str
) -> dict[str | None, str]:
    """Return the language of each stated tag, and of records that state none (key None).

    In contrast to `required_language`, there may be several languages; the arguments and errors are the same.
    """
    counts = check_language(records, name, option)
    if counts[None] and not option:
        raise InputError(Problem(name, None, _unstated(counts, purpose)))
    return {tag: tag or option or "" for tag in counts if tag or counts[None]}


def _unstated(counts: Counter[str | None], purpose: str) -> str:
    """Return the message for records without a language, of which some or none state one."""
    stated = {base_language(tag) for tag in counts if tag}
    if not stated:
        return (
            f"the data state no language, and {purpose} depend on it; "
            "expected --language, such as --language de"
        )
    remedy = "specify it with --language" if len(stated) == 1 else "state that of each dialogue"
    return f"some of the data state no language ({_format_counts(counts)}); {remedy}"


def data_language(
    records: Sequence[Dialogue | Item], name: str, option: str | None = None
) -> str | None:
    """Return the language of all dialogues or items; None if neither they nor the option state one.

    name: the file or data set in error messages.
    option: the value of ``--language``, the language of records that state none. It may be less specific than
    the records'
        own tag (``pt`` for records in ``pt-BR``, which is returned).

    Tags that differ only in script or region are reduced to their common language. Raises InputError for
    records in several languages, and for an option that contradicts them.
    """
    counts = check_language(records, name, option)
    stated = sorted(tag for tag in counts if tag)
    if len({base_language(tag) for tag in stated}) > 1:
        message = f"several languages ({_format_counts(counts)}); expected one"
        raise InputError(Problem(name, None, message))
    if stated and counts[None] and not option:
        raise InputError(Problem(name, None, _unstated(counts, "")))
    if not stated:
        return option
    return stated[0] if len(stated) == 1 else base_language(stated[0])


def _format_counts(counts: Counter[str | None]) -> str:
    """Return the languages with their numbers of records.

    >>> _format_counts(Counter({"de": 3, None: 1}))
    'de: 3, not stated: 1'
    """
    return ", ".join(f"{tag or 'not stated'}: {n}" for tag, n in counts.most_common())


def required_language(
    records: Sequence[Dialogue | Item], name: str, option: str | None, purpose: str
) -> str:
    """Return the language like `data_language`; raise InputError if it is unknown.

    purpose: what depends on the language, as a plural subject ("prompts").
    """
    language = data_language(records, name, option)
    if language is None:
        raise InputError(Problem(name, None, _unstated(Counter(), purpose)))
    return language
