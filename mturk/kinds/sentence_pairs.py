"""Tables of sentence pairs, of pairs with conditions, and of the true similarities of these."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bws.files.table import Table, read_table
from bws.problems import InputError, Problem
from mturk.question_xml import forbidden_in_xml

__all__ = [
    "CONDITION",
    "SENTENCES",
    "SentencePart",
    "pair_id",
    "read_pairs",
    "read_triplets",
    "sentence_truth",
]

SENTENCES = ("sentence1", "sentence2")
CONDITION = "condition"
UID_COLUMNS = ("uid", "index", "Unnamed: 0", "column 1")
"""What the column of uids is called, as `giccs.csts.data` has it."""
LONGEST_ID = 100
INTENDED_VALUES = {"high": 5.0, "low": 1.0}
"""The similarity that the writers of a condition intended, in collected conditions."""


@dataclass(frozen=True, slots=True)
class SentencePart:
    """A sentence pair, or a triplet of it and a condition: one question of a HIT."""

    tuple_id: str
    """The pair's id, or the triplet's uid."""
    group: str
    """The pair's id."""
    item_ids: tuple[str, ...]
    """The two sentences, and the condition where there is one; as they stand in the file."""


def pair_id(sentence1: str, sentence2: str) -> str:
    """Return the id of a sentence pair: the same two sentences have the same in every file.

    >>> pair_id("A kite.", "A bus.")
    'p77535d1a75c5'
    """
    text = json.dumps([sentence1, sentence2])
    return f"p{hashlib.sha256(text.encode('ascii')).hexdigest()[:12]}"


def read_pairs(path: str) -> list[SentencePart]:
    """Read the columns sentence1 and sentence2; others are let be.

    Raises InputError with every problem: an empty sentence, two that are the same, a pair that repeats.
    """
    table = _table(path, SENTENCES)
    rows = list(_rows(table, SENTENCES))
    parts = [SentencePart(pair_id(*texts), pair_id(*texts), texts) for _, texts in rows]
    problems = list(table.problems)
    for (line, texts), said in zip(rows, map(_wrong, rows), strict=True):
        problems += [Problem(table.file, line, one) for one in said]
        if texts[0].strip() and texts[0].split() == texts[1].split():
            message = "the two sentences are the same; they cannot differ in any respect"
            problems.append(Problem(table.file, line, message))
    problems += _repeated(table, parts, "the sentence pair")
    return _checked(table, parts, problems)


def read_triplets(path: str) -> list[SentencePart]:
    """Read the columns sentence1, sentence2, condition and uid, or the number of the row; others are let be.

    Raises InputError with every problem: an empty text, a uid that is empty, repeats or cannot be written
    into a form.
    """
    columns = (*SENTENCES, CONDITION)
    table = _table(path, columns)
    rows = list(_rows(table, columns))
    parts = [
        SentencePart(uid, pair_id(*texts[:2]), texts)
        for uid, (_, texts) in zip(_uids(table), rows, strict=True)
    ]
    problems = list(table.problems)
    for part, row in zip(parts, rows, strict=True):
        said = [*_wrong(row), *_unfit(part.tuple_id)]
        problems += [Problem(table.file, row[0], one) for one in said]
    problems += _repeated(table, parts, "the uid")
    return _checked(table, parts, problems)


Row = tuple[int, tuple[str, ...]]


def _table(path: str, columns: Sequence[str]) -> Table:
    table = read_table(path)
    table.need(columns)
    return table


def _rows(table: Table, columns: Sequence[str]) -> Iterator[Row]:
    cells = [table.frame[name].to_list() for name in columns]
    for line, *texts in zip(table.lines.tolist(), *cells, strict=True):
        yield line, tuple(texts)


def _wrong(row: Row) -> list[str]:
    return [
        f"{name} is empty; a text is needed"
        for name, text in zip((*SENTENCES, CONDITION), row[1], strict=False)
        if not text.strip()
    ]


def _uids(table: Table) -> list[str]:
    column = next((name for name in UID_COLUMNS if name in table.frame.columns), None)
    if column is None:
        return list(map(str, range(len(table.lines))))
    return [cell.strip() for cell in table.frame[column].to_list()]


def _unfit(uid: str) -> Iterator[str]:
    plain = not any(c in "\t\r\n" or "\x7f" <= c <= "\x9f" for c in uid)
    if not uid or len(uid) > LONGEST_ID or forbidden_in_xml(uid) or not plain:
        yield f"the uid is {uid!r}; 1 to {LONGEST_ID} characters of plain text are allowed"


def _repeated(table: Table, parts: Sequence[SentencePart], what: str) -> Iterator[Problem]:
    first: dict[str, int] = {}
    for line, part in zip(table.lines.tolist(), parts, strict=True):
        if first.setdefault(part.tuple_id, line) != line:
            message = f"{what} stands in line {first[part.tuple_id]} already; once is allowed"
            yield Problem(table.file, line, message)


def _checked(
    table: Table, parts: list[SentencePart], problems: list[Problem]
) -> list[SentencePart]:
    if not parts and not problems:
        problems = [Problem(table.file, None, "holds no rows; sentence pairs are expected")]
    if problems:
        raise InputError(sorted(problems, key=lambda one: one.line or 0))
    return parts


def sentence_truth(path: str | os.PathLike[str]) -> dict[tuple[str, str], float] | None:
    """Return (pair id, condition) -> similarity from 1 to 5; None where the table is not of sentence pairs.

    It comes from the column label (rows without one are left out) or, as in collected conditions, from
    intended: high is 5 and low 1. Raises InputError with every value that is neither.
    """
    table = read_table(path)
    if not {*SENTENCES, CONDITION} <= set(table.frame.columns):
        return None
    column = next((name for name in ("label", "intended") if name in table.frame.columns), None)
    if column is None:
        message = "has neither a column label nor intended; one is needed for the truth"
        raise InputError(Problem(table.file, 1, message))
    found: dict[tuple[str, str], float] = {}
    problems = list(table.problems)
    cells = [table.frame[name].to_list() for name in (*SENTENCES, CONDITION, column)]
    for line, one, two, condition, written in zip(table.lines.tolist(), *cells, strict=True):
        value = _value(written.strip())
        if value is not None:
            found[pair_id(one, two), condition] = value
        elif written.strip():
            message = f"{column} is {written!r}; 1 to 5, high and low are allowed"
            problems.append(Problem(table.file, line, message))
    if problems:
        raise InputError(problems)
    return found


def _value(written: str) -> float | None:
    if written in INTENDED_VALUES:
        return INTENDED_VALUES[written]
    try:
        value = float(written)
    except ValueError:
        return None
    return value if 1 <= value <= 5 else None
