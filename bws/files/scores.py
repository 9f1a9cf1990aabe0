"""Reading and writing of scores."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from bws.base.file_kinds import ITEM, SCORE, first_of
from bws.base.frames import Source
from bws.base.text import display_name, read_bytes, write_atomic
from bws.files.columns import Faults, delimited, encode, quoted, tabbed
from bws.files.pairs import BETWEEN
from bws.files.rows import missing
from bws.files.table import Table, tabbed_first_line, table_of, text_bytes
from bws.record_columns import ABSOLUTE, RANKS, score_columns, series
from bws.records import Floats, Ints, Scores

if TYPE_CHECKING:
    import polars as pl

ScoreForm = Literal["csv", "km", "semrel"]
COUNTS = ("appearances", "best", "worst")
LIMITS = ("low", "high")


def read_scores(path: Source) -> Scores:
    """Read scores: ``item,group,score,...``, or K&M's format (item, tab, score, no header).

    An empty score, limit or rank is NaN; missing counts are 0. Raises InputError with every fault: empty or
    repeated items of a group, and invalid scores, counts and ranks.
    """
    name = display_name(path)
    data = text_bytes(read_bytes(path), name)
    first = tabbed_first_line(data)
    if len(first) == 2 and not first_of(first, SCORE):
        return _scores(table_of(data, name, separator="\t", header=False), "item1", "item2")
    table = table_of(data, name).named((*COUNTS, *LIMITS, *RANKS, *ABSOLUTE))
    item, score = (first_of(table.frame.columns, names) for names in (ITEM, SCORE))
    if item is None or score is None:
        raise missing(table, "scores", "item, group, score", "scores")
    return _scores(table, item, score)


def _scores(table: Table, item: str, score: str) -> Scores:
    frame = table.with_decimal_points((score, *LIMITS, *ABSOLUTE)).frame
    faults = Faults(table.file, table.lines, table.problems)
    (item_of,), items = encode([frame[item]])
    group = first_of(frame.columns, ("group", "dialogueid"))
    (group_of,), groups = encode([frame[group] if group else frame[item].str.head(0)])
    _check_items(faults, item_of, items, group_of, groups)
    faults.add_missing_groups(item_of[np.newaxis], items, group_of, groups)
    present = [name for name in (*COUNTS, *LIMITS, *RANKS, *ABSOLUTE) if name in frame.columns]
    columns = {"score": frame[score]} | {name: frame[name] for name in present}
    numbers = {name: _numbers(faults, name, column) for name, column in columns.items()}
    for name, least in {**dict.fromkeys(COUNTS, 0), **dict.fromkeys(RANKS, 1)}.items():
        if name in numbers:
            _check_whole(faults, name, numbers[name], least)
    for name in ABSOLUTE:
        if name in numbers:
            _check_unit(faults, name, numbers[name])
    faults.stop("scores", always=True)
    appearances, best, worst = (_counts(numbers, name, len(frame)) for name in COUNTS)
    return Scores(
        items=items[item_of],
        groups=groups[group_of],
        score=numbers["score"],
        appearances=appearances,
        best=best,
        worst=worst,
        low=numbers.get("low"),
        high=numbers.get("high"),
        rank_low=numbers.get("rank_low"),
        rank_high=numbers.get("rank_high"),
        absolute_score=numbers.get("absolute_score"),
        absolute_low=numbers.get("absolute_low"),
        absolute_high=numbers.get("absolute_high"),
    )


def _counts(numbers: dict[str, Floats], name: str, rows: int) -> NDArray[np.int64]:
    return np.nan_to_num(numbers.get(name, np.zeros(rows))).astype(np.int64)


def _check_items(
    faults: Faults,
    item_of: Ints,
    items: NDArray[np.object_],
    group_of: Ints,
    groups: NDArray[np.object_],
) -> None:
    def item_label(row: int) -> str:
        group = groups[group_of[row]]
        of_group = f" of group {quoted(group)}" if group else ""
        return f"the item {quoted(items[item_of[row]])}{of_group}"

    empty = (items == "")[item_of].astype(bool)
    faults.add(empty, lambda _: "item is empty; expected in every row")
    keys = group_of.astype(np.int64) * len(items) + item_of
    faults.add_repeats(keys, item_label, ~empty)


def _numbers(faults: Faults, name: str, column: pl.Series) -> Floats:
    import polars as pl

    texts = column.str.strip_chars()
    values = texts.cast(pl.Float64, strict=False)
    right = values.is_finite().fill_null(False) | texts.str.to_lowercase().is_in(["", "nan"])
    faults.add(
        ~right.to_numpy(),
        lambda row: f"{name} is {quoted(column[row])}; it must be a number, or empty",
    )
    return values.fill_null(np.nan).to_numpy()


def _check_whole(faults: Faults, name: str, values: Floats, least: int) -> None:
    faults.add(
        (values < least) | (values % 1 > 0),
        lambda row: f"{name} is {values[row]:g}; expected a whole number from {least}, or empty",
    )


def _check_unit(faults: Faults, name: str, values: Floats) -> None:
    faults.add(
        (values < 0) | (values > 1),
        lambda row: f"{name} is {values[row]:g}; expected a number from 0 to 1, or empty",
    )


def write_scores(scores: Scores, path: str | os.PathLike[str], form: ScoreForm = "csv") -> None:
    """Write scores atomically (``-`` is standard output).

    form: ``csv`` is the format of giccs, in the order of the items, with NaN as an empty field; ``km`` is
    item, tab, score with three decimals in descending order; ``semrel`` is ``PairID,Text,Score`` in the order
    of the items, with two decimals and the sentences of a pair on two lines.
    """
    columns = {"csv": score_columns, "km": _km, "semrel": _semrel}.get(form)
    if columns is None:
        raise ValueError(f"form is {form!r}; expected 'csv', 'km' or 'semrel'")
    selected_columns = columns(scores)
    text = (
        tabbed(selected_columns, display_name(path))
        if form == "km"
        else delimited(selected_columns)
    )
    write_atomic(path, text)


def _km(scores: Scores) -> dict[str, pl.Series]:
    order = np.argsort(-scores.score, kind="stable")  # NaN last.
    rounded = [f"{score:.3f}" for score in scores.score[order]]
    return {"item": series(scores.items[order]), "score": series(rounded)}


def _semrel(scores: Scores) -> dict[str, pl.Series]:
    width = max(5, len(str(len(scores))))
    numbers = [f"{number:0{width}}" for number in range(1, len(scores) + 1)]
    texts = [item.replace(BETWEEN, "\n") for item in scores.items]
    rounded = [f"{score:.2f}" for score in scores.score]
    semrel_columns = {"PairID": numbers, "Text": texts, "Score": rounded}
    return {name: series(values) for name, values in semrel_columns.items()}
