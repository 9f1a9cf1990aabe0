"""Texts of worker pages: English ones in TOML, translated by catalogues, or a TOML file in any language."""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from bws.base.problems import InputError, Problem
from bws.base.text import display_name, parse_toml, read_text, read_toml
from giccs.benchmark.languages import language_tag
from mturk import catalogues, limits
from mturk.catalogues import available_languages

OPTIONAL = frozenset(["cloze", "criteria"])
"""Optional keys: the language check, and the texts of the writers' sheet."""
HIT = {"title": limits.TITLE, "description": limits.DESCRIPTION, "keywords": limits.KEYWORDS}


UNTRANSLATED_FILES = ("test", "words")
"""Files of a language of their own: tests of writers, and words that cause remarks."""
SHARED_FILE = "page"
"""Name of a file whose texts several files of a kind share."""
CODE = re.compile(r"language|example\.turns\.[0-9]+\.1")
"""Keys of strings that are no texts: the language, and the role of a speaker."""
TABLE = re.compile(r"(?m)^(?=\[)")
LITERAL = re.compile(r"#[^\n]*|(\"(?:[^\"\\\n]|\\.)*\")")
"""A comment, or a string, which is the first group."""
OWN_TABLE = "[[cloze]]"
"""A table that is left out unless it is translated: English words do not test another language."""


@cache
def built_in_texts(package: str, language: str, name: str = "texts") -> dict[str, Any]:
    """Return the texts ``NAME`` of a kind of HIT in a language.

    >>> built_in_texts("mturk.kinds.tuples", "en")["language"]
    'en'
    """
    return parse_toml(read_built_in_file(package, language, name), f"{name}.{language}.toml")


@cache
def read_built_in_file(
    package: str, language: str, name: str = "texts", folders: tuple[Path, ...] = ()
) -> str:
    """Return the texts ``NAME`` of a kind in a language as TOML; FileNotFoundError if there are none.

    They are the file ``NAME.LANGUAGE.toml`` of the package, or else the English file, translated by the
    catalogues of mturk and of the folders; single missing texts stay English. If the package has
    ``page.LANGUAGE.toml``, texts shared by several such files, they come first.
    """
    tag = language if _file(package, name, language).is_file() else "en"
    if tag != language and not is_built_in(package, language, name, folders):
        raise FileNotFoundError(f"{package}: {name}.{language}.toml")
    shared = _file(package, SHARED_FILE, tag)
    files = {SHARED_FILE: shared} if shared.is_file() else {}
    texts = {
        key: file.read_text(encoding="utf-8")
        for key, file in (files | {name: _file(package, name, tag)}).items()
    }
    if tag == "en" and catalogues.catalogues(language, folders):
        texts = {
            key: _translate(text, _prefix(package, key), language, folders)
            for key, text in texts.items()
        }
    return "".join(texts.values())


@cache
def built_in_languages(
    package: str, name: str = "texts", folders: tuple[Path, ...] = ()
) -> tuple[str, ...]:
    """Return the languages of a kind's built-in texts, sorted.

    >>> {"de", "en"} <= {*built_in_languages("mturk.kinds.tuples")}
    True
    >>> built_in_languages("mturk.kinds.conditions", "test")
    ('en',)
    """
    files = (file.name.split(".") for file in _folder(package).iterdir())
    languages = {parts[1] for parts in files if parts[0] == name and parts[2:] == ["toml"]}
    languages |= {*available_languages(folders)}
    return tuple(sorted(one for one in languages if is_built_in(package, one, name, folders)))


@cache
def is_built_in(
    package: str, language: str, name: str = "texts", folders: tuple[Path, ...] = ()
) -> bool:
    """Return whether a kind has built-in texts in a language: a file, or a translation of one of its texts.

    >>> is_built_in("mturk.kinds.tuples", "de"), is_built_in("mturk.kinds.conditions", "de", "test")
    (True, False)
    """
    if _file(package, name, language).is_file():
        return True
    if name not in translated_files(package) or language not in available_languages(folders):
        return False
    messages = page_messages(package, name)
    return len(catalogues.untranslated(language, messages, folders)) < len(messages)


