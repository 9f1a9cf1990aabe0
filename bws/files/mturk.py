"""The batch results CSV of MTurk's requester site: a row an assignment, Input.* and Answer.* columns.

An assignment is one judgment, or one for each of its parts where the columns are Input.1.item1,
Answer.1.best, Input.2.item1, ...
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from bws.file_kinds import first_of, numbered
from bws.files.rows import Answers, Format, Rows, missing, rows_of
from bws.files.table import Table
from bws.problems import InputError, Problem

if TYPE_CHECKING:
    import polars as pl

__all__ = ["FORMAT", "PARTS", "rows"]

NAME = "mturk-batch"
PARTS = ("items", "best", "worst", "tuple_id", "group", "annotator")
BUTTON = r"^[A-Za-z_ ]+(\d{1,2})$"
TASK_ANSWERS = "Answer.taskAnswers"
KEPT = {
    "AssignmentId": "assignment_id",
    "WorkTimeInSeconds": "seconds",
    "Answer.comment": "comment",
}
KEPT_OF_PARTS = {
    "AssignmentId": "assignment_id",
    "Answer.seconds": "seconds",  # WorkTimeInSeconds is that of all parts together
    "Answer.comment": "comment",
}
LINE = "\0line"
PART = re.compile(r"(Input|Answer)\.([1-9]\d?)\.(.+)")


def rows(table: Table, parts: Mapping[str, str] | None = None) -> Rows:
    """Return the rows; a rejected assignment is a problem of its row.

    parts: the columns to take for items (names with commas between), best, worst, tuple_id, group and
    annotator, where they are not called Input.item1, Answer.best and so on. An answer is an item's id, its
    place from 1, or a letter from A, whichever most answers are; of radio buttons (Answer.best.2 is true)
    it is the button's name.

    Where the columns are of numbered parts (Input.2.item1, Answer.2.best) and none is named, each part is
    a row, with Answer.2.shown as the order shown and Answer.2.seconds as its time. A part without items is
    none.
    """
    parts = parts or {}
    table = replace(table, frame=_with_task_answers(table))
    table, rejected = _without_rejected(table)
    numbers = [] if parts else _part_numbers(table.frame.columns)
    table = _one_part_a_row(table, numbers) if numbers else table
    table = replace(table, frame=_with_radio_answers(table.frame))
    items = [name.strip() for name in parts["items"].split(",")] if "items" in parts else None
    items = items or _item_columns(table)
    best = parts.get("best") or _answer_column(table, "best", ("best", "most"))
    worst = parts.get("worst") or _answer_column(table, "worst", ("worst", "least"))
    roles = {
        "tuple_id": _named(table, "Input.", ("tupleid", "tuple")),
        "group": _named(table, "Input.", ("group", "dialogueid")),
        "annotator": first_of(table.frame.columns, ("workerid",)),
    }
    roles |= {part: name for part, name in parts.items() if part in roles}
    if numbers:
        roles["shown"] = _named(table, "Answer.", ("shown",))
    _check_present(table, [*items, best, worst, *filter(None, roles.values())])
    table = replace(table, frame=_with_plain_positions(table.frame, items, (best, worst)))
    answers = _kind(table.frame, items, best)
    found = rows_of(table, NAME, items, best, worst, answers, **roles)
    kept = KEPT_OF_PARTS if numbers else KEPT
    columns = {kept[name]: column for name, column in found.columns.items() if name in kept}
    problems = (*found.problems, *rejected)
    return replace(found, columns=columns, problems=problems)


def _part_numbers(columns: Sequence[str]) -> list[int]:
    """Return the numbers of the parts that have items and answers; none where there are no parts.

    >>> _part_numbers(["Input.1.item1", "Input.1.item2", "Answer.1.best", "Input.2.item1"])
    [1]
    >>> _part_numbers(["Input.1", "Input.2", "Answer.best.1", "Answer.best.2"])
    []
    """
    found = [match.groups() for match in map(PART.fullmatch, columns) if match]
    asked = {int(number) for kind, number, _ in found if kind == "Input"}
    answered = {int(number) for kind, number, _ in found if kind == "Answer"}
    return sorted(asked & answered)


def _one_part_a_row(table: Table, numbers: Sequence[int]) -> Table:
    """Return a row for each part of each row, in this order; its columns have the names without number."""
    import polars as pl

    frames = [_part(table, number) for number in numbers]
    frame = pl.concat(frames, how="diagonal").sort(LINE, maintain_order=True)
    lines = frame[LINE].to_numpy()
    return replace(table, frame=frame.drop(LINE).with_columns(pl.all().fill_null("")), lines=lines)


def _part(table: Table, number: int) -> pl.DataFrame:
    import polars as pl

    found = {name: PART.fullmatch(name) for name in table.frame.columns}
    names = {
        name: f"{match[1]}.{match[3]}"
        for name, match in found.items()
        if match and int(match[2]) == number
    }
    taken = set(names.values())  # what stands under a part's own number counts
    names |= {name: name for name, match in found.items() if not match and name not in taken}
    inputs = [name for name in names if found[name] and name.startswith("Input.")]
    there = pl.any_horizontal(pl.col(name) != "" for name in inputs)
    lines = pl.Series(LINE, table.lines)
    return table.frame.with_columns(lines).filter(there).select(LINE, *names).rename(names)


def _named(table: Table, prefix: str, wanted: Sequence[str]) -> str | None:
    bare = [name.removeprefix(prefix) for name in table.frame.columns if name.startswith(prefix)]
    found = first_of(bare, wanted)
    return None if found is None else prefix + found


def _check_present(table: Table, names: Sequence[str]) -> None:
    absent = [name for name in names if name not in table.frame.columns]
    if absent:
        raise missing(table, NAME, f"{', '.join(absent)}")


def _item_columns(table: Table) -> list[str]:
    """Return the numbered Input columns; those called item first, else the only ones there are."""
    inputs = [name for name in table.frame.columns if name.startswith("Input.")]
    stems = dict.fromkeys(re.sub(r"[ _.-]?\d+$", "", name) for name in inputs)
    sets = {stem: numbered(inputs, re.escape(stem)) for stem in stems}
    sets = {stem: names for stem, names in sets.items() if len(names) > 1}
    named = [stem for stem in sets if stem.lower() in ("input.item", "input.item_id", "input.id")]
    if len(named) == 1:
        return sets[named[0]]
    if len(sets) == 1:
        return next(iter(sets.values()))
    choices = "; ".join(", ".join(names) for names in sets.values()) or "none is numbered from 1"
    message = f"which Input columns are the items? ({choices}); name them as part 'items'"
    raise InputError(Problem(table.file, None, message))


def _answer_column(table: Table, part: str, words: Sequence[str]) -> str:
    answers = [name for name in table.frame.columns if name.startswith("Answer.")]
    found = [name for name in answers if any(word in name.lower() for word in words)]
    exact = _named(table, "Answer.", words)
    if exact or len(found) == 1:
        return exact or found[0]
    message = (
        f"which Answer column is the {part} item? ({', '.join(answers)}); name it as part {part!r}"
    )
    raise InputError(Problem(table.file, None, message))


def _without_rejected(table: Table) -> tuple[Table, list[Problem]]:
    if "AssignmentStatus" not in table.frame.columns:
        return table, []
    rejected = (table.frame["AssignmentStatus"].str.to_lowercase() == "rejected").to_numpy()
    message = "the assignment was rejected; skip invalid rows to leave it out"
    problems = [Problem(table.file, line, message) for line in table.lines[rejected].tolist()]
    return replace(
        table, frame=table.frame.filter(~rejected), lines=table.lines[~rejected]
    ), problems


def _with_plain_positions(
    frame: pl.DataFrame, items: Sequence[str], answers: Sequence[str]
) -> pl.DataFrame:
    """Turn button names such as item2 into positions, where they are no item's id."""
    import polars as pl

    def bare(name: str) -> pl.Expr:
        own = pl.any_horizontal(pl.col(name) == pl.col(item) for item in items)
        return pl.when(own).then(pl.col(name)).otherwise(pl.col(name).str.replace(BUTTON, "$1"))

    return frame.with_columns(bare(name).alias(name) for name in dict.fromkeys(answers))


