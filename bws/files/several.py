"""Judgments in several files, as one set of rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from bws.base.notes import note
from bws.base.problems import InputError, Problem
from bws.files.judgments import ANSWER_PARSERS, OnInvalid, with_known_start
from bws.files.rows import Rows
from bws.record_columns import series

if TYPE_CHECKING:
    import polars as pl

FILE = "file"
"""Column of judgments from several files with the file of each."""


def joined(parts: Sequence[Rows], on_invalid: OnInvalid) -> Rows:
    """Return the rows of several files, with the column ``file``.

    Equal ids of items, groups, tuples and annotators denote the same in all files. The notation of the
    answers is decided for each file, and the first position for all files of a format; missing columns are
    empty. The display order is used if all files have
    it. Raises InputError if the number of items differs, or if only some files have tuple ids.
    """
    first = parts[0]
    problems = [
        Problem(
            part.file, None, f"{len(part.items)} items per row; {first.file} has {len(first.items)}"
        )
        for part in parts
        if len(part.items) != len(first.items)
    ]
    if problems := problems or _missing_tuple_ids(parts):
        raise InputError(problems)
    parts = [_with_items_as_answers(part, parts, on_invalid) for part in parts]
    files = np.repeat(
        np.array([part.file for part in parts], dtype=object), list(map(_size, parts))
    )
    forms = dict.fromkeys(part.form for part in parts)
    has_order = all(part.as_shown or part.shown is not None for part in parts)
    notes = [f"{part.file}: {remark}" for part in parts for remark in part.notes]
    if not has_order and any(part.as_shown or part.shown is not None for part in parts):
        notes.append(note("the display order is not used, because not all files have it"))
    return Rows(
        file=f"{first.file} and {len(parts) - 1} more file{'s' if len(parts) > 2 else ''}",
        form=" and ".join(forms),
        lines=np.concatenate([part.lines for part in parts]),
        items=[
            _stacked([part.items[index] for part in parts]) for index in range(len(first.items))
        ],
        best=_stacked([part.best for part in parts]),
        worst=_stacked([part.worst for part in parts]),
        tuple_id=_optional(parts, [part.tuple_id for part in parts]),
        group=_optional(parts, [part.group for part in parts]),
        annotator=_optional(parts, [part.annotator for part in parts]),
        shown=_optional(parts, [_shown(part) for part in parts]) if has_order else None,
        columns=_columns(parts) | {FILE: series(files)},
        problems=tuple(problem for part in parts for problem in part.problems),
        notes=tuple(notes),
        files=files,
    )


def _size(rows: Rows) -> int:
    return len(rows.lines)


def _with_items_as_answers(rows: Rows, parts: Sequence[Rows], on_invalid: OnInvalid) -> Rows:
    """Return the rows with items in place of positions and letters; invalid answers name their notation."""
    if rows.answers == "item":
        return rows
    alike = [part for part in parts if (part.form, part.answers) == (rows.form, rows.answers)]
    rows, notes = with_known_start(rows, on_invalid, alike)
    items = np.array([column.to_list() for column in rows.items], dtype=object)

    def items_of(answers: pl.Series) -> pl.Series:
        positions = ANSWER_PARSERS[rows.answers](rows, answers)
        texts = [f"{rows.answers} {text}" if text.strip() else "" for text in answers]
        chosen = items[positions, np.arange(len(texts))]
        return series(np.where(positions < 0, np.array(texts, dtype=object), chosen))

    return replace(
        rows,
        best=items_of(rows.best),
        worst=items_of(rows.worst),
        answers="item",
        notes=(*rows.notes, *notes),
    )


def _missing_tuple_ids(parts: Sequence[Rows]) -> list[Problem]:
    with_ids = [part for part in parts if part.tuple_id is not None and (part.tuple_id != "").any()]
    missing = [part for part in parts if part not in with_ids]
    if not with_ids:
        return []
    message = f"has no tuple_id, but {with_ids[0].file} has; expected in all files or in none"
    return [Problem(part.file, None, message) for part in missing]


def _stacked(columns: Sequence[pl.Series]) -> pl.Series:
    import polars as pl

    return pl.concat([column.rename("") for column in columns])


def _optional(parts: Sequence[Rows], columns: Sequence[pl.Series | None]) -> pl.Series | None:
    """Return the column of all parts, empty in those without it; None if no part has it."""
    if all(column is None for column in columns):
        return None
    return _stacked(
        [
            series([""] * _size(part)) if column is None else column
            for part, column in zip(parts, columns, strict=True)
        ]
    )


def _shown(rows: Rows) -> pl.Series | None:
    """Return the display orders of rows whose items are in display order, or their column."""
    if not rows.as_shown:
        return rows.shown
    return series(";".join(items) for items in zip(*rows.items, strict=True))


def _columns(parts: Sequence[Rows]) -> dict[str, pl.Series]:
    """Return the further columns; a column ``file`` of the files gets another name."""
    own = {FILE: f"original {FILE}"}
    columns = [
        {own.get(name, name): column for name, column in part.columns.items()} for part in parts
    ]
    names = dict.fromkeys(name for part in columns for name in part)
    found = {name: _optional(parts, [part.get(name) for part in columns]) for name in names}
    return {name: column for name, column in found.items() if column is not None}
