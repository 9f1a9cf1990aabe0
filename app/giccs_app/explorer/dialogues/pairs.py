"""The pairs of candidates of a dialogue: their comparisons by people, and their order by a model."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from bws.records import Judgments
from giccs_app.explorer.dialogues.data import judgment_row, letters_of_items
from giccs_app.explorer.study import Study

MAX_CANDIDATES = 12
"""Maximum number of candidates of a chart of pairs."""
STATES = ("unanimous", "contradicted", "missing")
"""All comparisons of a pair have the same winner, both candidates win, or there is no comparison."""


def win_counts(judgments: Judgments, items: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return (n, n) the number of comparisons that the row's item wins against the column's.

    Comparisons are those that judgments imply, see `CanonicalJudgments.comparisons`.
    items: (n,) indices in `judgments.tuples.items`; -1 for an item without judgments.
    """
    n, canonical = len(items), judgments.canonical
    position_of = np.full(len(judgments.tuples.items), n)  # n: an item that is not among them
    position_of[items[items >= 0]] = np.flatnonzero(items >= 0)
    position = position_of[canonical.origin]
    has_item = np.any(position[canonical.members] < n, axis=1)
    rows = np.flatnonzero(has_item[canonical.tuple_of])
    winner, loser = canonical.select(rows).comparisons()
    counts = np.zeros((n + 1, n + 1), dtype=np.int64)
    np.add.at(counts, (position[winner], position[loser]), 1)
    return counts[:n, :n]


def around(candidates: pl.DataFrame, item: str | None, pair: str | None) -> pl.DataFrame:
    """Return at most `MAX_CANDIDATES` neighbours by score: around a pair, an item, or the highest.

    candidates: as returned by `giccs_app.explorer.dialogues.data.candidates`. pair: two letters, ``A-D``.
    """
    is_member = pl.col("letter").is_in((pair or "").split("-"))
    rows = candidates.select(is_member.arg_true()).to_series()
    if not len(rows):
        rows = candidates.select((pl.col("item_id") == (item or "")).arg_true()).to_series()
    first = int(rows[0]) - MAX_CANDIDATES // 2 if len(rows) else 0
    return candidates.slice(max(min(first, len(candidates) - MAX_CANDIDATES), 0), MAX_CANDIDATES)


def pair_frame(
    study: Study, candidates: pl.DataFrame, predictions: pl.DataFrame | None = None
) -> pl.DataFrame:
    """Return one row per pair of candidates; the first one has the higher score (or the same).

    Columns: pair (their letters, ``A-D``), and of both candidates (first, second) letter, text, score, wins
    (comparisons by people in which it was judged higher) and prediction (null if missing); comparisons,
    state (of `STATES`), and is_reversed: whether the model orders the pair against the scores. Equal scores
    or predictions have no order.

    candidates: by descending score. predictions: item_id and prediction of a model.
    """
    assert study.judgments is not None
    rows = study.items.select(pl.int_range(pl.len()).alias("row"), "item_id")
    own = candidates.select("item_id").join(rows, on="item_id", maintain_order="left")
    wins = win_counts(study.judgments, study.index_in_judgments[own["row"].to_numpy()])
    predicted: dict[str, float] = {}
    if predictions is not None:
        predicted = dict(predictions.select("item_id", "prediction").drop_nans().iter_rows())
    members = candidates.to_dicts()
    pairs = [
        _pair(members[i], members[j], int(wins[i, j]), int(wins[j, i]), predicted)
        for i in range(len(members))
        for j in range(i + 1, len(members))
    ]
    optional = ("first_prediction", "second_prediction")
    return pl.DataFrame(pairs, schema_overrides=dict.fromkeys(optional, pl.Float64))


def _pair(
    first: dict[str, Any],
    second: dict[str, Any],
    n_first: int,
    n_second: int,
    predicted: dict[str, float],
) -> dict[str, Any]:
    predictions = [predicted.get(each["item_id"]) for each in (first, second)]
    known = [value for value in predictions if value is not None]
    state = "unanimous" if n_first or n_second else "missing"
    if n_first and n_second:
        state = "contradicted"
    row: dict[str, Any] = {"pair": f"{first['letter']}-{second['letter']}"}
    numbers = (n_first, n_second)
    for name, each, wins, prediction in zip(
        ("first", "second"), (first, second), numbers, predictions, strict=True
    ):
        row |= {name: each["letter"], f"{name}_text": each["utterance"]}
        row |= {f"{name}_score": each["score"], f"{name}_wins": wins}
        row[f"{name}_prediction"] = prediction
    is_reversed = len(known) == 2 and first["score"] > second["score"] and known[0] < known[1]
    return row | {"comparisons": n_first + n_second, "state": state, "is_reversed": is_reversed}


def pair_judgments(study: Study, dialogue_id: str, pair: str) -> pl.DataFrame:
    """Return the judgments by people that compare two candidates of a dialogue, sorted by tuple.

    Columns: those of `single_judgments`, and winner, the letter of the candidate that is judged higher.
    A judgment compares two items of its tuple if at least one of them is its best or worst.
    pair: the letters, ``A-D``.
    """
    judgments, index = study.judgments, study.index_in_judgments
    assert judgments is not None
    names = letters_of_items(study, index, dialogue_id)
    items = {letter: item for item, letter in names.items() if item >= 0}
    first, second = (items.get(letter, -1) for letter in pair.split("-"))
    members = judgments.tuples.members
    has_both = ((members == first).any(axis=1) & (members == second).any(axis=1))[
        judgments.tuple_of
    ]
    wins_first = (judgments.best_item == first) | (judgments.worst_item == second)
    wins_second = (judgments.best_item == second) | (judgments.worst_item == first)
    rows = np.flatnonzero(has_both & (wins_first | wins_second)).tolist()
    table = [
        {
            "winner": names[first if wins_first[row] else second],
            **judgment_row(judgments, row, names),
        }
        for row in rows
    ]
    return pl.DataFrame(table).sort("tuple", maintain_order=True) if table else pl.DataFrame()