@cache
def translated_files(package: str) -> tuple[str, ...]:
    """Return the names of the English files of a kind that catalogues translate, sorted.

    >>> translated_files("mturk.kinds.items")
    ('page', 'plausibility', 'relatedness', 'sentiment', 'texts')
    """
    names = (file.name.removesuffix(".en.toml") for file in _folder(package).iterdir()
             if file.name.endswith(".en.toml"))  # fmt: skip
    return tuple(sorted({*names} - {*UNTRANSLATED_FILES}))


@cache
def page_messages(package: str, name: str = "texts") -> Mapping[str, str]:
    """Return key -> English text of a kind's file ``NAME.en.toml``, without the shared texts.

    >>> page_messages("mturk.kinds.tuples")["tuples.speakers.user"]
    'Person'
    """
    table = tomllib.loads(_file(package, name, "en").read_text(encoding="utf-8"))
    prefix = _prefix(package, name)
    return {f"{prefix}.{key}": text for key, text in _strings(table) if not CODE.fullmatch(key)}


def _prefix(package: str, name: str) -> str:
    kind = package.rpartition(".")[2]
    return kind if name == "texts" else f"{kind}.{name}"


def _strings(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Yield the key and the text of each string in a table, in the order of its file.

    >>> list(_strings({"a": "x", "b": [{"c": "y"}, {"c": "z"}], "n": 1}))
    [('a', 'x'), ('b.1.c', 'y'), ('b.2.c', 'z')]
    """
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, dict | list):
        keys = value if isinstance(value, dict) else range(1, len(value) + 1)
        children = value.values() if isinstance(value, dict) else value
        for key, child in zip(keys, children, strict=True):
            yield from _strings(child, f"{path}.{key}" if path else str(key))


def _translate(toml: str, prefix: str, language: str, folders: tuple[Path, ...]) -> str:
    """Return English texts with each string replaced by its translation; comments are kept."""
    strings = _strings(tomllib.loads(toml))
    tables = TABLE.split(toml)
    return "".join(_translate_table(one, strings, prefix, language, folders) for one in tables)


def _translate_table(
    table: str, strings: Iterator[tuple[str, str]], prefix: str, language: str,
    folders: tuple[Path, ...],
) -> str:  # fmt: skip
    found, missing = catalogues.translations(language, folders), []

    def replace(match: re.Match[str]) -> str:
        if match[1] is None:
            return match[0]
        key, text = next(strings)
        if CODE.fullmatch(key):
            return json.dumps(language) if key == "language" else match[0]
        key = f"{prefix}.{key}"
        if not catalogues.is_translated(language, key, text, folders):
            missing.append(key)
        return json.dumps(catalogues.translate(found, key, text), ensure_ascii=False)

    translated = LITERAL.sub(replace, table)
    return "" if missing and table.startswith(OWN_TABLE) else translated


def _file(package: str, name: str, language: str) -> Traversable:
    return _folder(package) / f"{name}.{language}.toml"


def _folder(package: str) -> Traversable:
    """Return a package's directory without importing the package."""
    parent, _, name = package.rpartition(".")
    return resources.files(parent) / name if parent else resources.files(package)


def page_texts(package: str, language: str, texts: str = "") -> dict[str, Any]:
    """Return the texts of a kind's page: from TOML `texts`, or, if empty, the built-in ones."""
    return parse_texts(texts) if texts else built_in_texts(package, language)


@cache
def parse_texts(texts: str) -> dict[str, Any]:
    """Parse texts checked by `read_texts`; InputError if the ledger that stores them is damaged."""
    return parse_toml(texts, "texts")


def read_texts(path: str | os.PathLike[str], package: str) -> str:
    """Read and check a TOML file with the texts of a kind's page; return its content.

    It must have the keys and types of the built-in English file (`giccs annotate estimate --default-texts`
    prints it), and ``language``, a BCP 47 tag. ``[[cloze]]``, the language check, is optional; without it,
    pages have none. Raises InputError with all problems.
    """
    check_texts(read_toml(path), built_in_texts(package, "en"), display_name(path))
    return read_text(path)


def check_texts(table: Mapping[str, Any], model: Mapping[str, Any], name: str) -> None:
    """Raise InputError with all problems of the texts of a page; `model` has their keys and types."""
    problems = list(_structure_problems(table, model, ""))
    if not problems:
        problems = list(_value_problems(table))
    if problems:
        raise InputError(Problem(name, None, fault) for fault in problems)


def _structure_problems(
    table: Mapping[str, Any], model: Mapping[str, Any], prefix: str
) -> Iterator[str]:
    """Yield missing and unknown keys, and values whose type differs from the model."""
    for key in sorted(table.keys() - model.keys() - OPTIONAL):
        yield f"unknown key {prefix}{key}; expected {', '.join(model)}"
    for key, value in model.items():
        if key not in table:
            if key not in OPTIONAL:
                yield f"{prefix}{key} is missing; expected a {_type_name(value)}"
        elif type(table[key]) is not type(value):
            yield f"{prefix}{key} is a {_type_name(table[key])}; expected a {_type_name(value)}"
        elif isinstance(value, str) and not table[key].strip():
            yield f"{prefix}{key} is empty; expected a text"
        elif isinstance(value, dict):
            yield from _structure_problems(table[key], value, f"{prefix}{key}.")
        elif isinstance(value, list):
            yield from _list_problems(table[key], value, f"{prefix}{key}")


def _list_problems(values: Sequence[Any], model: Sequence[Any], path: str) -> Iterator[str]:
    """Yield elements whose type or structure differs from the model."""
    if not values and model:
        yield f"{path} is empty; expected at least one element"
    for number, value in enumerate(values, start=1):
        if type(value) is not type(model[0]):
            yield f"{path}: element {number} is a {_type_name(value)}; expected a {_type_name(model[0])}"
        elif isinstance(value, list):
            yield from _list_problems(value, model[0], f"{path}: element {number}")
        elif isinstance(value, dict):
            yield from _structure_problems(
                value, _element_model(value, model), f"{path} {number}: "
            )


def _element_model(
    element: Mapping[str, Any], model: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """Return the model for a table in a list: the keys of all tables of the model.

    Keys that are missing or empty in some tables of the model are optional.
    """
    expected: dict[str, Any] = {}
    for key in {key for table in model for key in table}:
        values = [table[key] for table in model if key in table]
        optional = len(values) < len(model) or not all(values)
        if not optional or element.get(key):
            expected[key] = next(value for value in values if value)
        elif key in element:
            expected[key] = element[key]
    return expected


def _type_name(value: Any) -> str:
    names = {"str": "text", "list": "list", "dict": "table", "int": "whole number"}
    return names.get(type(value).__name__, type(value).__name__)


def _value_problems(table: Mapping[str, Any]) -> Iterator[str]:
    try:
        language_tag(table["language"])
    except ValueError as error:
        yield f"language: {error}"
    for name, limit in HIT.items():
        if "hit" in table and (problem := limit.problem(table["hit"][name].strip())):
            yield f"hit.{name}: {problem}"
    for name in ("best", "worst"):
        if isinstance(words := table.get(name), list) and len(words) != 3:
            yield f"{name} has {len(words)} elements; expected 3, of which the middle is emphasised"
    example = table.get("example", {})
    for name in ("best", "worst"):
        if name in example and not 0 <= example[name] < len(example["options"]):
            yield f"example.{name} is {example[name]}; expected 0 to {len(example['options']) - 1}"
    for number, option in enumerate(example.get("options", []), start=1):
        if isinstance(option, list) and len(option) > 2:
            yield f"example.options: element {number} has {len(option)} texts; expected 1 or 2"
    for turn in example.get("turns", []):
        if len(turn) != 2:
            yield f"example.turns has {turn!r}; expected a speaker and a text"
    for number, cloze in enumerate(table.get("cloze", []), start=1):
        yield from (f"cloze {number}: {fault}" for fault in _cloze_problems(cloze))


def _cloze_problems(cloze: Mapping[str, Any]) -> Iterator[str]:
    if problems := list(
        _structure_problems(
            cloze, {"key": "a", "sentence": "a", "options": ["a"], "right": "a"}, ""
        )
    ):
        yield from problems
        return
    if not cloze["key"].isalnum():
        yield f"key is {cloze['key']!r}; expected letters and digits"
    if "___" not in cloze["sentence"]:
        yield "sentence has no gap; expected ___"
    if cloze["right"] not in cloze["options"] or len(set(cloze["options"])) < 2:
        yield f"right is {cloze['right']!r}; expected one of at least two different options"
