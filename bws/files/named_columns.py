"""Columns of judgments that the user names (``--column ROLE=NAME``), and proposals for unknown headers."""

from __future__ import annotations

import csv
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import islice, permutations
from typing import TYPE_CHECKING

from bws.base.file_kinds import (
    ANNOTATOR,
    BEST,
    GROUP,
    LONG,
    ROLES,
    TUPLE,
    WORST,
    first_of,
    numbered,
    plain,
)
from bws.base.problems import InputError, Problem
from bws.base.rows import csv_text
from bws.files.long import with_signs
from bws.files.rows import Format
from bws.files.table import Table

if TYPE_CHECKING:
    import polars as pl

NAMES = {"best": BEST, "worst": WORST, "tuple_id": TUPLE, "group": GROUP, "annotator": ANNOTATOR}
WORDS = {
    "best": ("best", "most", "top", "meist", "positiv", "mejor", "meilleur"),
    "worst": ("worst", "least", "bottom", "schlecht", "wenigst", "negativ", "peor", "pire"),
}
ABBREVIATIONS = {"best": "pos", "worst": "neg"}
VALUES = {"1", "+1", "-1", "0", ""}
MARKS = {"0", "1", "", "true", "false", "x"}
NUMBER_SUFFIX, LETTER_SUFFIX = (
    re.compile(r"(.*?)[ _.-]?(\d{1,3})"),
    re.compile(r"(.*[ _.-]|)([A-L])"),
)
LONG_IDS = ("annotator", "tuple_id", "items")
SAMPLE = 200
MAX_TRIED = 100


class UnknownColumnsError(InputError):
    """A header for which other columns have to be named."""


def with_named_columns(table: Table, parts: Mapping[str, str], form: Format | None) -> Table:
    """Return the table with the names that a format expects for the columns of these roles.

    parts: role -> column; for items several columns separated by commas.
    form: None for a format that is to be detected.

    Other columns that have such a name are renamed. Raises InputError for columns that do not exist.
    """
    new_names = dict(_new_names(parts, form))
    table = table.named(new_names)
    if missing := [name for name in new_names if name not in table.frame.columns]:
        columns = ", ".join(table.frame.columns)
        message = f"no column {', '.join(missing)}; existing columns are {columns}"
        raise UnknownColumnsError(Problem(table.file, 1, message))
    unused = {
        name: f"{name} (unused)"
        for name in table.frame.columns
        if name not in new_names
        and (name in new_names.values() or ("items" in parts and re.search(r"\d$", name)))
    }
    return replace(table, frame=table.frame.rename(new_names | unused))


def _new_names(parts: Mapping[str, str], form: Format | None) -> list[tuple[str, str]]:
    """Return (column, new name) pairs; ValueError for a column with two roles."""
    item_columns = column_list(parts.get("items", ""))
    own_names = form.column_names if form else {}
    if "value" in parts and form and "value" not in own_names:
        raise ValueError(f"column value is of the form 'long'; form is {form.name!r}")
    if len(item_columns) == 1 and ("value" in own_names or form is None):
        names = [(item_columns[0], own_names.get("items", "item"))]
    else:
        item_name = form.item_name if form else Format.item_name
        names = [(column, item_name(index)) for index, column in enumerate(item_columns)]
    names += [(parts[role], own_names.get(role, role)) for role in ROLES[1:] if role in parts]
    columns = [column for column, _ in names]
    if repeated := sorted({column for column in columns if columns.count(column) > 1}):
        raise ValueError(f"column {', '.join(repeated)} has two roles; expected one")
    return names


def column_list(text: str) -> list[str]:
    """Return the names in a list separated by commas; names with commas are quoted.

    >>> column_list('a, "b, c"')
    ['a', 'b, c']
    """
    return [
        name.strip() for name in next(csv.reader([text], skipinitialspace=True), []) if name.strip()
    ]


def with_word(columns: Sequence[str], role: str) -> str | None:
    """Return the only column whose name contains a word for best or worst, or is its abbreviation.

    >>> with_word(["Bestes", "Schlechtestes"], "worst"), with_word(["Answer.pos", "Answer.neg"], "best")
    ('Schlechtestes', 'Answer.pos')
    """
    named = [
        name
        for name in columns
        if any(word in plain(name) for word in WORDS[role])
        or plain(name.rpartition(".")[2]) == ABBREVIATIONS[role]
    ]
    return named[0] if len(named) == 1 else None


def marked_items(table: Table) -> str:
    """Return what is expected of a table of one row per item whose columns of best and worst are marks.

    Empty for other tables.
    """
    columns = table.frame.columns
    best, worst = first_of(columns, BEST), first_of(columns, WORST)
    item = first_of(columns, LONG["items"])
    if not (best and worst and item):
        return ""
    values = [{*table.frame[name].str.strip_chars().str.to_lowercase()} for name in (best, worst)]
    if not all(len(marks) == 2 and marks <= MARKS for marks in values):
        return ""
    return (
        f"{best} and {worst} mark the item of a row; expected one column with 1 (best), -1 (worst) or 0, "
        f"such as their difference, read with --column items={shlex.quote(item)} --column value=NAME"
    )


def proposal(table: Table) -> str:
    """Return the command that would read a table whose header is unknown, or an empty string.

    Columns are assigned to roles by name and content; a role without a column has ``NAME``.
    """
    roles = _wide_roles(table) or _long_roles(table)
    options = " ".join(
        f"--column {role}={shlex.quote(roles[role])}" for role in ROLES if role in roles
    )
    return f"giccs score {shlex.quote(table.file)} {options}" if roles else ""


