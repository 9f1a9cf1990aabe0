"""The data behind the page "Overview": counts, the histogram of scores, reliability and agreement."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import polars as pl

from app.explorer.study import Study
from bws.agreement import agreement
from bws.metadata import By
from bws.records import Judgments
from bws.split_half import reliability
from giccs.description.distribution import Bin
from giccs.description.statistics import Description

__all__ = [
    "BY",
    "agreement_table",
    "bins_table",
    "description_table",
    "facts",
    "judged_tuples",
    "reliability_table",
    "sizes",
]

BY = ("source", "n_turns")
"""What the tables break the judgments down by, as the paper's do."""
TABLE_2 = ("dialogues", "turns", "tokens", "rttr", "mtld", "lemmas", "mean_turn_length")


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


def bins_table(bins: Iterable[Bin]) -> pl.DataFrame:
    """Return the histogram's bins as a table."""
    return pl.DataFrame([{"low": b.low, "high": b.high, "items": b.items} for b in bins])


def description_table(descriptions: Iterable[Description]) -> pl.DataFrame:
    """Return the paper's Table 2 as a table; null is all lengths and domains, or a number that is none.

    `remarks` says why a number is none, or what to think of it.
    """
    rows = [
        {
            "n_turns": one.by.get("n_turns"),
            "domain": one.by.get("domain"),
            **{name: getattr(one, name) for name in TABLE_2},
            "remarks": "; ".join(f"{name}: {why}" for name, why in one.reasons.items()) or None,
        }
        for one in descriptions
    ]
    schema = {"n_turns": pl.Int64, "domain": pl.String, "remarks": pl.String}
    return pl.DataFrame(rows, schema_overrides=schema).fill_nan(None)


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


def reliability_table(study: Study, trials: int = 100, seed: int = 0) -> pl.DataFrame:
    """Return split-half reliability of the whole, and by source and length (paper section 4.2).

    source, n_turns (null: all), items, tuples, annotations, then mean and standard deviation of Pearson's r
    and Spearman's rho over the trials, and their Spearman-Brown values (`pearson_full`, `spearman_full`).
    """
    judgments, by = judged_tuples(study)
    if judgments is None:
        return pl.DataFrame()
    found = reliability(judgments, split="annotation", trials=trials, seed=seed, by=by)
    rows = [
        {
            **_part(group.by),
            "items": group.items,
            "tuples": group.tuples,
            "annotations": group.annotations,
            "pearson": group.pearson.mean,
            "pearson_sd": group.pearson.sd,
            "spearman": group.spearman.mean,
            "spearman_sd": group.spearman.sd,
            "pearson_full": group.pearson.spearman_brown,
            "spearman_full": group.spearman.spearman_brown,
        }
        for group in found.groups
    ]
    return _table(rows)


def agreement_table(study: Study) -> pl.DataFrame:
    """Return Krippendorff's alpha and strong agreement, whole and by source and length (paper Table 3).

    source, n_turns (null: all), tuples, annotations, alpha of both answers and of each, and the percentage of
    tuples in which four fifths or more gave the same best or worst. Empty as above.
    """
    judgments, by = judged_tuples(study)
    if judgments is None:
        return pl.DataFrame()
    found = agreement(judgments, by=by)
    rows = [
        {
            **_part(group.by),
            "tuples": group.tuples,
            "annotations": group.annotations,
            **{f"alpha_{name}": group.alpha[name].value for name in ("both", "best", "worst")},
            **{f"strong_{name}": group.strong[name].value for name in ("best", "worst")},
        }
        for group in found.groups
    ]
    return _table(rows)


def _part(by: Mapping[str, Any]) -> dict[str, Any]:
    return {name: by.get(name) for name in BY}


def _table(rows: list[dict[str, Any]]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema_overrides={"source": pl.String, "n_turns": pl.Int64})
