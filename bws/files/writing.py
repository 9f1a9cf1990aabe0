"""Files of judgments, written in several formats."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Literal

import numpy as np

from bws.base.text import write_atomic
from bws.files.answers_of_people import keep_answers_of_people, sources_of
from bws.files.columns import delimited
from bws.files.judgments import LETTERS
from bws.files.pairs import BETWEEN
from bws.record_columns import item_columns, judgment_columns, series
from bws.records import Judgments

if TYPE_CHECKING:
    import polars as pl

JudgmentForm = Literal["csv", "km", "semrel"]


def write_judgments(
    judgments: Judgments, path: str | os.PathLike[str], form: JudgmentForm = "csv"
) -> None:
    """Write judgments atomically (``-`` is standard output).

    form: ``csv`` is the format of giccs, with display order and further columns if available; ``km`` is
    ``Item1..ItemK,BestItem,WorstItem``; ``semrel`` is ``pair1a,pair1b,..,best-pair,worst-pair`` with letters,
    for items that are pairs (other items are in the first half).

    Raises InputError if none of the judgments is people's, but those of an existing file are or may be.
    """
    columns = {"csv": judgment_columns, "km": _km, "semrel": _semrel}.get(form)
    if columns is None:
        raise ValueError(f"form is {form!r}; expected 'csv', 'km' or 'semrel'")
    keep_answers_of_people(path, sources_of(judgments))
    write_atomic(path, delimited(columns(judgments)))


def _km(judgments: Judgments) -> dict[str, pl.Series]:
    columns = judgment_columns(judgments)
    items = {f"Item{n}": columns[f"item{n}"] for n in range(1, judgments.tuples.k + 1)}
    return items | {"BestItem": columns["best"], "WorstItem": columns["worst"]}


def _semrel(judgments: Judgments) -> dict[str, pl.Series]:
    columns = {}
    for position, column in enumerate(
        item_columns(judgments.tuples, judgments.tuple_of).values(), 1
    ):
        halves = column.str.splitn(BETWEEN, 2).struct.unnest().iter_columns()
        for half, text in zip("ab", halves, strict=True):
            columns[f"pair{position}{half}"] = text.fill_null("")
    for name, answer in (("best-pair", judgments.best), ("worst-pair", judgments.worst)):
        columns[name] = series(list(LETTERS)).gather(answer.astype(np.int32))
    return columns
