"""Batch results CSV of MTurk's requester site: one row per assignment, with Input.* and Answer.* columns.

An assignment is one judgment, or one judgment per part if the columns are Input.1.item1, Answer.1.best,
Input.2.item1, ...
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from bws.base.file_kinds import first_of, numbered, plain
from bws.base.problems import InputError, Problem
from bws.files.named_columns import column_list, with_word
from bws.files.rows import Answers, Format, Rows, missing, rows_of
from bws.files.table import Table

if TYPE_CHECKING:
    import polars as pl

NAME = "mturk-batch"
BUTTON = r"^[A-Za-z_ ]+([0-9]{1,2})$"
BUTTON_VALUES = ("true", "false", "")
TASK_ANSWERS = "Answer.taskAnswers"
ROLE_COLUMNS = {
    "AssignmentId": "assignment_id",
    "WorkTimeInSeconds": "seconds",
    "Answer.comment": "comment",
}
KEPT_OF_PARTS = {
    "AssignmentId": "assignment_id",
    "Answer.seconds": "seconds",  # WorkTimeInSeconds is the total time of all parts.
    "Answer.comment": "comment",
}
LINE = "\0line"
PREFIX = re.compile(r"^(input|answer)(?=\.)", re.I)
PART = re.compile(r"(Input|Answer)\.([1-9]\d?)\.(.+)")


def rows(table: Table, parts: Mapping[str, str] | None = None) -> Rows:
    """Return the rows; a rejected assignment is a problem of its row.

    parts: names of the columns of items (comma-separated), best, worst, tuple_id, group and annotator, if
    they are not Input.item1, Answer.best and so on. An answer is an item id, a position from 1, or a letter
    from A, whichever fits most answers; for radio buttons (Answer.best.2 is true) it is the name of the
    button.

    With numbered parts (Input.2.item1, Answer.2.best) and no given names, each part is a row, with
    Answer.2.shown as display order and Answer.2.seconds as time. Parts without items are ignored.
    """
    parts = parts or {}
    if "value" in parts:
        raise ValueError(f"column value is of the form 'long'; form is {NAME!r}")
    table = _with_usual_names(table)
    table = replace(table, frame=_with_task_answers(table))
    table, rejected = _without_rejected(table)
    numbers = [] if parts else _part_numbers(table.frame.columns)
    table = _one_part_a_row(table, numbers) if numbers else table
    table = replace(table, frame=_with_radio_answers(table.frame))
    items = column_list(parts["items"]) if "items" in parts else None
    items = items or _item_columns(table)
    best = parts.get("best") or _answer_column(table, "best", ("best", "most"))
    worst = parts.get("worst") or _answer_column(table, "worst", ("worst", "least"))
    roles = {
        "tuple_id": _find_column(table, "Input.", ("tupleid", "tuple")),
        "group": _find_column(table, "Input.", ("group", "dialogueid")),
        "annotator": first_of(table.frame.columns, ("workerid",)),
    }
    roles |= {part: name for part, name in parts.items() if part in roles}
    if numbers:
        roles["shown"] = _find_column(table, "Answer.", ("shown",))
    _check_present(table, [*items, best, worst, *filter(None, roles.values())])
    table = replace(table, frame=_with_plain_positions(table.frame, items, (best, worst)))
    answers = _kind(table.frame, items, best)
    parsed_rows = rows_of(table, NAME, items, best, worst, answers, **roles)
    role_columns = KEPT_OF_PARTS if numbers else ROLE_COLUMNS
    columns = {
        role_columns[name]: column
        for name, column in parsed_rows.columns.items()
        if name in role_columns
    }
    problems = (*parsed_rows.problems, *rejected)
    return replace(parsed_rows, columns=columns, problems=problems)


def _with_usual_names(table: Table) -> Table:
    """Return the table with the names of MTurk for columns in other upper and lower case."""
    prefixes = {
        name: PREFIX.sub(lambda match: match[0].title(), name) for name in table.frame.columns
    }
    table = replace(table, frame=table.frame.rename(prefixes))
    return table.named((*ROLE_COLUMNS, "WorkerId", "AssignmentStatus", TASK_ANSWERS))


def _part_numbers(columns: Sequence[str]) -> list[int]:
    """Return the numbers of the parts with items and answers; empty without parts.

    >>> _part_numbers(["Input.1.item1", "Input.1.item2", "Answer.1.best", "Input.2.item1"])
    [1]
    >>> _part_numbers(["Input.1", "Input.2", "Answer.best.1", "Answer.best.2"])
    []
    """
    matches = [match.groups() for match in map(PART.fullmatch, columns) if match]
    input_numbers = {int(number) for kind, number, _ in matches if kind == "Input"}
    answered = {int(number) for kind, number, _ in matches if kind == "Answer"}
    return sorted(input_numbers & answered)


def _one_part_a_row(table: Table, numbers: Sequence[int]) -> Table:
    """Return one row per part of each row, in this order, with column names without part numbers."""
    import polars as pl

    frames = [_part(table, number) for number in numbers]
    frame = pl.concat(frames, how="diagonal").sort(LINE, maintain_order=True)
    lines = frame[LINE].to_numpy()
    return replace(table, frame=frame.drop(LINE).with_columns(pl.all().fill_null("")), lines=lines)


def _part(table: Table, number: int) -> pl.DataFrame:
    import polars as pl

    matches = {name: PART.fullmatch(name) for name in table.frame.columns}
    names = {
        name: f"{match[1]}.{match[3]}"
        for name, match in matches.items()
        if match and int(match[2]) == number
    }
    own_names = set(names.values())  # Columns with the part's own number have priority.
    names |= {name: name for name, match in matches.items() if not match and name not in own_names}
    inputs = [name for name in names if matches[name] and name.startswith("Input.")]
    is_present = pl.any_horizontal(pl.col(name) != "" for name in inputs)
    lines = pl.Series(LINE, table.lines)
    return table.frame.with_columns(lines).filter(is_present).select(LINE, *names).rename(names)


def _find_column(table: Table, prefix: str, names: Sequence[str]) -> str | None:
    bare = [name.removeprefix(prefix) for name in table.frame.columns if name.startswith(prefix)]
    column = first_of(bare, names)
    return None if column is None else prefix + column


def _check_present(table: Table, names: Sequence[str]) -> None:
    absent = [name for name in names if name not in table.frame.columns]
    if absent:
        raise missing(table, NAME, f"{', '.join(absent)}")


def _item_columns(table: Table) -> list[str]:
    """Return the numbered Input columns; those named item, or else the only ones."""
    inputs = [name for name in table.frame.columns if name.startswith("Input.")]
    stems = dict.fromkeys(re.sub(r"[ _.-]?\d+$", "", name) for name in inputs)
    sets = {stem: numbered(inputs, re.escape(stem)) for stem in stems}
    sets = {stem: names for stem, names in sets.items() if len(names) > 1}
    item_stems = [
        stem for stem in sets if stem.lower() in ("input.item", "input.item_id", "input.id")
    ]
    if len(item_stems) == 1:
        return sets[item_stems[0]]
    if len(sets) == 1:
        return next(iter(sets.values()))
    choices = (
        "; ".join(", ".join(names) for names in sets.values()) or "no column is numbered from 1"
    )
    message = f"ambiguous item columns ({choices}); specify them with: --column items=NAME,NAME"
    raise InputError(Problem(table.file, None, message))


def _answer_column(table: Table, part: str, words: Sequence[str]) -> str:
    answers = [name for name in table.frame.columns if name.startswith("Answer.")]
    matches = [name for name in answers if any(word in plain(name) for word in words)]
    matches = [name for name in matches if name.rpartition(".")[0] not in matches]  # No buttons.
    exact = _find_column(table, "Answer.", words)
    if exact or len(matches) == 1:
        return exact or matches[0]
    usual = {role: with_word(answers, role) or "NAME" for role in ("best", "worst")}
    options = " ".join(f"--column {role}={shlex.quote(name)}" for role, name in usual.items())
    message = f"ambiguous column of the {part} item ({', '.join(answers)}); specify {options}"
    raise InputError(Problem(table.file, None, message))


def _without_rejected(table: Table) -> tuple[Table, list[Problem]]:
    if "AssignmentStatus" not in table.frame.columns:
        return table, []
    rejected = (table.frame["AssignmentStatus"].str.to_lowercase() == "rejected").to_numpy()
    message = "the assignment was rejected; skip invalid rows to ignore it"
    problems = [Problem(table.file, line, message) for line in table.lines[rejected].tolist()]
    return replace(
        table, frame=table.frame.filter(~rejected), lines=table.lines[~rejected]
    ), problems


def _with_plain_positions(
    frame: pl.DataFrame, items: Sequence[str], answers: Sequence[str]
) -> pl.DataFrame:
    """Convert button names such as item2 to positions, unless they are item ids."""
    import polars as pl

    def bare(name: str) -> pl.Expr:
        is_item = pl.any_horizontal(pl.col(name) == pl.col(item) for item in items)
        return pl.when(is_item).then(pl.col(name)).otherwise(pl.col(name).str.replace(BUTTON, "$1"))

    return frame.with_columns(bare(name).alias(name) for name in dict.fromkeys(answers))


def _kind(frame: pl.DataFrame, items: Sequence[str], best: str) -> Answers:
    """Return the notation of most answers."""
    answers = frame[best].str.strip_chars()
    equal = [(answers == frame[name].str.strip_chars()).to_numpy() for name in items]
    votes: dict[Answers, int] = {
        "item": int(np.any(equal, axis=0).sum()),
        "position": int(answers.str.contains(r"^[0-9]{1,2}$").sum()),
        "letter": int(answers.str.contains(r"^[A-La-l]$").sum()),
    }
    return max(votes, key=lambda kind: votes[kind])


def _with_radio_answers(frame: pl.DataFrame) -> pl.DataFrame:
    """Add Answer.best for the radio buttons Answer.best.1, Answer.best.2, ..., of which one is true."""
    import polars as pl

    groups: dict[str, list[str]] = {}
    for name in frame.columns:
        stem, _, button = name.rpartition(".")
        is_new = stem.startswith("Answer.") and button and stem not in frame.columns
        if is_new and frame[name].str.to_lowercase().is_in(BUTTON_VALUES).all():
            groups.setdefault(stem, []).append(name)
    button_columns = [
        pl.concat_str(
            pl.when(pl.col(name).str.to_lowercase() == "true")
            .then(pl.lit(name.removeprefix(f"{stem}.")))
            .otherwise(pl.lit(""))
            for name in names
        ).alias(stem)
        for stem, names in groups.items()
    ]
    return frame.with_columns(button_columns)


def _with_task_answers(table: Table) -> pl.DataFrame:
    """Add a column per field of the JSON that crowd-form templates return as a single answer."""
    import polars as pl

    if TASK_ANSWERS not in table.frame.columns:
        return table.frame
    fields = [_fields(text) for text in table.frame[TASK_ANSWERS]]
    names = dict.fromkeys(name for row in fields for name in row)
    added = [
        pl.Series(f"Answer.{name}", [row.get(name, "") for row in fields], dtype=pl.String)
        for name in names
        if f"Answer.{name}" not in table.frame.columns
    ]
    return table.frame.with_columns(added)


def _fields(text: str) -> dict[str, str]:
    try:
        value: Any = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    value = value[0] if isinstance(value, list) and value else value
    return {} if not isinstance(value, dict) else {str(k): _answer(v) for k, v in value.items()}


def _answer(value: Any) -> str:
    if (
        isinstance(value, dict)
        and len(value) == 1
        and isinstance(text := next(iter(value.values())), str)
    ):
        return text  # A classifier: {"label": "item1"}
    if isinstance(value, dict):  # Radio buttons: {"1": false, "2": true}
        return "".join(str(button) for button, on in value.items() if on is True)
    return value if isinstance(value, str) else json.dumps(value)


FORMAT = Format(
    NAME,
    "WorkerId, Input.item1, Input.item2, ..., Answer.best, Answer.worst",
    lambda columns: (
        {match[1].lower() for match in map(PREFIX.match, columns) if match} == {"input", "answer"}
    ),
    rows,
)
