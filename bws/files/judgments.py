"""Judgments from records and to files."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Literal

import numpy as np

from bws.files.answers import LETTERS
from bws.files.check import judgments_of
from bws.files.pairs import BETWEEN
from bws.files.rows import Rows
from bws.files.tuples import item_columns
from bws.files.writing import delimited, series
from bws.problems import InputError, Problem
from bws.records import Ints, Judgment, Judgments
from bws.textio import write_atomic

if TYPE_CHECKING:
    import polars as pl

__all__ = ["JudgmentForm", "judgments_from_records", "write_judgments"]

JudgmentForm = Literal["csv", "km", "semrel"]


def judgments_from_records(records: Iterable[Judgment]) -> Judgments:
    """Check records and return their judgments; problems name a record by its number from 1.

    Every record gives its items in the order in which they were shown. Raises InputError as for a file.
    """
    given = list(records)
    file = "records"
    if not given:
        raise InputError(Problem(file, None, "there are none; judgments are expected"))
    k = len(given[0].items)
    problems = [
        Problem(file, number, f"{len(record.items)} items; the first record has {k}")
        for number, record in enumerate(given, start=1)
        if len(record.items) != k
    ]
    numbers = [number for number, record in enumerate(given, start=1) if len(record.items) == k]
    same = [given[number - 1] for number in numbers]
    return judgments_of(
        Rows(
            file=file,
            form="records",
            lines=np.array(numbers, np.int64),
            items=[series([r.items[place] for r in same]) for place in range(k)],
            best=series([r.best for r in same]),
            worst=series([r.worst for r in same]),
            tuple_id=series([r.tuple_id for r in same]),
            group=series([r.group for r in same]),
            annotator=series([r.annotator for r in same]),
            as_shown=True,
            problems=tuple(problems),
        )
    )


def write_judgments(
    judgments: Judgments, path: str | os.PathLike[str], form: JudgmentForm = "csv"
) -> None:
    """Write judgments, whole or not at all (``-`` is standard output).

    form: ``csv`` is ours, with the order shown and further columns where there are any; ``km`` is
    ``Item1..ItemK,BestItem,WorstItem``; ``semrel`` is ``pair1a,pair1b,..,best-pair,worst-pair`` with
    letters, for items that are pairs (others stand in the first half).
    """
    columns = {"csv": _own, "km": _km, "semrel": _semrel}.get(form)
    if columns is None:
        raise ValueError(f"form is {form!r}; 'csv', 'km' and 'semrel' are allowed")
    write_atomic(path, delimited(columns(judgments)))


def _own(judgments: Judgments) -> dict[str, pl.Series]:
    tuples = judgments.tuples
    ids, items = series(tuples.ids), series(tuples.items)
    groups = series(tuples.groups)
    columns = {
        "tuple_id": ids.gather(judgments.tuple_of),
        "group": groups.gather(tuples.group_of_tuple[judgments.tuple_of]),
        **item_columns(tuples, judgments.tuple_of),
        "best": items.gather(judgments.best_item),
        "worst": items.gather(judgments.worst_item),
        "annotator": series([*judgments.annotators, ""]).gather(_last_for_none(judgments)),
    }
    columns |= {name: series(column) for name, column in judgments.columns.items()}
    return columns | ({} if judgments.shown is None else {"shown": _shown_text(judgments)})


def _last_for_none(judgments: Judgments) -> Ints:
    return np.where(
        judgments.annotator_of < 0, len(judgments.annotators), judgments.annotator_of
    ).astype(np.int32)


def _shown_text(judgments: Judgments) -> pl.Series:
    import polars as pl

    items, members = series(judgments.tuples.items), judgments.tuples.members
    order = np.zeros((len(judgments), 0), np.int8) if judgments.shown is None else judgments.shown
    places = [items.gather(members[judgments.tuple_of, place]) for place in order.T]
    return pl.select(pl.concat_str(places, separator=";")).to_series()


def _km(judgments: Judgments) -> dict[str, pl.Series]:
    own = _own(judgments)
    items = {f"Item{n}": own[f"item{n}"] for n in range(1, judgments.tuples.k + 1)}
    return items | {"BestItem": own["best"], "WorstItem": own["worst"]}


def _semrel(judgments: Judgments) -> dict[str, pl.Series]:
    columns = {}
    for place, column in enumerate(item_columns(judgments.tuples, judgments.tuple_of).values(), 1):
        halves = column.str.splitn(BETWEEN, 2).struct.unnest().iter_columns()
        for half, text in zip("ab", halves, strict=True):
            columns[f"pair{place}{half}"] = text.fill_null("")
    for name, chosen in (("best-pair", judgments.best), ("worst-pair", judgments.worst)):
        columns[name] = series(list(LETTERS)).gather(chosen.astype(np.int32))
    return columns
