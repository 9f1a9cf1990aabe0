"""Columns of tuples, judgments and scores, as in files and data frames."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bws.base.ids import normal_id

if TYPE_CHECKING:
    import polars as pl

    from bws.records import Judgments, Scores, Tuples

Ints = NDArray[np.int32]
Floats = NDArray[np.float64]

COLUMN = "control"
EXPECTED_ANSWERS = ("best", "worst")
RANKS = ("rank_low", "rank_high")
ABSOLUTE = ("absolute_score", "absolute_low", "absolute_high")


def series(values: Iterable[str]) -> pl.Series:
    """Return a column of text; also for an empty list."""
    import polars as pl

    return pl.Series(list(values), dtype=pl.String)


def tuple_columns(tuples: Tuples) -> dict[str, pl.Series]:
    """Return the columns of CSV files: a row per tuple."""
    groups = series(tuples.groups).gather(tuples.group_of_tuple)
    items = item_columns(tuples, np.arange(len(tuples), dtype=np.int32))
    rounds = {name: series(column) for name, column in tuples.columns.items()}
    controls = {} if tuples.control_column is None else {COLUMN: series(tuples.control_column)}
    return {"tuple_id": series(tuples.ids), "group": groups} | items | rounds | controls


def item_columns(tuples: Tuples, tuple_of: Ints) -> dict[str, pl.Series]:
    """Return the columns item1, item2, ... of rows of these tuples."""
    items = series(tuples.items)
    members = tuples.members[tuple_of]
    return {
        f"item{position + 1}": items.gather(members[:, position]) for position in range(tuples.k)
    }


def judgment_columns(judgments: Judgments) -> dict[str, pl.Series]:
    """Return the columns of `Judgments.to_frame`, one row per judgment."""
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
    if tuples.controls:
        columns[COLUMN] = series(control_texts(judgments))
    return columns | ({} if judgments.shown is None else {"shown": _shown_text(judgments)})


def _last_for_none(judgments: Judgments) -> Ints:
    return np.where(
        judgments.annotator_of < 0, len(judgments.annotators), judgments.annotator_of
    ).astype(np.int32)


def _shown_text(judgments: Judgments) -> pl.Series:
    import polars as pl

    items, members = series(judgments.tuples.items), judgments.tuples.members
    order = np.zeros((len(judgments), 0), np.int8) if judgments.shown is None else judgments.shown
    item_texts = [items.gather(members[judgments.tuple_of, position]) for position in order.T]
    return pl.select(pl.concat_str(item_texts, separator=";")).to_series()


def score_columns(scores: Scores) -> dict[str, pl.Series]:
    """Return the columns of `Scores.to_frame`, one row per item."""
    import polars as pl

    columns = {
        "item": series(scores.items),
        **({} if scores.texts is None else {"text": series(scores.texts)}),
        "group": series(scores.groups),
        "score": pl.Series(scores.score),
        "appearances": pl.Series(scores.appearances),
        "best": pl.Series(scores.best),
        "worst": pl.Series(scores.worst),
    }
    if scores.low is not None and scores.high is not None:
        columns |= {"low": pl.Series(scores.low), "high": pl.Series(scores.high)}
    if scores.rank_low is not None and scores.rank_high is not None:
        columns |= {
            name: pl.Series(whole_ranks(ranks).tolist(), dtype=pl.Int64)
            for name, ranks in zip(RANKS, (scores.rank_low, scores.rank_high), strict=True)
        }
    if scores.absolute_score is not None:
        columns |= {name: pl.Series(getattr(scores, name)) for name in ABSOLUTE}
    return columns


def whole_ranks(ranks: Floats) -> NDArray[np.object_]:
    """Return ranks as integers, with None for NaN."""
    return np.array([None if np.isnan(rank) else int(rank) for rank in ranks], dtype=object)


def cell_controls(cell: str, items: Collection[str]) -> dict[str, str] | None:
    """Return the declarations of a cell, as `named_controls`.

    None if a part is no item of the row, or an item has both answers.

    >>> cell_controls("a; b=worst", ["a", "b", "c"]), cell_controls("x", ["a", "b"])
    ({'a': '', 'b': 'worst'}, None)
    """
    text = normal_id(cell)
    parts = [text] if text in items else [part for part in text.split(";") if part.strip()]
    found = [control_declaration(part, items) for part in parts]
    declared = [control for control in found if control]
    answers = {(item, answer) for item, answer in declared if answer}
    if None in found or len(dict(answers)) < len(answers):
        return None
    return dict(declared) | dict(answers)


def control_declaration(text: str, items: Collection[str]) -> tuple[str, str] | None:
    """Return the item and its expected answer; an item whose id ends in =best is preferred."""
    identity = normal_id(text)
    name, _, answer = (part.strip() for part in identity.rpartition("="))
    if identity in items:
        return identity, ""
    return (name, answer) if answer in EXPECTED_ANSWERS and name in items else None


def controls_of_judgments(judgments: Judgments) -> list[dict[str, str]]:
    """Return, for each of J judgments, the control items of its tuple with the expected answer, or ``""``.

    The column ``control`` of the judgment overrides the answers expected in all tuples.
    """
    tuples, column = judgments.tuples, judgments.columns.get(COLUMN)
    found: dict[tuple[Any, Any], dict[str, str]] = {}
    controls = []
    for row, t in enumerate(judgments.tuple_of.tolist()):
        cell = "" if column is None else column[row]
        if (t, cell) not in found:
            group, items = (
                tuples.groups[tuples.group_of_tuple[t]],
                tuples.items[tuples.members[t]].tolist(),
            )
            declared = {
                i: tuples.controls[group, i] for i in items if (group, i) in tuples.controls
            }
            found[t, cell] = declared | (cell_controls(cell, items) or {})
        controls.append(found[t, cell])
    return controls


def control_texts(judgments: Judgments) -> NDArray[np.object_]:
    """Return (J,) cells of the column ``control``."""
    cells = [
        ";".join(f"{item}={answer}" if answer else item for item, answer in controls.items())
        for controls in controls_of_judgments(judgments)
    ]
    return np.array(cells, dtype=object)
