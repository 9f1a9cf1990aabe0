"""TOML file with the settings of a study; defaults per kind of HIT and language.

Page texts, HIT title and language check default to the language of the dialogues.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

from bws.base.options import checked_value, declarations
from bws.base.problems import InputError, Problem, suggestion
from bws.base.settings_files import read_settings_text
from bws.base.text import display_name
from giccs.benchmark.languages import base_language, matches
from mturk import limits
from mturk.catalogues import SOURCE_LANGUAGE
from mturk.kinds import get_kind
from mturk.kinds.registry import DEFAULT_KIND, kind_names
from mturk.kinds.texts import (
    HIT,
    built_in_languages,
    built_in_texts,
    check_texts,
    is_built_in,
    page_texts,
    parse_texts,
    read_built_in_file,
    read_texts,
)
from mturk.study.settings import Settings

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
VOLUNTEER_SETTINGS: Mapping[str, Any] = {
    "reward": Decimal("0.00"),
    "countries": (),
    "approval_rate_above": -1,
}
"""Defaults of studies with ``volunteers = true``."""


def default_settings(
    kind: str, language: str, *, page_language: str = "", texts: str = ""
) -> Settings:
    """Return the default settings of a kind of HIT in a language.

    language: BCP 47 tag of the dialogues or sentences.
    page_language: language of the page texts; empty: that of `texts`, or else of the dialogues.
    texts: content of a file of page texts as returned by `mturk.kinds.texts.read_texts`; empty: built-in
    texts.

    Raises ValueError if there are no built-in texts in the language of the page.

    >>> settings = default_settings("verification", "en")
    >>> settings.assignments, settings.language, settings.countries
    (3, 'en', ())
    >>> default_settings("tuples", "de") == Settings()
    True
    """
    base = base_language(language)
    page = page_language or (parse_texts(texts)["language"] if texts else base)
    definition = get_kind(kind)
    package = definition.package
    if not texts and not is_built_in(package, page):
        available = ", ".join(built_in_languages(package))
        raise ValueError(
            f"no built-in page texts in {page} (available: {available}); expected "
            f"{page}.po beside the settings file (`giccs annotate check-texts --new {page}`), "
            'texts = "FILE.toml", or the language of the page'
        )
    # titles may name the language of the dialogues, so those of another page language would be wrong
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
    """Checked settings from a file."""

    name: str = "settings"
    """Name of the file in messages."""
    kind: str = DEFAULT_KIND
    values: Mapping[str, Any] = field(default_factory=dict)
    lines: Mapping[str, int | None] = field(default_factory=dict)
    """Setting -> line number."""
    folder: Path | None = None
    """Folder of the study, with catalogues of its own."""

    def settings(self, language: str | None) -> Settings:
        """Return all settings of a study; missing ones get the defaults of the kind and language.

        language: BCP 47 tag of the dialogues, or of ``--language``; None: the file must state it. Raises
        InputError if no language is given, or the file states a different one.
        """
        stated = self.values.get("dialogue_language")
        key = _setting_names(self.kind)["dialogue_language"]
        if stated and language and not (matches(stated, language) or matches(language, stated)):
            message = f"{key} is {stated!r}, but the study is in {language}; expected the same"
            raise self._error("dialogue_language", message)
        tag = stated or language
        if tag is None:
            message = "missing language of the worker page; expected --language"
            raise InputError(
                Problem(self.name, None, f"{message}, such as --language de, or {key}")
            )
        page = self.values.get("language", "")
        texts = self.values.get("texts", "") or self._folder_texts(page or base_language(tag))
        if texts and page and page != parse_texts(texts)["language"]:
            texts_language = parse_texts(texts)["language"]
            message = (
                f"language is {page!r}, but the texts are in {texts_language}; expected the same"
            )
            raise self._error("language", message)
        try:
            defaults = default_settings(self.kind, tag, page_language=page, texts=texts)
        except ValueError as error:
            raise self._error("language" if page else "dialogue_language", str(error)) from None
        preset = VOLUNTEER_SETTINGS if self.values.get("volunteers") else {}
        settings = replace(defaults, **{**preset, **self.values, "texts": texts})
        if messages := _combination_problems(settings):
            raise InputError(
                Problem(self.name, self.lines.get(k), text) for k, text in messages.items()
            )
        return settings

    def _folder_texts(self, language: str) -> str:
        """Return the page texts in a language if the study's own catalogues change them; else empty."""
        package = get_kind(self.kind).package
        if self.folder is None or not get_kind(self.kind).has_question:
            return ""
        if not is_built_in(package, language, folders=(self.folder,)):
            return ""
        texts = read_built_in_file(package, language, folders=(self.folder,))
        if is_built_in(package, language) and texts == read_built_in_file(package, language):
            return ""
        name = display_name(self.folder / f"{language}.po")
        check_texts(parse_texts(texts), built_in_texts(package, SOURCE_LANGUAGE), name)
        return texts

    def _error(self, setting: str, message: str) -> InputError:
        return InputError(Problem(self.name, self.lines.get(setting), message))


