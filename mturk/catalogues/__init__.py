"""Catalogues of translations: gettext files of all texts that participants read, one per language.

English is the language of the source (`mturk.catalogues.source`). Other languages are files ``LANGUAGE.po``
in the folder of a study, in this package, and in the packages that entry points of the group
``mturk.languages`` name (language = package), in this order of precedence. A translation belongs to a
context, the key of the text, and to the English text: it is not used after the English text has changed.
"""

from __future__ import annotations

import io
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from bws.base.problems import InputError, Problem
from bws.base.text import display_name, read_bytes
from giccs.benchmark.languages import base_language, language_tag

if TYPE_CHECKING:
    from babel import Locale
    from babel.messages.catalog import Catalog
    from babel.support import NullTranslations

__all__ = [
    "PACKAGE_FOLDER", "SOURCE_LANGUAGE", "Catalogue", "available_languages", "best_language", "catalogues",
    "installed_files", "is_translated", "locale", "message_id", "read_catalogue", "translate", "translations",
    "untranslated",
]  # fmt: skip

SOURCE_LANGUAGE = "en"
GROUP = "mturk.languages"
"""Entry points of other distributions: language tag = package with the file ``TAG.po``."""
PACKAGE_FOLDER = Path(__file__).parent
REVIEWER = re.compile(r"(?m)^# Reviewed-by: *(.*?) *$")
"""Line of the header; its value is a person, or ``nobody``."""


@dataclass(frozen=True, slots=True, eq=False)
class Catalogue:
    """A file of translations."""

    path: Path
    language: str
    catalog: Catalog

    @property
    def folders(self) -> tuple[Path, ...]:
        """The folder of the file; empty for the package's own."""
        folder = self.path.absolute().parent
        return () if any(map(folder.samefile, installed_folders())) else (folder,)

    @property
    def reviewer(self) -> str:
        """Who has reviewed the translations, as the header states; empty: nobody."""
        match = REVIEWER.search(self.catalog.header_comment)
        return match[1].removeprefix("nobody") if match else ""

    def has(self, context: str, text: str) -> bool:
        """Return whether a text has a complete translation that is not marked as fuzzy."""
        message = self.catalog.get(message_id(text), context)
        if message is None or message.fuzzy or not message.string:
            return False
        return isinstance(message.string, str) or all(message.string)


def message_id(text: str) -> str | tuple[str, str]:
    """Return the gettext id of an English text: the text, or the singular and the plural of ``one|many``.

    >>> message_id("{n} task|{n} tasks"), message_id("Task")
    (('{n} task', '{n} tasks'), 'Task')
    """
    singular, separator, plural = text.partition("|")
    return (singular, plural) if separator else text


def read_catalogue(path: str | os.PathLike[str]) -> Catalogue:
    """Read ``LANGUAGE.po``; InputError if it is damaged, or its name and its header differ."""
    from babel.messages.plurals import get_plural
    from babel.messages.pofile import PoFileError, read_po

    name, language = display_name(path), _language_of(Path(path))
    try:
        catalog = read_po(io.BytesIO(read_bytes(path)), abort_invalid=True)
    except (PoFileError, ValueError) as error:
        line = getattr(error, "lineno", None)
        text = f"not a valid catalogue: {error}".replace("\n", " ")
        raise InputError(Problem(name, line, text)) from None
    if str(catalog.locale_identifier).replace("_", "-") != language:
        message = f"the header states Language: {catalog.locale_identifier}; expected {language}"
        raise InputError(Problem(name, None, message))
    n_plurals = get_plural(locale(language)).num_plurals
    if catalog.num_plurals != n_plurals:
        message = f"Plural-Forms has {catalog.num_plurals} forms; {language} has {n_plurals}"
        raise InputError(Problem(name, None, message))
    return Catalogue(Path(path), language, catalog)


_read_once = cache(read_catalogue)


def _language_of(path: Path) -> str:
    """Return the language of a file by its name; InputError if it is not a language."""
    try:
        language = language_tag(path.stem)
        locale(language)
    except ValueError as error:
        message = f"the name is no language: {error}"
        raise InputError(Problem(display_name(path), None, message)) from None
    return language


@cache
def locale(language: str) -> Locale:
    """Return the locale of a BCP 47 tag, without subtags that Unicode CLDR does not know.

    Raises ValueError for an unknown language.

    >>> str(locale("zh-Hant-TW")), str(locale("es-XY"))
    ('zh_Hant_TW', 'es')
    """
    from babel import Locale, UnknownLocaleError

    for tag in _truncated(language):
        try:
            return Locale.parse(tag, sep="-")
        except (UnknownLocaleError, ValueError):
            continue
    raise ValueError(
        f"{language!r} is not a language of Unicode CLDR; expected a tag such as de, en or pt-BR"
    )


