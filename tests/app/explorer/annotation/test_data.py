"""Frames about annotators, against numbers worked out by hand."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from bws.analysis.analysis import Answers
from bws.analysis.judgments import (
    AGREEMENT,
    RELIABILITY,
    AgreementSettings,
    ReliabilitySettings,
)
from bws.annotators import annotator_report
from bws.files import judgments_from_records
from bws.records import Judgment, Judgments, Tuples
from giccs_app.explorer.annotation.data import (
    annotator_frame,
    comment_frame,
    cumulative_judgments,
    incomplete_tuples,
    position_frame,
    seconds_frame,
    seconds_of,
    tuple_counts,
)


def judged(rows, columns=None):
    """Judgments of tuples of a, b, c from (annotator, best, worst)."""
    records = [
        Judgment(("a", "b", "c"), best, worst, tuple_id="t", annotator=annotator)
        for annotator, best, worst in rows
    ]
    result = judgments_from_records(records)
    texts = {name: np.array(values, dtype=object) for name, values in (columns or {}).items()}
    return Judgments(
        result.tuples, result.tuple_of, result.best, result.worst, result.annotator_of,
        result.annotators, result.shown, texts,
    )  # fmt: skip


def test_an_empty_study_has_no_counts():
    assert tuple_counts({}).rows() == []
    assert incomplete_tuples({}, 5).rows() == []


def test_tuples_that_lack_most_come_first():
    result = incomplete_tuples({"b": 4, "a": 4, "c": 1, "d": 5, "e": 6}, 5)
    assert result.rows() == [("c", 1, 4), ("a", 4, 1), ("b", 4, 1)]


def test_judgments_add_up_over_time():
    result = cumulative_judgments(np.array([20.0, 10.0, 20.0, np.nan, 30.0]))
    assert result["judgments"].to_list() == [1, 3, 4]
    assert [at.timestamp() for at in result["time"]] == [10.0, 20.0, 30.0]
    assert cumulative_judgments(np.array([np.nan])).rows() == []


def test_many_times_are_thinned_but_the_ends_stay():
    result = cumulative_judgments(np.arange(10_000, dtype=float))
    assert len(result) == 400
    assert result["judgments"][0] == 1
    assert result["judgments"][-1] == 10_000
    assert result["judgments"].is_sorted()


def test_the_majority_is_that_of_the_others():
    # Others of x: best b 2, c 0 -> x's a is not it; worst c 2 -> x agrees: 1/2.
    # Others of y: best a 1, b 1 -> b counts 1/2; worst c 2 -> 1: 3/4. z as y.
    result = judged([("x", "a", "c"), ("y", "b", "c"), ("z", "b", "c")])
    frame = annotator_frame(result, annotator_report(result))
    shares = dict(frame.select("annotator", "majority").iter_rows())
    assert shares == {"x": 0.5, "y": 0.75, "z": 0.75}


def test_who_is_alone_has_no_majority():
    result = judged([("x", "a", "c")])
    row = annotator_frame(result, annotator_report(result)).row(0, named=True)
    assert row["majority"] is None
    assert row["compliance"] is None
    assert row["shortest"] is None


def test_unnamed_judgments_are_among_the_others():
    result = judged([("x", "a", "c"), ("", "a", "c")])
    frame = annotator_frame(result, annotator_report(result))
    assert frame.select("annotator", "majority").rows() == [("x", 1.0)]


def test_every_reason_has_its_flag():
    """One annotator disagrees in haste at one pair of places, ten are careful."""
    rng, rows = np.random.default_rng(0), []
    for tuple_id in range(20):
        for n in range(10):
            order = tuple(rng.permutation(["a", "b", "c"]))
            rows.append((order, "a", "c", f"w{n}", tuple_id, 9.0))
        rows.append((("c", "b", "a"), "c", "a", "odd", tuple_id, 1.0))
    records = [Judgment(o, b, w, tuple_id=str(t), annotator=a) for o, b, w, a, t, _ in rows]
    result = judgments_from_records(records)
    seconds = np.array([str(row[-1]) for row in rows], dtype=object)
    place = {item: n for n, item in enumerate(result.tuples.items)}
    shown = np.array(
        [
            [result.tuples.members[t].tolist().index(place[item]) for item in row[0]]
            for t, row in zip(result.tuple_of, rows, strict=True)
        ],
        dtype=np.int8,
    )
    result = Judgments(
        result.tuples, result.tuple_of, result.best, result.worst, result.annotator_of,
        result.annotators, shown, {"seconds": seconds},
    )  # fmt: skip
    report = annotator_report(result)
    frame = annotator_frame(result, report)
    first = frame.row(0, named=True)
    assert first["annotator"] == "odd"
    assert first["flags"] == ["reversed", "fast", "positions", "same_answer"]
    assert first["scale_low"] < first["scale"] < first["scale_high"] < 0
    assert first["reasons"].count(";") == 3
    assert (first["seconds"], first["shortest"], first["best at 1"]) == (1.0, 1.0, 1.0)
    assert frame["flags"].list.len().to_list()[1:] == [0] * 10


def test_times_are_numbers_of_at_least_nought():
    result = judged(
        [(w, "a", "c") for w in "uvwxyz"],
        {"seconds": [" 2.5", "-1", "soon", "inf", "", "0"]},
    )
    assert seconds_of(result).to_list() == [2.5, None, None, None, None, 0.0]
    assert seconds_of(judged([("u", "a", "c")])).to_list() == [None]


def test_every_time_is_in_a_bin():
    seconds = pl.Series([0.0, 0.05, 1.0, 10.0, 1000.0, None])
    result = seconds_frame(seconds, bins=4)
    assert result["low"].to_list() == pytest.approx([0.1, 1, 10, 100])
    assert result["high"].to_list() == pytest.approx([1, 10, 100, 1000])
    # a time at an edge may fall either side of it: the edges are rounded
    assert result["judgments"].sum() == 5
    assert result["judgments"][0] >= 2
    assert seconds_frame(pl.Series([3.0, 3.0]), bins=2)["judgments"].to_list() == [2, 0]
    assert len(seconds_frame(pl.Series([None], dtype=pl.Float64))) == 0


def test_places_are_counted_where_they_were_shown():
    tuples = Tuples(
        np.array(["t"], object), np.array(["a", "b", "c"], object), np.zeros(3, np.int32),
        np.array([""], object), np.array([[0, 1, 2]], np.int32),
    )  # fmt: skip
    shown = np.array([[2, 1, 0], [0, 1, 2], [2, 0, 1], [0, 2, 1]], np.int8)
    result = Judgments(
        tuples, np.zeros(4, np.int32), np.array([2, 0, 2, 1], np.int8),
        np.array([0, 1, 1, 0], np.int8), np.full(4, -1, np.int32), np.empty(0, object), shown,
    )  # fmt: skip
    frame = position_frame(result)
    assert frame["count"].to_list() == [3, 0, 1, 1, 1, 2]
    assert frame["share"].to_list() == [0.75, 0, 0.25, 0.25, 0.25, 0.5]
    assert frame["expected"].unique().to_list() == [1 / 3]
    assert position_frame(replace(result, shown=None)) is None
    assert position_frame(result.select(np.zeros(4, bool))) is None


def test_a_comment_of_an_assignment_stands_once():
    result = judged(
        [("x", "a", "c"), ("y", "a", "c"), ("z", "a", "b"), ("", "b", "c")],
        {"comment": ["ok", " longer <b>", "", "ok"], "assignment_id": ["1", "2", "3", "1"]},
    )
    frame = comment_frame(result)
    assert frame.rows() == [("longer <b>", "y", "t"), ("ok", "x", "t")]
    assert comment_frame(judged([("x", "a", "c")])).rows() == []


def test_reliability_and_agreement_of_those_who_agree():
    rows = [
        Judgment(items, items[0], items[2], tuple_id=f"{n}", annotator=f"w{w}")
        for n, items in enumerate([("a", "b", "c"), ("b", "c", "d"), ("b", "d", "a")])
        for w in range(4)
    ]
    judgments = judgments_from_records(rows)
    halves, agreed = (
        Answers(judgments, settings).tables(analysis)[0].to_frame("polars")
        for analysis, settings in (
            (RELIABILITY, ReliabilitySettings()),
            (AGREEMENT, AgreementSettings(intervals=True)),
        )
    )
    assert halves.select("pearson", "spearman").row(0) == pytest.approx((1.0, 1.0))
    assert agreed.select("observed_both", "observed_best", "observed_worst").row(0) == (1, 1, 1)
    assert agreed.select("strong_best", "strong_worst").row(0) == (100.0, 100.0)