def read_settings(path: str | os.PathLike[str], language: str | None = None) -> Settings:
    """Read the settings of a study from a TOML file; missing ones get the defaults of the kind and language.

    language: language of the dialogues or sentences if the file does not state it. Raises InputError as
    `read_settings_file` and `SettingsFile.settings` do.
    """
    return read_settings_file(path).settings(language)


def read_settings_file(path: str | os.PathLike[str]) -> SettingsFile:
    """Read and check the settings in a TOML file; InputError with all problems and their lines.

    Amounts of money are strings, such as "0.25"; ``texts`` is the path of a file, relative to this file.
    """
    file = read_settings_text(path)
    values: dict[str, Any] = {}
    messages: dict[str, str] = {}
    kind = str(file.values["kind"]) if file.values.get("kind") in kind_names() else DEFAULT_KIND
    field_of = {name: setting for setting, name in _setting_names(kind).items()}
    for key, value in file.values.items():
        try:
            if key not in field_of:
                expected = f"expected one of {', '.join(field_of)}{suggestion(key, field_of)}"
                raise ValueError(f"unknown option {key}; {expected}")
            values[field_of[key]] = checked_value(Settings, field_of[key], value, called=key)
        except ValueError as error:
            messages[key] = str(error)
    if messages:
        raise InputError(file.problem((key,), message) for key, message in messages.items())
    if texts := values.pop("texts", ""):
        values["texts"] = read_texts(Path(path).parent / texts, get_kind(kind).package)
    lines = {field_of[key]: file.lines.get((key,)) for key in file.values}
    folder = None if file.name == "<stdin>" else Path(path).absolute().parent
    return SettingsFile(file.name, kind, values, lines, folder)


def _setting_names(kind: str) -> dict[str, str]:
    """Return setting -> name in the settings file of a kind."""
    definition = get_kind(kind)
    return {
        setting: definition.setting_names.get(setting, setting)
        for setting in declarations(Settings)
        if setting not in definition.unused_settings
    }


def _combination_problems(settings: Settings) -> dict[str, str]:
    problems = limits.qualification_problems(settings.qualifications())
    messages = {"countries": "; ".join(problems)} if problems else {}
    if settings.volunteers and settings.reward:
        messages["reward"] = (
            f"reward is '{settings.reward}' with volunteers = true; expected '0.00'"
        )
    if not settings.volunteers and not settings.reward:
        expected = 'dollars of at least 0.01 as a text, such as "0.25", or volunteers = true'
        messages["reward"] = f"reward is '0.00'; expected {expected}"
    return messages


def default_toml(kind: str = DEFAULT_KIND, language: str | None = None) -> str:
    """Return a settings file with the defaults of a kind and a comment per setting.

    Settings whose defaults depend on the language are commented out. `language`, a BCP 47 tag, is set if
    given.

    >>> import tomllib
    >>> tomllib.loads(default_toml())["reward"], tomllib.loads(default_toml("conditions"))["pairs_per_hit"]
    ('0.30', 3)
    >>> "language" in tomllib.loads(default_toml())
    False
    """
    blocks = [
        "# Settings of an annotation study. Missing settings have the values below. Those commented\n"
        "# out depend on the language of the dialogues unless they are set.\n"
    ]
    settings, own_comments = default_settings(kind, "en"), get_kind(kind).setting_comments
    for setting, name in _setting_names(kind).items():
        comment = own_comments.get(setting, declarations(Settings)[setting].help)
        lines = [] if comment is None else ["", *(f"# {line}" for line in comment.splitlines())]
        is_stated = language is not None and setting == "dialogue_language"
        depends_on_language = setting in FOLLOW_LANGUAGE and not is_stated
        is_placeholder = depends_on_language and setting != "countries"
        default = language if is_stated else getattr(settings, setting)
        value = '""' if is_placeholder else _toml(default)
        line = f"{'# ' if depends_on_language else ''}{name} = {value}"
        blocks.append("\n".join([*lines, line, ""]))
    return "".join(blocks)


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return f"[{', '.join(map(_toml, value))}]"
    return str(value) if isinstance(value, int) else f'"{value}"'
