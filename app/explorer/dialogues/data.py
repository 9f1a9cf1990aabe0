"""The data behind the page "Dialogues": dialogues, filters, candidates and single judgments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from app.explorer.study import Study
from bws.records import Judgments

__all__ = [
    "ORDERS",
    "DialogueFilter",
    "candidates",
    "dialogues",
    "letter",
    "matching",
    "single_judgments",
]

ORDERS = ("file", "disagreement", "spread")


@dataclass(frozen=True)
class DialogueFilter:
    """Which dialogues to show; an empty value asks for all."""

    domains: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    lengths: tuple[int, ...] = ()
    score: tuple[float, float] = (0.0, 1.0)
    """At least one candidate's score lies within, and ..."""
    disagreement: tuple[float, float] = (0.0, 1.0)
    """... its disagreement does."""
    words: str = ""
    """A part of a turn or of a candidate, upper and lower case alike."""
    order: str = "file"


def dialogues(study: Study) -> pl.DataFrame:
    """Return a row a dialogue, in the order of the file.

    dialogue_id, source, domain, n_turns, last_turn, candidates, spread (highest minus lowest score),
    disagreement (mean of its candidates'; null without judgments) and text: all turns and candidates in
    lower case.
    """
    about = [pl.col(name).first() for name in ("source", "domain", "n_turns", "last_turn")]
    frame = study.items.group_by("dialogue_id", maintain_order=True).agg(
        *about,
        pl.len().alias("candidates"),
        (pl.col("score").max() - pl.col("score").min()).alias("spread"),
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
    everything = pl.concat_str(pl.Series("turns", turns), "text", separator="\n")
    return frame.with_columns(everything.str.to_lowercase().alias("text"))


def matching(frame: pl.DataFrame, items: pl.DataFrame, criteria: DialogueFilter) -> pl.DataFrame:
    """Return the rows of `dialogues` that are asked for, in the order asked for."""
    wanted = [
        pl.col(name).is_in(values)
        for name, values in (
            ("domain", criteria.domains),
            ("source", criteria.sources),
            ("n_turns", criteria.lengths),
        )
        if values
    ]
    if criteria.words:
        wanted.append(pl.col("text").str.contains(criteria.words.lower(), literal=True))
    if within := _of_items(items, criteria):
        fitting = items.filter(*within)["dialogue_id"].unique()
        wanted.append(pl.col("dialogue_id").is_in(fitting.implode()))
    found = frame.filter(*wanted) if wanted else frame
    if criteria.order == "file":
        return found
    return found.sort(criteria.order, descending=True, nulls_last=True, maintain_order=True)


def _of_items(items: pl.DataFrame, criteria: DialogueFilter) -> list[pl.Expr]:
    ranges = {"score": criteria.score, "disagreement": criteria.disagreement}
    return [
        pl.col(name).is_between(*ends)
        for name, ends in ranges.items()
        if name in items.columns and ends != (0.0, 1.0)
    ]


def candidates(items: pl.DataFrame, dialogue_id: str) -> pl.DataFrame:
    """Return a dialogue's items with their letters, highest score first."""
    own = items.filter(pl.col("dialogue_id") == dialogue_id)
    letters = pl.Series("letter", [letter(place) for place in range(len(own))], pl.String)
    return own.insert_column(0, letters).sort("score", descending=True, maintain_order=True)


def letter(place: int) -> str:
    """Return the letter of the candidate at a place of its dialogue, from 0.

    >>> letter(0), letter(25), letter(26), letter(27)
    ('A', 'Z', 'AA', 'AB')
    """
    more, last = divmod(place, 26)
    return (letter(more - 1) if more else "") + chr(ord("A") + last)


def single_judgments(study: Study, dialogue_id: str) -> pl.DataFrame:
    """Return a row a judgment of the dialogue's tuples: tuple, annotator, items, best, worst, and more.

    Items are named by letter, in the order in which they were shown where that is known. `alone` is true
    where nobody else who judged the tuple gave the same best and worst. Further columns: comment and
    seconds, where the judgments have them.
    """
    judgments = study.judgments
    if judgments is None:
        return pl.DataFrame()
    own = (study.items["dialogue_id"] == dialogue_id).arg_true()
    names = {int(study.place_of[item]): letter(n) for n, item in enumerate(own)}
    asked = np.zeros(len(judgments.tuples.items), dtype=bool)
    asked[[item for item in names if item >= 0]] = True
    members = asked[judgments.tuples.members]
    rows = np.flatnonzero(np.any(members, axis=1)[judgments.tuple_of]).tolist()
    frame = pl.DataFrame([_row(judgments, row, names) for row in rows])
    if frame.is_empty():
        return frame
    alike = pl.len().over("tuple", "best", "worst") == 1
    return frame.sort("tuple", maintain_order=True).with_columns(
        (alike & (pl.len().over("tuple") > 1)).alias("alone")
    )


def _row(judgments: Judgments, row: int, names: dict[int, str]) -> dict[str, Any]:
    tuples, which = judgments.tuples, judgments.tuple_of[row]
    members: Sequence[int] = tuples.members[which]
    order = range(tuples.k) if judgments.shown is None else judgments.shown[row]

    def name(item: int) -> str:
        return names.get(int(item)) or str(tuples.items[item])

    annotator = judgments.annotator_of[row]
    return {
        "tuple": str(tuples.ids[which]),
        "annotator": "" if annotator < 0 else str(judgments.annotators[annotator]),
        "items": " ".join(name(members[place]) for place in order),
        "best": name(judgments.best_item[row]),
        "worst": name(judgments.worst_item[row]),
        **{
            column: str(judgments.columns[column][row])
            for column in ("comment", "seconds")
            if column in judgments.columns
        },
    }
