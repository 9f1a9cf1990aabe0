"""Results of Qualtrics, exported as CSV or TSV, of a survey written by ``giccs annotate export``.

A tuple has three columns: the questions ``giccs_N_best`` and ``giccs_N_worst``, with the position of the
choice ("Use numeric values"), and the embedded data ``giccs_N_tuple`` with the ids, see `encode_tuple`. Below
the header are the text of the question and, except in legacy exports, a row with import ids. Source:
Qualtrics, "Understanding Your Dataset" (www.qualtrics.com/support/survey-platform/data-and-analysis-module/
data/download-data/understanding-your-dataset).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from urllib.parse import quote, unquote

import numpy as np

from bws.base.file_kinds import ANNOTATOR, first_of
from bws.base.problems import InputError, Problem
from bws.files.columns import quoted
from bws.files.rows import Format, Rows, skipped_rows
from bws.files.table import Table
from bws.files.tuples import ROUND_COLUMNS, round_columns
from bws.record_columns import series

NAME = "qualtrics"
COLUMN = re.compile(r"giccs_([1-9]\d*)_(best|worst|tuple)")
ROLES = ("best", "worst")
N_FIELDS = 2 + len(ROUND_COLUMNS)
"""Number of fields of an encoded tuple before its items."""
MAX_TUPLES = 300
"""Maximum number of tuples of a survey, so that its results fit into a table."""
IMPORT_ID = '{"ImportId"'
RESPONSE_ID = "ResponseId"
NOT_PARTICIPANTS = ("survey preview", "survey test", "offline preview", "spam", "1", "2", "17", "8")
"""Values of the column Status for previews, tests and spam, as text and as number."""


def column_name(number: int, role: str) -> str:
    """Return the name of a column of the N-th tuple; role: best, worst or tuple.

    >>> column_name(3, "best")
    'giccs_3_best'
    """
    return f"giccs_{number}_{role}"


def encode_tuple(
    tuple_id: str, group: str, items: Sequence[str], rounds: Mapping[str, str] | None = None
) -> str:
    """Return the ids of a tuple as embedded data, percent-encoded: colons and brackets end a tag of the file.

    rounds: round, purpose and seed of a tuple of a study in rounds.

    >>> encode_tuple("t1", "", ["a:b", "c;d"])
    't1;;;;;a%3Ab;c%3Bd'
    """
    round_values = [(rounds or {}).get(name, "") for name in ROUND_COLUMNS]
    return ";".join(quote(part, safe=" ") for part in (tuple_id, group, *round_values, *items))


@dataclass(frozen=True, slots=True)
class _Answer:
    line: int
    annotator: str
    encoded_tuple: str
    best: str
    worst: str


def _fits(columns: Sequence[str]) -> bool:
    return any(match[2] == "best" for match in map(COLUMN.fullmatch, columns) if match)


def _rows(table: Table) -> Rows:
    """Return one row per response and answered tuple; the annotator is the column annotator or ResponseId.

    Tuples without both answers were not shown, or not reached, and are ignored; a note counts responses
    without any answer. A response in preview is a problem, and so is each answer that is no position.
    """
    table = _without_header_rows(table)
    numbers = _numbers(table)
    annotator = first_of(table.frame.columns, ANNOTATOR) or RESPONSE_ID
    if annotator not in table.frame.columns:
        raise InputError(Problem(table.file, 1, f"no column {RESPONSE_ID}; export all fields"))
    answers: list[_Answer] = []
    unanswered: list[int] = []
    problems = list(table.problems)
    for line, row in zip(table.lines.tolist(), table.frame.iter_rows(named=True), strict=True):
        if row.get("Status", "").strip().lower() in NOT_PARTICIPANTS:
            message = f"the response has the status {quoted(row['Status'])}; skip invalid rows to ignore it"
            problems.append(Problem(table.file, line, message))
            continue
        n_answers = len(answers)
        for number in numbers:
            best, worst, ids = (
                row[column_name(number, role)].strip() for role in (*ROLES, "tuple")
            )
            if best or worst:
                answers.append(_Answer(line, row[annotator], ids, best, worst))
        if len(answers) == n_answers:
            unanswered.append(line)
    rows = _of_answers(table.file, answers, problems)
    return replace(rows, notes=skipped_rows(unanswered, "response", "without answers"))


def _without_header_rows(table: Table) -> Table:
    """Return the table without the texts of questions and the import ids below the header.

    Legacy exports have no import ids; their row of texts has no valid ResponseId (``R_`` and 15 characters).
    In joined exports these rows are repeated.
    """
    if RESPONSE_ID not in table.frame.columns:
        return table
    ids = table.frame[RESPONSE_ID].to_list()
    titles = {RESPONSE_ID, "Response ID"}
    if ids[1:2] and ids[1].startswith(IMPORT_ID):
        titles.add(ids[0])  # In the language of the account.
    keep = np.array([not text.startswith(IMPORT_ID) and text not in titles for text in ids], bool)
    return replace(table, frame=table.frame.filter(keep), lines=table.lines[keep])


def _numbers(table: Table) -> list[int]:
    """Return the numbers of the tuples; InputError if one of the three columns is missing."""
    columns = set(table.frame.columns)
    numbers = sorted({int(match[1]) for match in map(COLUMN.fullmatch, columns) if match})
    names = [column_name(number, role) for number in numbers for role in (*ROLES, "tuple")]
    if absent := [name for name in names if name not in columns]:
        message = (
            f"no column {', '.join(absent[:5])}{', ...' if len(absent) > 5 else ''}; export all questions "
            "and embedded data"
        )
        raise InputError(Problem(table.file, 1, message))
    return numbers


def _of_answers(file: str, answers: list[_Answer], problems: list[Problem]) -> Rows:
    right: list[_Answer] = []
    parts: list[list[str]] = []
    for answer in answers:
        ids = [unquote(part) for part in answer.encoded_tuple.split(";")]
        n_items = max(len(ids) - N_FIELDS, 0)
        k = len(parts[0]) - N_FIELDS if parts else n_items
        if k < 2 or n_items != k:
            message = (
                f"{quoted(answer.encoded_tuple)} has {n_items} items; expected the embedded "
                f"data of giccs annotate export{f', here with {k} items' if parts else ''}"
            )
            problems.append(Problem(file, answer.line, message))
        elif text := next(
            (t for t in (answer.best, answer.worst) if t and not (t.isascii() and t.isdigit())),
            None,
        ):
            message = (
                f'an answer is {quoted(text)}; expected a number (export with "Use numeric values")'
            )
            problems.append(Problem(file, answer.line, message))
        else:
            right.append(answer)
            parts.append(ids)
    if not right:
        raise InputError(problems or Problem(file, None, "no judgments"))
    tuple_ids, groups, *rest = (series(values) for values in zip(*parts, strict=True))
    rounds, items = rest[: len(ROUND_COLUMNS)], rest[len(ROUND_COLUMNS) :]
    return Rows(
        file=file,
        form=NAME,
        lines=np.array([answer.line for answer in right], np.int64),
        items=items,
        best=series(answer.best for answer in right),
        worst=series(answer.worst for answer in right),
        answers="position",
        tuple_id=tuple_ids,
        group=groups,
        annotator=series(answer.annotator for answer in right),
        as_shown=True,
        columns=round_columns(dict(zip(ROUND_COLUMNS, rounds, strict=True))),
        problems=tuple(problems),
    )


FORMAT = Format(
    NAME,
    "giccs_1_best, giccs_1_worst, giccs_1_tuple, ..., ResponseId",
    _fits,
    _rows,
)
