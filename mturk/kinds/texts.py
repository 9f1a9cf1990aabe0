"""Texts of worker pages: built-in texts, and texts in other languages from a TOML file."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Any

from bws.problems import InputError, Problem
from bws.textio import display_name, parse_toml, read_text, read_toml
from giccs.benchmark.languages import language_tag
from mturk import limits

__all__ = [
    "built_in_languages",
    "built_in_texts",
    "page_texts",
    "parse_texts",
    "read_built_in_file",
    "read_texts",
]

OPTIONAL = frozenset(["cloze", "criteria"])
"""Optional keys: the language check, and the texts of the writers' sheet."""
HIT = {"title": limits.TITLE, "description": limits.DESCRIPTION, "keywords": limits.KEYWORDS}


@cache
def built_in_texts(package: str, language: str, name: str = "texts") -> dict[str, Any]:
    """Return the content of ``NAME.LANGUAGE.toml`` of a kind of HIT.

    >>> built_in_texts("mturk.kinds.tuples", "en")["language"]
    'en'
    """
    return parse_toml(read_built_in_file(package, language, name), f"{name}.{language}.toml")


def read_built_in_file(package: str, language: str, name: str = "texts") -> str:
    """Return ``NAME.LANGUAGE.toml`` of a package as text; FileNotFoundError if it is missing.

    If the package has ``page.LANGUAGE.toml``, texts shared by several such files, they come first.
    """
    shared = _folder(package) / f"page.{language}.toml"
    text = (_folder(package) / f"{name}.{language}.toml").read_text(encoding="utf-8")
    return (shared.read_text(encoding="utf-8") if shared.is_file() else "") + text


@cache
def built_in_languages(package: str, name: str = "texts") -> tuple[str, ...]:
    """Return the languages of a kind's built-in texts, sorted.

    >>> built_in_languages("mturk.kinds.tuples"), built_in_languages("mturk.kinds.conditions", "test")
    (('de', 'en'), ('en',))
    """
    files = (file.name.split(".") for file in _folder(package).iterdir())
    return tuple(sorted(parts[1] for parts in files if parts[0] == name and parts[2:] == ["toml"]))


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

    It must have the keys and types of the built-in English file (`mturk-hits estimate --default-texts` prints
    it), and ``language``, a BCP 47 tag. ``[[cloze]]``, the language check, is optional; without it, pages
    have none. Raises InputError with all problems.
    """
    table = read_toml(path)
    problems = list(_structure_problems(table, built_in_texts(package, "en"), ""))
    if not problems:
        problems = list(_value_problems(table))
    if problems:
        raise InputError(Problem(display_name(path), None, fault) for fault in problems)
    return read_text(path)


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
        if problem := limit.problem(table["hit"][name].strip()):
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
