"""The data of the page "Dialogues": dialogues, filters, candidates and individual judgments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from bws.records import Judgments
from giccs_app.explorer.search import fold
from giccs_app.explorer.study import Study

ORDERS = ("file", "disagreement", "spread", "mean", "errors")


@dataclass(frozen=True)
class DialogueFilter:
    """Filter and order of dialogues; empty values match all."""

    domains: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    lengths: tuple[int, ...] = ()
    score: tuple[float, float] = (0.0, 1.0)
    """Range of the score and ..."""
    disagreement: tuple[float, float] = (0.0, 1.0)
    """... of the disagreement of at least one candidate (the same for both)."""
    words: str = ""
    """Substring of a turn or candidate, see `giccs_app.explorer.search`."""
    order: str = "file"


def dialogues(study: Study) -> pl.DataFrame:
    """Return one row per dialogue, in the order of the file.

    Columns: dialogue_id, source, domain, n_turns, last_turn, candidates, spread (highest minus lowest score),
    mean (of the scores), disagreement (mean over the candidates; null without judgments) and text (all turns
    and candidates, folded for the search).
    """
    metadata = [pl.col(name).first() for name in ("source", "domain", "n_turns", "last_turn")]
    frame = study.items.group_by("dialogue_id", maintain_order=True).agg(
        *metadata,
        pl.len().alias("candidates"),
        (pl.col("score").max() - pl.col("score").min()).alias("spread"),
        pl.col("score").mean().alias("mean"),
        (
            pl.col("disagreement").mean()
            if "disagreement" in study.items.columns
            else pl.lit(None, pl.Float64).alias("disagreement")
        ),
        pl.col("utterance").str.join("\n").alias("text"),
    )
    turns = [
        "\n".join(turn.text for turn in study.turns[dialogue]) for dialogue in frame["dialogue_id"]
    ]
    texts = [
        fold(f"{own_turns}\n{own_candidates}")
        for own_turns, own_candidates in zip(turns, frame["text"], strict=True)
    ]
    return frame.with_columns(pl.Series("text", texts, pl.String))


def matching(frame: pl.DataFrame, items: pl.DataFrame, criteria: DialogueFilter) -> pl.DataFrame:
    """Return the rows of `dialogues` that match the criteria, in their order; adds the number of hits."""
    conditions = [
        pl.col(name).is_in(values)
        for name, values in (
            ("domain", criteria.domains),
            ("source", criteria.sources),
            ("n_turns", criteria.lengths),
        )
        if values
    ]
    n_hits = pl.lit(0)
    if criteria.words:
        n_hits = pl.col("text").str.count_matches(fold(criteria.words), literal=True)
        conditions.append(n_hits > 0)
    if item_conditions := _item_conditions(items, criteria):
        matching_ids = items.filter(*item_conditions)["dialogue_id"].unique()
        conditions.append(pl.col("dialogue_id").is_in(matching_ids.implode()))
    matches = (frame.filter(*conditions) if conditions else frame).with_columns(hits=n_hits)
    if criteria.order not in matches.columns:  # as in the file, or by errors that cannot be read
        return matches
    return matches.sort(criteria.order, descending=True, nulls_last=True, maintain_order=True)


def _item_conditions(items: pl.DataFrame, criteria: DialogueFilter) -> list[pl.Expr]:
    ranges = {"score": criteria.score, "disagreement": criteria.disagreement}
    return [
        pl.col(name).is_between(*limits)
        for name, limits in ranges.items()
        if name in items.columns and limits != (0.0, 1.0)
    ]


def with_errors(all_dialogues: pl.DataFrame, residuals: pl.DataFrame) -> pl.DataFrame:
    """Add the column errors: mean absolute residual over the predicted items of a dialogue, null without any.

    residuals: of one result, as returned by `giccs_app.explorer.errors.data.residuals`.
    """
    size = pl.col("residual").abs().mean().alias("errors")
    means = residuals.group_by("dialogue_id").agg(size)
    return all_dialogues.join(means, on="dialogue_id", how="left", maintain_order="left")


def candidates(
    items: pl.DataFrame, dialogue_id: str, residuals: pl.DataFrame | None = None
) -> pl.DataFrame:
    """Return the items of a dialogue with their letters, highest score first.

    residuals: adds the column residual, null for items without a prediction.
    """
    if residuals is not None:
        own = residuals.select("item_id", "residual")
        items = items.filter(pl.col("dialogue_id") == dialogue_id)
        items = items.join(own, on="item_id", how="left", maintain_order="left")
    dialogue_items = items.filter(pl.col("dialogue_id") == dialogue_id)
    letters = pl.Series(
        "letter", [letter(index) for index in range(len(dialogue_items))], pl.String
    )
    return dialogue_items.insert_column(0, letters).sort(
        "score", descending=True, maintain_order=True
    )


def letter(index: int) -> str:
    """Return the letter of the candidate with an index (from 0) in its dialogue.

    >>> letter(0), letter(25), letter(26), letter(27)
    ('A', 'Z', 'AA', 'AB')
    """
    more, last = divmod(index, 26)
    return (letter(more - 1) if more else "") + chr(ord("A") + last)


def single_judgments(study: Study, dialogue_id: str) -> pl.DataFrame:
    """Return one row per judgment of the tuples of a dialogue: tuple, annotator, items, best, worst, alone.

    Items are letters, in the order shown if it is known. `alone` is true if no other judgment of the tuple
    by people has the same best and worst items. The columns comment and seconds are included if the judgments
    have them. Judgments of models are last.
    """
    frames = [] if study.judgments is None else [_of_people(study, study.judgments, dialogue_id)]
    for source, index in zip(study.model_judgments, study.index_in_model_judgments, strict=True):
        frames.append(_rows_of_dialogue(study, source, index, dialogue_id))
    frames = [frame for frame in frames if len(frame)]
    return pl.concat(frames, how="diagonal") if frames else pl.DataFrame()


def _of_people(study: Study, judgments: Judgments, dialogue_id: str) -> pl.DataFrame:
    frame = _rows_of_dialogue(study, judgments, study.index_in_judgments, dialogue_id)
    if frame.is_empty():
        return frame
    is_unique = pl.len().over("tuple", "best", "worst") == 1
    return frame.with_columns((is_unique & (pl.len().over("tuple") > 1)).alias("alone"))


def _rows_of_dialogue(
    study: Study, judgments: Judgments, index: NDArray[np.int64], dialogue_id: str
) -> pl.DataFrame:
    """Return the rows of one source, sorted by tuple. index: (N,) of each item in the judgments, or -1."""
    names = letters_of_items(study, index, dialogue_id)
    in_dialogue = np.zeros(len(judgments.tuples.items), dtype=bool)
    in_dialogue[[item for item in names if item >= 0]] = True
    members = in_dialogue[judgments.tuples.members]
    rows = np.flatnonzero(np.any(members, axis=1)[judgments.tuple_of]).tolist()
    frame = pl.DataFrame([judgment_row(judgments, row, names) for row in rows])
    return frame.sort("tuple", maintain_order=True) if len(frame) else frame


def letters_of_items(study: Study, index: NDArray[np.int64], dialogue_id: str) -> dict[int, str]:
    """Return the letters of the candidates of a dialogue by their indices in judgments.

    index: (N,) of each item in the judgments, -1 for items without any, of which one letter is kept.
    """
    item_indices = (study.items["dialogue_id"] == dialogue_id).arg_true()
    return {int(index[item]): letter(n) for n, item in enumerate(item_indices)}


def judgment_row(judgments: Judgments, row: int, names: dict[int, str]) -> dict[str, Any]:
    """Return a judgment with letters; items without a letter have their ids. names: by item index."""
    tuples, tuple_index = judgments.tuples, judgments.tuple_of[row]
    members: Sequence[int] = tuples.members[tuple_index]
    order = range(tuples.k) if judgments.shown is None else judgments.shown[row]

    def name(item: int) -> str:
        return names.get(int(item)) or str(tuples.items[item])

    annotator = judgments.annotator_of[row]
    return {
        "tuple": str(tuples.ids[tuple_index]),
        "annotator": "" if annotator < 0 else str(judgments.annotators[annotator]),
        "items": " ".join(name(members[position]) for position in order),
        "best": name(judgments.best_item[row]),
        "worst": name(judgments.worst_item[row]),
        **{
            column: str(judgments.columns[column][row])
            for column in ("comment", "seconds")
            if column in judgments.columns
        },
    }