def _truncated(language: str) -> list[str]:
    """Return a tag and its prefixes, the longest first.

    >>> _truncated("zh-Hant-TW")
    ['zh-Hant-TW', 'zh-Hant', 'zh']
    """
    subtags = language.split("-")
    return ["-".join(subtags[:n]) for n in range(len(subtags), 0, -1)]


@cache
def installed_folders() -> tuple[Path, ...]:
    """Return this package's folder, and those of other distributions with catalogues.

    Raises ValueError for an entry point whose package has no catalogue of its language.
    """
    points = sorted(entry_points(group=GROUP), key=lambda point: point.name)
    return (PACKAGE_FOLDER, *dict.fromkeys(map(_folder_of, points)))


def _folder_of(point: EntryPoint) -> Path:
    spec = find_spec(point.value)
    folder = Path(spec.origin).parent if spec is not None and spec.origin else Path()
    if not (folder / f"{point.name}.po").is_file():
        message = f"entry point {GROUP}: {point.name} = {point.value!r} has no file {point.name}.po"
        raise ValueError(message)
    return folder


def installed_files() -> list[Path]:
    """Return the catalogues of the package and of other distributions, sorted by language."""
    files = [file for folder in installed_folders() for file in folder.glob("*.po")]
    return sorted(files, key=lambda file: file.stem)


def available_languages(folders: Sequence[Path] = ()) -> tuple[str, ...]:
    """Return English and the languages of all installed catalogues and of the folders, sorted.

    >>> {"de", "en"} <= {*available_languages()}
    True
    """
    files = [*installed_files(), *(file for folder in folders for file in folder.glob("*.po"))]
    return tuple(sorted({SOURCE_LANGUAGE, *map(_language_of, files)}))


def catalogues(language: str, folders: Sequence[Path] = ()) -> list[Catalogue]:
    """Return the catalogues for a language in order of precedence: those of the folders first.

    A region without a catalogue of its own has that of its language: ``es.po`` is used for es-MX.
    """
    files = (
        folder / f"{tag}.po"
        for tag in _truncated(language)
        for folder in (*folders, *installed_folders())
    )
    return [_read_once(file) for file in files if file.is_file()]


@cache
def translations(language: str, folders: tuple[Path, ...] = ()) -> NullTranslations:
    """Return the compiled catalogues for a language; texts missing in all of them stay English."""
    from babel.messages.mofile import write_mo
    from babel.support import NullTranslations, Translations

    found = NullTranslations()
    for catalogue in reversed(catalogues(language, folders)):
        compiled = io.BytesIO()
        write_mo(compiled, catalogue.catalog)
        compiled.seek(0)
        more = Translations(compiled)
        more.add_fallback(found)
        found = more
    return found


def translate(found: NullTranslations, context: str, text: str, n: int = 0) -> str:
    """Return the translation of an English text; `n` selects the form of ``one|many``."""
    identifier = message_id(text)
    if isinstance(identifier, str):
        return str(found.upgettext(context, identifier))
    return str(found.unpgettext(context, *identifier, n))


def is_translated(language: str, context: str, text: str, folders: Sequence[Path] = ()) -> bool:
    """Return whether a text exists in a language.

    >>> is_translated("en-GB", "nav.work", "Tasks"), is_translated("de", "nav.work", "Jobs")
    (True, False)
    """
    return not untranslated(language, {context: text}, folders)


def untranslated(
    language: str, texts: Mapping[str, str], folders: Sequence[Path] = ()
) -> list[str]:
    """Return the contexts of the English texts that no catalogue for a language translates."""
    if base_language(language) == SOURCE_LANGUAGE:
        return []
    found = catalogues(language, folders)
    return [
        context
        for context, text in texts.items()
        if not any(catalogue.has(context, text) for catalogue in found)
    ]


def best_language(wanted: Iterable[str], available: Iterable[str]) -> str | None:
    """Return the available language that fits the first wanted one best (RFC 4647, section 3.4), or None.

    A region takes its language, and a language one of its regions.

    >>> best_language(["fr", "DE-at"], ["de", "en"]), best_language(["pt"], ["pt-BR"])
    ('de', 'pt-BR')
    """
    names = {name.lower(): name for name in available}
    for tag in wanted:
        prefixes = _truncated(tag.lower())
        for prefix in prefixes:
            if prefix in names:
                return names[prefix]
        for lower, name in names.items():
            if base_language(lower) == prefixes[-1]:
                return name
    return None
