"""Results of Label Studio, exported as JSON or CSV, of tasks written by ``giccs annotate export``.

A task's data contain ``tuple_id``, ``group`` and the items ``item1``, ``item2``, ... in display order; the
controls ``best`` and ``worst`` return letters from A. Source: Label Studio documentation, "Label Studio JSON
format of annotated tasks" (labelstud.io/guide/task_format) and "Export annotations"
(labelstud.io/guide/export).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np

from bws.base.file_kinds import numbered
from bws.base.notes import note
from bws.base.problems import InputError, Problem
from bws.files.judgments import LETTERS
from bws.files.rows import Format, Rows, rows_of
from bws.files.table import Table
from bws.files.tuples import ROUND_COLUMNS, round_columns
from bws.record_columns import series

if TYPE_CHECKING:
    import polars as pl

NAME = "label-studio"
ROLES = ("best", "worst")
SECONDS = "lead_time"


def is_export(document: Any) -> TypeGuard[list[Any]]:
    """Return whether a JSON document is a list of tasks with annotations."""
    first = document[0] if isinstance(document, list) and document else None
    return isinstance(first, dict) and isinstance(first.get("annotations"), list)


def rows(tasks: Sequence[Any], name: str) -> Rows:
    """Return the annotations of a JSON export, one row each; the annotator is ``completed_by``.

    name: the file in messages. Skipped tasks (``was_cancelled``) and annotations without one letter in each
    control are problems that name the task and the annotation, since all tasks are usually in one line.
    """
    as_texts = _are_texts(tasks)
    unanswered = [
        n for n, task in enumerate(tasks, start=1) if not _mapping(task).get("annotations")
    ]
    problems: list[Problem] = []
    answers: list[tuple[str, dict[str, str]]] = []
    for number, task in enumerate(tasks, start=1):
        for place, row, messages in _annotations(task, number, as_texts):
            problems += [Problem(name, None, f"{place}: {message}") for message in messages]
            answers += [] if messages else [(place, row)]
    if not answers:
        raise InputError(problems or Problem(name, None, "no judgments"))
    without = note(
        "{n:d} of {total:d} tasks have no annotations", n=len(unanswered), total=len(tasks)
    )
    return replace(_rows(name, answers, problems), notes=(without,) if unanswered else ())


def _are_texts(tasks: Sequence[Any]) -> bool:
    """Return whether a choice is no letter but the text of an item, as in projects of other origin."""
    return any(
        choice not in tuple(LETTERS) and choice in _items(task)
        for task in tasks
        for annotation in _list(_mapping(task).get("annotations"))
        for choice in (_choice(_mapping(annotation), role) for role in ROLES)
    )


def _letter_of(choice: str, items: Sequence[str]) -> str:
    """Return the letter of the only item with this text; another choice is no letter."""
    if items.count(choice) == 1 and len(items) <= len(LETTERS):
        return LETTERS[items.index(choice)]
    return f"the text {choice}" if choice in tuple(LETTERS) else choice


def _items(task: Any) -> list[str]:
    """Return the texts of the items of a task."""
    values = _values(task)
    return [values[name] for name in numbered(values, "item")]


def _values(task: Any) -> dict[str, str]:
    """Return the texts and numbers of the data of a task."""
    data = _mapping(_mapping(task).get("data"))
    return {key: str(value) for key, value in data.items() if isinstance(value, (str, int))}


def _annotations(
    task: Any, number: int, as_texts: bool
) -> Iterator[tuple[str, dict[str, str], list[str]]]:
    """Yield the name, the columns and the problems of each annotation of a task.

    Tasks and annotations without id are named by their number.
    as_texts: whether the choices are the texts of the items, not letters.
    """
    task = _mapping(task)
    values = _values(task)
    items = _items(task)
    annotations = map(_mapping, _list(task.get("annotations")))
    for annotation_number, annotation in enumerate(annotations, start=1):
        place = (
            f"task {task.get('id', f'no. {number}')}, "
            f"annotation {annotation.get('id', f'no. {annotation_number}')}"
        )
        choices = {role: _choice(annotation, role) for role in ROLES}
        if as_texts:
            choices = {role: _letter_of(choice, items) for role, choice in choices.items()}
        row = {
            **{f"item{number}": item for number, item in enumerate(items, start=1)},
            **{key: values.get(key, "") for key in ("tuple_id", "group", *ROUND_COLUMNS)},
            **choices,
            "annotator": _annotator(annotation),
            "seconds": str(annotation.get(SECONDS) or ""),
        }
        yield place, row, list(_problems(annotation, choices, len(items)))


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _choice(annotation: Mapping[str, Any], role: str) -> str:
    """Return the choices of a control, separated by commas."""
    results = [_mapping(part) for part in _list(annotation.get("result"))]
    values = [_mapping(part.get("value")) for part in results if part.get("from_name") == role]
    choices = [choice for value in values for choice in _list(value.get("choices"))]
    return ", ".join(map(str, choices))


def _annotator(annotation: Mapping[str, Any]) -> str:
    """Return the id of the user; without one, the address."""
    user = annotation.get("completed_by")
    if isinstance(user, dict):
        user = user.get("id", user.get("email"))
    return "" if user is None else str(user)


def _problems(annotation: Mapping[str, Any], choices: Mapping[str, str], k: int) -> Iterator[str]:
    if k < 2:
        yield "the data have no item1, item2, ...; expected a task that giccs annotate export wrote"
        return
    if annotation.get("was_cancelled"):
        yield "the annotator skipped the task; skip invalid rows to ignore it"
        return
    expected = f"expected one letter from A to {LETTERS[k - 1]} or the text of an item"
    for role, choice in choices.items():
        if choice not in tuple(LETTERS[:k]):
            yield (
                f"{role} is {choice!r}; {expected}" if choice else f"{role} is missing; {expected}"
            )


def _rows(
    name: str, named_answers: Sequence[tuple[str, dict[str, str]]], problems: list[Problem]
) -> Rows:
    items = numbered(named_answers[0][1], "item")
    for place, answer in named_answers:
        if (k := len(numbered(answer, "item"))) != len(items):
            message = f"{place}: tuple {answer['tuple_id']!r} has {k} items; the first one has {len(items)}"
            problems.append(Problem(name, None, message))
    named_answers = [
        (place, answer)
        for place, answer in named_answers
        if len(numbered(answer, "item")) == len(items)
    ]
    answers = [answer for _, answer in named_answers]
    columns = {key: series(answer[key] for answer in answers) for key in answers[0]}
    return Rows(
        file=name,
        form=NAME,
        lines=np.zeros(len(answers), np.int64),
        items=[columns[item] for item in items],
        best=columns["best"],
        worst=columns["worst"],
        answers="letter",
        tuple_id=columns["tuple_id"],
        group=columns["group"],
        annotator=columns["annotator"],
        as_shown=True,
        columns=_extra_columns(columns),
        problems=tuple(problems),
        names=[place for place, _ in named_answers],
    )


def _extra_columns(columns: Mapping[str, pl.Series]) -> dict[str, pl.Series]:
    """Return the seconds and the columns of rounds, if any value is present."""
    seconds = {"seconds": columns["seconds"]} if (columns["seconds"] != "").any() else {}
    return seconds | round_columns(columns)


def _csv_rows(table: Table) -> Rows:
    """Return the rows of a CSV export; text and dialogue of the task are not kept."""
    table.need([SECONDS])
    table = replace(table, frame=table.frame.rename({SECONDS: "seconds"}))
    parsed_rows = rows_of(
        table, NAME, numbered(table.frame.columns, "item"), "best", "worst", "letter"
    )
    return replace(parsed_rows, as_shown=True, columns=_extra_columns(parsed_rows.columns))


FORMAT = Format(
    NAME,
    "item1, item2, ..., best, worst, annotation_id",
    lambda columns: (
        len(numbered(columns, "item")) > 1 and {*ROLES, "annotation_id"} <= set(columns)
    ),
    _csv_rows,
)
"""The CSV export."""
