"""The data behind the page "Overview": counts, the histogram of scores, reliability and agreement."""

from __future__ import annotations

import numpy as np
import polars as pl

from app.explorer.study import Study
from bws.agreement import agreement
from bws.metadata import By
from bws.records import Judgments
from bws.split_half import reliability
from bws.tables import ResultTable

__all__ = ["BY", "consistency", "facts", "judged_tuples", "sizes"]

BY = ("source", "n_turns")
"""What the tables break the judgments down by, as the paper's do."""


def facts(study: Study) -> dict[str, int]:
    """Count items, dialogues, domains, and where there are judgments these and annotators."""
    items, judgments = study.items, study.judgments
    counts = {
        "items": len(items),
        "dialogues": items["dialogue_id"].n_unique(),
        "domains": items["domain"].n_unique(),
    }
    if judgments is not None:
        counts |= {"judgments": len(judgments), "annotators": len(judgments.annotators)}
    return counts


def sizes(items: pl.DataFrame) -> pl.DataFrame:
    """Return items, dialogues and the mean score of each domain and length."""
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
    """Return the judgments of tuples whose items are the benchmark's, and each tuple's source and length.

    None where there are no such judgments.
    """
    judgments = study.judgments
    if judgments is None:
        return None, {}
    item_of = np.full(len(judgments.tuples.items), -1)
    found = study.place_of >= 0
    item_of[study.place_of[found]] = np.flatnonzero(found)
    first = item_of[judgments.tuples.members].min(
        axis=1
    )  # -1: one of its items is not the benchmark's
    kept = judgments.take((first >= 0)[judgments.tuple_of])
    by = {name: study.items[name].to_numpy()[first].astype(object) for name in BY}
    return (kept if len(kept) else None), by


def consistency(study: Study, trials: int = 100, seed: int = 0) -> dict[str, ResultTable]:
    """Return ``reliability`` and ``agreement``, whole and by source and length (GiCCS, Tables 3 and 1).

    Empty where there are no judgments of the benchmark's items.
    """
    judgments, by = judged_tuples(study)
    if judgments is None:
        return {}
    halves = reliability(judgments, split="annotation", trials=trials, seed=seed, by=by)
    return {
        "reliability": halves.result_table(),
        "agreement": agreement(judgments, by=by).result_table(),
    }
