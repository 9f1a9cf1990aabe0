"""The English texts of all catalogues; new, updated and checked catalogues."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bws.base.problems import InputError, Problem
from bws.base.text import parse_toml
from mturk.catalogues import (
    Catalogue,
    catalogues,
    locale,
    message_id,
    untranslated,
)
from mturk.kinds import get_kind
from mturk.kinds.registry import GROUP, kind_locations
from mturk.kinds.texts import (
    SHARED_FILE,
    built_in_texts,
    check_texts,
    is_built_in,
    page_messages,
    read_built_in_file,
    translated_files,
)
from mturk.service.site.texts import TEXTS

if TYPE_CHECKING:
    from babel.messages.catalog import Catalog, Message

    from mturk.study.settings import Settings

LINE_CHARACTERS = 100
MAX_NAMES = 5
PLACEHOLDER = re.compile(r"\{\w*\}")
HEADER = """\
# {name}: texts of annotation studies (worker site, consent, messages, pages of tasks).
# Reviewed-by: nobody"""
NOTES: Mapping[str, str] = {
    r"tuples\.cloze\.\d+\.key": "A name of letters and digits.",
    r"tuples\.cloze\.\d+\.sentence": "Not a translation: a sentence with a gap (___).",
    r"tuples\.cloze\.\d+\.options\.\d+": "A word for the gap; only one of the four fits.",
    r"tuples\.cloze\.\d+\.right": "The one of the four words that fits.",
    r"\w+\.(\w+\.)?hit\.title": "At most 128 characters.",
    r"\w+\.(\w+\.)?(best|worst)\.\d": "Part of a question; the second is emphasised. A space if it is empty.",
    r"(start\.consent|start\.information.*)": "Part of the consent.",
}
"""Pattern of keys -> comment for translators."""


@cache
def source_texts() -> Mapping[str, str]:
    """Return key -> English text of the site and of the pages of the built-in kinds of HIT.

    >>> source_texts()["nav.work"], source_texts()["tuples.of"]
    ('Tasks', 'of')
    """
    pages = (page_messages(package, name) for package, name in _pages())
    return {key: text for texts in (TEXTS, *pages) for key, text in texts.items()}


def _pages() -> Iterator[tuple[str, str]]:
    """Yield package and name of each file of texts of the built-in kinds."""
    for package in dict.fromkeys(get_kind(kind).package for kind in kind_locations()):
        if package.startswith(f"{GROUP}."):
            yield from ((package, name) for name in translated_files(package))


def _template() -> Catalog:
    """Return a catalogue without translations."""
    from babel.messages.catalog import Catalog

    template = Catalog()
    for key, text in source_texts().items():
        notes = [note for pattern, note in NOTES.items() if re.fullmatch(pattern, key)]
        template.add(message_id(text), context=key, auto_comments=notes)
    return template


def new_catalogue(language: str) -> Catalog:
    """Return a catalogue of a language without translations; ValueError for an unknown language."""
    from babel.messages.catalog import Catalog

    catalog = Catalog(language.replace("-", "_"), project="giccs", fuzzy=False)
    catalog.locale = locale(language)
    catalog.header_comment = HEADER.format(name=locale(language).english_name)
    update_catalogue(catalog)
    return catalog


def update_catalogue(catalog: Catalog) -> None:
    """Add new texts; translations of changed texts become fuzzy, those of removed texts obsolete."""
    template = _template()
    former = {message.context: message for message in catalog if message.id}
    for message in template:
        old = former.get(message.context)
        if message.id and old and old.id != message.id and old.string:
            catalog.delete(old.id, old.context)
            catalog.add(
                message.id, old.string, flags={*old.flags, "fuzzy"}, context=old.context,
                user_comments=old.user_comments,
            )  # fmt: skip
    catalog.update(template, no_fuzzy_matching=True, update_creation_date=False)


def catalogue_text(catalog: Catalog) -> str:
    """Return a catalogue as the content of its file."""
    from babel.messages.pofile import write_po

    file = io.BytesIO()
    write_po(file, catalog, width=LINE_CHARACTERS, no_location=True)
    return file.getvalue().decode()


def missing_texts(language: str, folders: Sequence[Path] = ()) -> list[str]:
    """Return the keys of the texts that are English in a language."""
    return untranslated(language, source_texts(), folders)


def unreviewed_languages(languages: Sequence[str], folders: Sequence[Path] = ()) -> list[str]:
    """Return the languages with a catalogue that nobody has reviewed."""
    return [
        language
        for language in languages
        if not all(one.reviewer for one in catalogues(language, folders))
    ]


def missing_notes(languages: Sequence[str], folders: Sequence[Path] = ()) -> list[str]:
    """Return a remark on each language of a site in which texts are missing."""
    counts = {language: len(missing_texts(language, folders)) for language in languages}
    return [
        f"{count} of {len(source_texts())} texts are missing in {language} and shown in English; "
        "`giccs annotate check-texts` lists them"
        for language, count in counts.items()
        if count
    ]


def page_notes(settings: Settings, folders: tuple[Path, ...] = ()) -> list[str]:
    """Return remarks on the texts of a page from catalogues: no review, and texts that are English."""
    package, language = get_kind(settings.kind).package, settings.language
    found = catalogues(language, folders)
    if not found or not is_built_in(package, language, folders=folders):
        return []
    if settings.texts and settings.texts != read_built_in_file(package, language, folders=folders):
        return []  # a file of the study
    notes = []
    if not all(one.reviewer for one in found):
        notes.append(f"nobody has reviewed the translation of the page in {language}")
    if missing := untranslated(language, page_messages(package), folders):
        names = ", ".join(missing[:MAX_NAMES]) + (", ..." if len(missing) > MAX_NAMES else "")
        notes.append(
            f"{len(missing)} texts of the page are missing in {language} ({names}): English texts are "
            "shown, and language checks are left out; `giccs annotate check-texts` lists them"
        )
    return notes


def catalogue_problems(catalogue: Catalogue) -> list[Problem]:
    """Return the faults of translations: placeholders, plural forms, and limits of the pages."""
    texts, name = source_texts(), str(catalogue.path)
    problems = [
        Problem(name, message.lineno, f"{message.context}: {fault}")
        for message in catalogue.catalog
        if message.id and message_id(texts.get(message.context or "", "")) == message.id
        for fault in _faults(message, catalogue.catalog)
    ]
    folders = catalogue.folders
    for package, page in _pages():
        is_own = page != SHARED_FILE and is_built_in(package, catalogue.language, page, folders)
        if is_own and not problems:
            toml = read_built_in_file(package, catalogue.language, page, folders)
            place = f"{name}: {package.rpartition('.')[2]}"
            try:
                check_texts(parse_toml(toml, place), built_in_texts(package, "en", page), place)
            except InputError as error:
                problems += error.problems
    return problems


def _texts(value: Any) -> list[str]:
    """Return the nonempty forms of a text with or without plural forms."""
    return [text for text in ((value,) if isinstance(value, str) else value or ()) if text]


def _faults(message: Message, catalog: Catalog) -> Iterator[str]:
    """Yield the faults of a translation: plural forms, missing and unknown placeholders."""
    yield from map(str, message.check(catalog))
    expected = set(PLACEHOLDER.findall(" ".join(_texts(message.id))))
    for string in _texts(message.string):
        found = set(PLACEHOLDER.findall(string))
        optional = {"{n}"} if message.pluralizable else set()
        if found != expected and not expected - optional <= found <= expected:
            names = ", ".join(sorted(found)) or "none"
            yield f"has the placeholders {names}; expected {', '.join(sorted(expected)) or 'none'}"
