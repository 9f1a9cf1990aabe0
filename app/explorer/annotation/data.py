"""The data behind the page "Annotation": judgments per tuple and over time, annotators, times, comments."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from numpy.typing import NDArray

if TYPE_CHECKING:
    from bws.annotators import AnnotatorReport
    from bws.records import Judgments
    from bws.tables import ResultTable

__all__ = [
    "FLAGS",
    "Figures",
    "annotator_frame",
    "behind",
    "comment_frame",
    "consistency",
    "figures",
    "over_time",
    "place_frame",
    "seconds_frame",
    "seconds_of",
    "tuple_counts",
    "wilson",
]

POINTS = 400
"""A line over time has at most so many points."""
Z = 1.959963984540054
"""Of a 95 % interval."""
FLAGS = {
    "compliance ": "compliance",
    "best answers by place": "places",
    "the same two places": "same",
}
"""How bws.annotators begins its reasons -> what they are about; every other one is about time."""


@dataclass(frozen=True, eq=False)
class Figures:
    """What judgments tell about annotators and answers."""

    annotators: pl.DataFrame | None
    """None: no judgment names its annotator."""
    unnamed: int
    """Judgments that name no annotator."""
    seconds: pl.DataFrame
    untimed: int
    """Judgments whose time is not known."""
    places: pl.DataFrame | None
    """None: the order shown is not known."""
    comments: pl.DataFrame


def figures(judgments: Judgments) -> Figures:
    """Compute all of them."""
    from bws.annotators import annotator_report

    named, seconds = judgments.annotator_of >= 0, seconds_of(judgments)
    return Figures(
        annotator_frame(judgments, annotator_report(judgments)) if named.any() else None,
        int(np.count_nonzero(~named)),
        seconds_frame(seconds),
        seconds.null_count(),
        place_frame(judgments),
        comment_frame(judgments),
    )


def consistency(judgments: Judgments) -> dict[str, ResultTable]:
    """Return ``reliability``, over 100 random halves, and ``agreement`` with its intervals."""
    from bws.agreement import agreement
    from bws.split_half import reliability

    return {
        "reliability": reliability(judgments, split="annotation").result_table(),
        "agreement": agreement(judgments, intervals=True).result_table(),
    }


def tuple_counts(of_tuple: Mapping[str, int]) -> pl.DataFrame:
    """Return how many tuples have how many judgments: judgments, tuples, share.

    >>> tuple_counts({"t1": 2, "t2": 0, "t3": 2, "t4": 2}).rows()
    [(0, 1, 0.25), (2, 3, 0.75)]
    """
    judged = pl.DataFrame({"judgments": list(of_tuple.values())}, schema={"judgments": pl.Int64})
    counts = judged.group_by("judgments").agg(pl.len().cast(pl.Int64).alias("tuples"))
    return counts.sort("judgments").with_columns(share=pl.col("tuples") / pl.sum("tuples"))


def behind(of_tuple: Mapping[str, int], wanted: int) -> pl.DataFrame:
    """Return the tuples that have fewer judgments than wanted, those that lack most first.

    >>> behind({"t1": 5, "t2": 3, "t3": 0}, 5).rows()
    [('t3', 0, 5), ('t2', 3, 2)]
    """
    return (
        pl.DataFrame(
            {"tuple": list(of_tuple), "judgments": list(of_tuple.values())},
            schema={"tuple": pl.String, "judgments": pl.Int64},
        )
        .with_columns(missing=wanted - pl.col("judgments"))
        .filter(pl.col("missing") > 0)
        .sort("missing", "tuple", descending=[True, False])
    )


def over_time(submitted: NDArray[np.float64]) -> pl.DataFrame:
    """Return how many judgments were in by when: time (UTC), judgments.

    submitted: seconds since 1970; NaN where the time is not known, which does not count. At most 400
    points, the first and the last among them.

    >>> over_time(np.array([60.0, 0.0, 60.0, np.nan])).rows(named=True)[-1]["judgments"]
    3
    """
    times = np.sort(submitted[~np.isnan(submitted)])
    at, last = np.unique(times[::-1], return_index=True)
    counts = len(times) - last
    kept = np.linspace(0, max(len(at) - 1, 0), min(POINTS, len(at))).round().astype(int)
    return pl.DataFrame(
        {"time": (at[kept] * 1000).astype(np.int64), "judgments": counts[kept].astype(np.int64)}
    ).with_columns(pl.from_epoch("time", time_unit="ms").dt.replace_time_zone("UTC"))


def annotator_frame(judgments: Judgments, report: AnnotatorReport) -> pl.DataFrame:
    """Return a row an annotator, those to look at first.

    annotator, judgments, compliance (share of the implied pairs in the order of the others' scores),
    majority (share of the best and worst answers that most of the others gave to the same tuple),
    seconds and shortest (median and least time), place_p, same_answer, flags (what to look at: see
    `FLAGS`), reasons (in words), and a column ``best at PLACE`` for each place on the screen. Null
    where it is not known.
    """
    k = judgments.tuples.k
    extra = _shortest(judgments).join(_majority(judgments), on="annotator", how="left")
    rows = [
        {
            "annotator": one.annotator,
            "judgments": one.judgments,
            "compliance": one.compliance,
            "seconds": one.seconds,
            "place_p": one.place_p,
            "same_answer": one.same_answer,
            "flags": [_flag(reason) for reason in one.reasons],
            "reasons": "; ".join(one.reasons),
        }
        | {f"best at {place}": share for place, share in enumerate(one.best_at, start=1)}
        for one in report.annotators
    ]
    lists = {"flags": pl.List(pl.String)}
    frame = pl.DataFrame(rows, schema_overrides=lists, infer_schema_length=None).fill_nan(None)
    first = ["annotator", "judgments", "flags", "compliance", "majority", "seconds", "shortest"]
    first += ["place_p", "same_answer", *(f"best at {n}" for n in range(1, k + 1)), "reasons"]
    frame = frame.join(extra, on="annotator", how="left")
    order = pl.col("flags").list.len()
    return frame.select(first).sort(
        order, "compliance", "annotator", descending=[True, False, False], nulls_last=True
    )


def _flag(reason: str) -> str:
    return next((flag for begin, flag in FLAGS.items() if reason.startswith(begin)), "seconds")


def _shortest(judgments: Judgments) -> pl.DataFrame:
    names = _annotator_names(judgments)
    timed = pl.DataFrame({"annotator": names, "shortest": seconds_of(judgments)})
    return timed.drop_nulls("annotator").group_by("annotator").agg(pl.col("shortest").min())


def _majority(judgments: Judgments) -> pl.DataFrame:
    """Return for each annotator the share of answers that most of the others gave to the same question.

    Of equally frequent answers each counts its part of one; a question that nobody else answered does not
    count.
    """
    answers = pl.concat(
        pl.DataFrame(
            {
                "question": judgments.tuple_of.astype(np.int64) * 2 + which,
                "answer": place.astype(np.int64),
                "annotator": _annotator_names(judgments),
            }
        )
        for which, place in enumerate((judgments.best, judgments.worst))
    )
    table = _votes(answers, judgments.tuples.k)
    own = answers["answer"].to_numpy()
    others = table[answers["question"].to_numpy()]
    others[np.arange(len(own)), own] -= 1
    most = others.max(axis=1)
    tops = others == most[:, None]
    agreed = tops[np.arange(len(own)), own] / tops.sum(axis=1)
    majority = pl.Series("majority", np.where(most > 0, agreed, np.nan)).fill_nan(None)
    scored = answers.with_columns(majority).drop_nulls("annotator")
    return scored.group_by("annotator").agg(pl.col("majority").mean())


def _votes(answers: pl.DataFrame, k: int) -> NDArray[np.int64]:
    """Return (questions, K) counts of answers."""
    question, answer = answers["question"].to_numpy(), answers["answer"].to_numpy()
    size = int(question.max(initial=-1)) + 1
    return np.bincount(question * k + answer, minlength=size * k).reshape(size, k)


def _annotator_names(judgments: Judgments) -> pl.Series:
    """Return (J,) names; null where none is named."""
    names = pl.Series(judgments.annotators.tolist(), dtype=pl.String)
    at = pl.Series(judgments.annotator_of.astype(np.int64))
    return names.gather(at.set(at < 0, None))


def seconds_of(judgments: Judgments) -> pl.Series:
    """Return (J,) times in seconds; null where none is known, or the text is no number of at least 0."""
    column = judgments.columns.get("seconds")
    if column is None:
        return pl.Series([None] * len(judgments), dtype=pl.Float64)
    found = pl.Series(column.tolist(), dtype=pl.String).str.strip_chars()
    seconds = found.cast(pl.Float64, strict=False)
    return seconds.set(~(seconds.is_finite() & (seconds >= 0)), None)


def seconds_frame(seconds: pl.Series, bins: int = 30) -> pl.DataFrame:
    """Return how the times are distributed: low, high, judgments; bins of equal width on a log scale.

    Times under a tenth of a second are in the first bin; unknown ones do not count.

    >>> seconds_frame(pl.Series([1.0, 2.0, 100.0, None]), bins=2).rows()
    [(1.0, 10.0, 2), (10.0, 100.0, 1)]
    """
    known = np.maximum(seconds.drop_nulls().to_numpy(), 0.1)
    if not len(known):
        return pl.DataFrame(schema={"low": pl.Float64, "high": pl.Float64, "judgments": pl.Int64})
    low, high = float(known.min()), float(known.max())
    edges = np.geomspace(low, high if high > low else low * 1.1, bins + 1)
    counts, _ = np.histogram(known, np.array([0.0, *edges[1:-1], np.inf]))
    return pl.DataFrame({"low": edges[:-1], "high": edges[1:], "judgments": counts})


def place_frame(judgments: Judgments) -> pl.DataFrame | None:
    """Return how often what was shown at each place was chosen; None where the order shown is not known.

    answer (best or worst), place (from 1), count, share, low and high (95 %, Wilson 1927, as if all
    judgments were independent), expected (1 / K).
    """
    if judgments.shown is None:
        return None
    n, k = len(judgments), judgments.tuples.k
    rows = []
    for answer, chosen in (("best", judgments.best), ("worst", judgments.worst)):
        counts = np.bincount(np.argmax(judgments.shown == chosen[:, None], axis=1), minlength=k)
        for place, count in enumerate(counts.tolist(), start=1):
            low, high = wilson(count, n)
            share = count / n if n else math.nan
            rows.append((answer, place, count, share, low, high, 1 / k))
    names = ["answer", "place", "count", "share", "low", "high", "expected"]
    return pl.DataFrame(rows, schema=names, orient="row")


def wilson(count: int, n: int) -> tuple[float, float]:
    """Return the 95 % interval of a share (Wilson 1927); from 0 to 1 where n is 0.

    >>> low, high = wilson(5, 10)
    >>> round(low, 4), round(high, 4)
    (0.2366, 0.7634)
    """
    if not n:
        return 0.0, 1.0
    share, extra = count / n, Z**2 / n
    middle = (share + extra / 2) / (1 + extra)
    half = Z / (1 + extra) * math.sqrt(share * (1 - share) / n + extra / (4 * n))
    return max(middle - half, 0.0), min(middle + half, 1.0)


def comment_frame(judgments: Judgments) -> pl.DataFrame:
    """Return the comments, longest first: comment, annotator, tuple; one row an assignment."""
    column = judgments.columns.get("comment")
    texts = [""] * len(judgments) if column is None else column.tolist()
    assignment = judgments.columns.get("assignment_id")
    own = range(len(judgments)) if assignment is None else assignment.tolist()
    frame = pl.DataFrame(
        {
            "comment": pl.Series(texts, dtype=pl.String).str.strip_chars(),
            "annotator": _annotator_names(judgments),
            "tuple": pl.Series(judgments.tuples.ids[judgments.tuple_of].tolist(), dtype=pl.String),
            "assignment": pl.Series(list(map(str, own)), dtype=pl.String),
        }
    ).filter(pl.col("comment") != "")
    once = frame.unique(["comment", "assignment"], keep="first", maintain_order=True)
    longest = pl.col("comment").str.len_chars()
    return once.sort(longest, descending=True, maintain_order=True).drop("assignment")