def _kind(frame: pl.DataFrame, items: Sequence[str], best: str) -> Answers:
    """Return what most answers are."""
    answers = frame[best].str.strip_chars()
    equal = [(answers == frame[name].str.strip_chars()).to_numpy() for name in items]
    votes: dict[Answers, int] = {
        "item": int(np.any(equal, axis=0).sum()),
        "position": int(answers.str.contains(r"^\d{1,2}$").sum()),
        "letter": int(answers.str.contains(r"^[A-La-l]$").sum()),
    }
    return max(votes, key=lambda kind: votes[kind])


def _with_radio_answers(frame: pl.DataFrame) -> pl.DataFrame:
    """Add Answer.best for Answer.best.1, Answer.best.2, ..., of which one is true."""
    import polars as pl

    groups: dict[str, list[str]] = {}
    for name in frame.columns:
        stem, _, button = name.rpartition(".")
        if stem.startswith("Answer.") and button and stem not in frame.columns:
            groups.setdefault(stem, []).append(name)
    chosen = [
        pl.concat_str(
            pl.when(pl.col(name).str.to_lowercase() == "true")
            .then(pl.lit(name.removeprefix(f"{stem}.")))
            .otherwise(pl.lit(""))
            for name in names
        ).alias(stem)
        for stem, names in groups.items()
    ]
    return frame.with_columns(chosen)


def _with_task_answers(table: Table) -> pl.DataFrame:
    """Add a column for each field of the JSON that crowd-form templates return as one answer."""
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
    if isinstance(value, dict):  # radio buttons: {"1": false, "2": true}
        return "".join(str(button) for button, on in value.items() if on is True)
    return value if isinstance(value, str) else json.dumps(value)


FORMAT = Format(
    NAME,
    "WorkerId, Input.item1, Input.item2, ..., Answer.best, Answer.worst",
    lambda columns: (
        any(name.startswith("Input.") for name in columns)
        and any(name.startswith("Answer.") for name in columns)
    ),
    rows,
)
