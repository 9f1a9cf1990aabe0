"""The TOML file with the settings of a study, and the defaults of each kind of HIT in each language.

What workers read follows the language of the dialogues: the page, the title of the HITs, the language check.
The file states what is not to follow it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from bws.options import checked_value, declarations
from bws.problems import InputError, Problem
from bws.textio import display_name, parse_toml, read_text
from giccs.benchmark.languages import base_language, matches
from mturk import limits
from mturk.kinds import get_kind
from mturk.kinds.registry import DEFAULT_KIND, kind_names
from mturk.kinds.texts import HIT, built_in_languages, page_texts, parse_texts, read_texts
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
    page = page_language or (parse_texts(texts)["language"] if texts else base)
    definition = get_kind(kind)
    package, languages = definition.package, built_in_languages(definition.package)
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
        key = _setting_names(self.kind)["dialogue_language"]
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
        settings = replace(defaults, **self.values)
        if wrong := _combination_problems(settings):
            raise InputError(
                Problem(self.name, self.lines.get(k), text) for k, text in wrong.items()
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
    table = parse_toml(text, name)
    values: dict[str, Any] = {}
    wrong: dict[str, str] = {}
    kind = str(table["kind"]) if table.get("kind") in kind_names() else DEFAULT_KIND
    field_of = {name: setting for setting, name in _setting_names(kind).items()}
    for key, value in table.items():
        try:
            if key not in field_of:
                raise ValueError(f"unknown option {key}; expected one of {', '.join(field_of)}")
            values[field_of[key]] = checked_value(Settings, field_of[key], value, called=key)
        except ValueError as error:
            wrong[key] = str(error)
    if wrong:
        raise InputError(
            Problem(name, _line_of(text, key), message) for key, message in wrong.items()
        )
    if file := values.pop("texts", ""):
        values["texts"] = read_texts(Path(path).parent / file, get_kind(kind).package)
    lines = {field_of.get(key, key): _line_of(text, key) for key in table}
    return SettingsFile(name, kind, values, lines)


def _line_of(text: str, key: str) -> int | None:
    match = re.search(rf"""(?m)^\s*\[?\s*["']?{re.escape(key)}\b""", text)
    return text.count("\n", 0, match.end()) + 1 if match else None


def _setting_names(kind: str) -> dict[str, str]:
    """Return what each setting that a kind has is called in its file."""
    definition = get_kind(kind)
    return {
        setting: definition.setting_names.get(setting, setting)
        for setting in declarations(Settings)
        if setting not in definition.unused_settings
    }


def _combination_problems(settings: Settings) -> dict[str, str]:
    problems = limits.qualification_problems(settings.qualifications())
    return {"countries": "; ".join(problems)} if problems else {}


def default_toml(kind: str = DEFAULT_KIND, language: str | None = None) -> str:
    """Return a settings file with every setting of a kind at its default and a comment on each.

    Settings that follow the language of the study are commented out; `language`, a BCP 47 tag, is stated.

    >>> import tomllib
    >>> tomllib.loads(default_toml())["reward"], tomllib.loads(default_toml("conditions"))["pairs_per_hit"]
    ('0.30', 3)
    >>> "language" in tomllib.loads(default_toml())
    False
    """
    blocks = [
        "# Settings of an annotation study. Leave out what is to stay as it is here. Those behind a #\n"
        "# follow the language of the dialogues unless they are set.\n"
    ]
    settings, own_comments = default_settings(kind, "en"), get_kind(kind).setting_comments
    for setting, name in _setting_names(kind).items():
        comment = own_comments.get(setting, declarations(Settings)[setting].help)
        lines = [] if comment is None else ["", *(f"# {line}" for line in comment.splitlines())]
        states = language is not None and setting == "dialogue_language"
        follows = setting in FOLLOW_LANGUAGE and not states
        example = follows and setting != "countries"
        default = language if states else getattr(settings, setting)
        value = '""' if example else _toml(default)
        line = f"{'# ' if follows else ''}{name} = {value}"
        blocks.append("\n".join([*lines, line, ""]))
    return "".join(blocks)


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return f"[{', '.join(map(_toml, value))}]"
    return str(value) if isinstance(value, int) else f'"{value}"'