def _wide_roles(table: Table) -> dict[str, str]:
    """Return the roles if there are columns of best and worst; empty otherwise."""
    columns = table.frame.columns
    roles = {}
    for role in WORDS:
        if column := first_of(columns, NAMES[role]) or with_word(columns, role):
            roles[role] = column
    items = _item_columns(table, list(roles.values()))
    if not items and len(roles) < 2:
        return {}
    others = [name for name in columns if name not in (*items, *roles.values())]
    found = {role: first_of(others, NAMES[role]) for role in ("tuple_id", "group", "annotator")}
    found["annotator"] = found["annotator"] or first_of(others, LONG["annotator"])
    roles |= {role: name for role, name in found.items() if name}
    return {
        "items": csv_text([items]).strip() if items else "NAME,NAME",
        "best": "NAME",
        "worst": "NAME",
    } | roles


def _item_columns(table: Table, answers: Sequence[str]) -> list[str]:
    """Return the numbered columns, or else those from the first to the last with texts of the answers.

    Most texts of these two are answers, or are also in a column that contains an answer of the same row.
    Otherwise, the columns are those numbered with gaps or by letters. Of several numbered sets, it is the one
    with the answers, or else the one that is not of numbers.
    """
    columns = [name for name in table.frame.columns if name not in answers]
    stems = dict.fromkeys(re.sub(r"[ _.-]?\d+$", "", name) for name in columns)
    sets = [numbered(columns, re.escape(stem)) for stem in stems]
    sets = [names for names in sets if len(names) > 1]
    head = table.frame.head(SAMPLE)
    for choose in (_have_answers, _have_texts):
        if len(sets) > 1:
            sets = [names for names in sets if choose(head, names, answers)] or sets
    if len(sets) == 1:
        return sets[0]
    texts = {name: {*head[name]} - {""} for name in table.frame.columns}
    matches = [
        name for name in columns if any((head[name] == head[answer]).any() for answer in answers)
    ]
    known = set().union(*(texts[name] for name in (*answers, *matches)))
    places = [
        n for n, name in enumerate(columns) if 2 * len(texts[name] & known) > len(texts[name])
    ]
    # An item between two others may never be chosen.
    if len(places) > 1 and matches:
        return columns[places[0] : places[-1] + 1]
    sets = _sets_of_suffixes(columns)
    return sets[0] if len(sets) == 1 else []


def _have_answers(head: pl.DataFrame, names: Sequence[str], answers: Sequence[str]) -> bool:
    """Return whether most rows have their answer in one of these columns."""
    return any(
        2 * sum(head[answer][row] in texts for row, texts in enumerate(head[names].iter_rows()))
        > len(head)
        for answer in answers
    )


def _have_texts(head: pl.DataFrame, names: Sequence[str], _: Sequence[str]) -> bool:
    """Return whether a text of these columns is not a number."""
    return any(not head[name].str.contains(r"^[\s0-9.,+-]*$").all() for name in names)


def _sets_of_suffixes(columns: Sequence[str]) -> list[list[str]]:
    """Return the columns with the same name before a number, or before a letter from A without gaps.

    >>> _sets_of_suffixes(["item10", "item2", "Option A", "Option B", "x", "A"])
    [['item2', 'item10'], ['Option A', 'Option B']]
    """
    sets: dict[str, list[tuple[int, str]]] = {}
    for name in columns:
        if match := NUMBER_SUFFIX.fullmatch(name):
            sets.setdefault(match[1] + "1", []).append((int(match[2]), name))
        elif match := LETTER_SUFFIX.fullmatch(name):
            sets.setdefault(match[1] + "A", []).append((ord(match[2]) - ord("A"), name))
    return [
        [name for _, name in sorted(named)]
        for stem, named in sets.items()
        if len(named) > 1
        and (stem.endswith("1") or sorted(n for n, _ in named) == list(range(len(named))))
    ]


def _long_roles(table: Table) -> dict[str, str]:
    """Return the roles of the long form if a column has only the values 1, -1 and 0; empty otherwise."""
    head = table.frame.head(SAMPLE)
    plain_values = {name: with_signs(head[name]) for name in head.columns}
    signs = [name for name, values in plain_values.items() if {"1", "-1"} <= {*values} <= VALUES]
    if len(signs) != 1:
        return {}
    value, left = signs[0], [name for name in head.columns if name != signs[0]]
    known: dict[str, str] = {}
    for role in LONG_IDS:
        if column := first_of([name for name in left if name not in known.values()], LONG[role]):
            known[role] = column
    missing = [role for role in LONG_IDS if role not in known]
    free = [name for name in left if name not in known.values()]
    for columns in islice(permutations(free, len(missing)), MAX_TRIED):
        roles = known | dict(zip(missing, columns, strict=True))
        if _are_blocks(head, roles, plain_values[value]):
            return roles | {"value": value}
    return dict.fromkeys(missing, "NAME") | known | {"value": value}


def _are_blocks(head: pl.DataFrame, roles: Mapping[str, str], values: pl.Series) -> bool:
    """Return whether each block of an annotator has distinct items, one of them best and one worst.

    The last block may be incomplete.
    """
    blocks: dict[tuple[str, ...], list[tuple[str, str]]] = {}
    for *block, item, value in zip(*(head[roles[role]] for role in LONG_IDS), values, strict=True):
        blocks.setdefault(tuple(block), []).append((item, value))
    *complete, _ = blocks.values() if len(blocks) > 1 else (*blocks.values(), [])
    return all(
        [value for _, value in block].count(sign) == 1 and len({*block}) == len(complete[0])
        for block in complete
        for sign in ("1", "-1")
    )
