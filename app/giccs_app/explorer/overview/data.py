"""The data behind the page "Overview": counts, the histogram of scores, reliability and agreement."""

from __future__ import annotations

import numpy as np
import polars as pl

from bws.adaptive import stopping
from bws.analysis.analysis import Answers
from bws.analysis.judgments import (
    AGREEMENT,
    RELIABILITY,
    AgreementSettings,
    ReliabilitySettings,
)
from bws.base.tables import ResultTable
from bws.metadata import By
from bws.records import Judgments
from bws.split_half import usual_split
from giccs_app.explorer.study import Study

BY = ("source", "n_turns")
"""Columns by which the tables are grouped, as in the paper."""


def counts(study: Study) -> dict[str, int]:
    """Return the numbers of items, dialogues and domains and, if there are any, of judgments and
    annotators."""
    items, judgments = study.items, study.judgments
    n_by_name = {"items": len(items)}
    if not study.is_plain:
        n_by_name["dialogues"] = items["dialogue_id"].n_unique()
        n_by_name["domains"] = items["domain"].n_unique()
    if judgments is not None:
        n_by_name |= {"judgments": len(judgments), "annotators": len(judgments.annotators)}
    return n_by_name


def sizes(items: pl.DataFrame) -> pl.DataFrame:
    """Return the numbers of items and dialogues and the mean score per domain and number of turns."""
    return (
        items.group_by("domain", "n_turns")
        .agg(
            pl.len().alias("items"),
            pl.col("dialogue_id").n_unique().alias("dialogues"),
            pl.col("score").mean().round(3).alias("mean_score"),
        )
        .sort("domain", "n_turns")
    )


def judged_tuples(study: Study) -> tuple[Judgments | None, By]:
    """Return the judgments of tuples of benchmark items, and the source and number of turns of each tuple.

    None if there are no such judgments.
    """
    judgments = study.judgments
    if judgments is None:
        return None, {}
    item_of = np.full(len(judgments.tuples.items), -1)
    is_judged = study.index_in_judgments >= 0
    item_of[study.index_in_judgments[is_judged]] = np.flatnonzero(is_judged)
    first_item = item_of[judgments.tuples.members].min(
        axis=1
    )  # -1: an item is not in the benchmark
    selected = judgments.select((first_item >= 0)[judgments.tuple_of])
    if study.is_plain:
        return (selected if len(selected) else None), {}
    by = {name: study.items[name].to_numpy()[first_item].astype(object) for name in BY}
    return (selected if len(selected) else None), by


def consistency(study: Study, trials: int = 100, seed: int = 0) -> dict[str, ResultTable]:
    """Return ``reliability`` and ``agreement``, overall and by source and turns (GiCCS, Tables 3 and 1).

    For an adaptive study, ``stopping`` has the evidence of its end instead. Empty if there are no judgments
    of the benchmark items.
    """
    judgments, by = judged_tuples(study)
    if judgments is None:
        return {}
    if judgments.is_adaptive:
        return {"stopping": stopping(judgments).result_table()}
    usual = usual_split(judgments)
    split = None if usual == "annotation" else usual  # all splits, as on the page "Annotation"
    halves = ReliabilitySettings(split=split, trials=trials, seed=seed)
    parts = ((RELIABILITY, halves), (AGREEMENT, AgreementSettings()))
    return {
        analysis.name: Answers(judgments, settings, by).tables(analysis)[0]
        for analysis, settings in parts
    }
