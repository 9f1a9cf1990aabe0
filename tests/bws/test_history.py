"""The history of a study: states after the first judgments, their order, and when the target is reached."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest

import bws
from bws.components import generalisability
from bws.files import judgments_from_records
from bws.history import Frame, StudyHistory, collection_order, study_history
from bws.records import Judgment
from bws.stats.estimates import Estimate
from tests import in_process
from tests.giccs.report.test_verdict import SMALL, planted_study


@pytest.fixture(scope="module")
def planted():
    return planted_study(**SMALL).judgments


@pytest.fixture(scope="module")
def history(planted):
    return study_history(planted)


def rows_of(*tuple_ids):
    return judgments_from_records(
        Judgment(("a", "b", "c"), "a", "c", f"w{n}", "", identity)
        for n, identity in enumerate(tuple_ids)
    )


def test_each_frame_is_the_study_of_its_first_judgments(planted, history):
    n = len(planted)
    assert [frame.n for frame in history.frames] == [round(n * k / 10) for k in range(1, 11)]
    for number in (3, 9):
        frame = history.frames[number]
        part = planted.select(np.arange(frame.n))
        expected = bws.score(part, scale="unit", interval="model")
        np.testing.assert_array_equal(frame.scores.score, expected.score)
        np.testing.assert_array_equal(frame.scores.low, expected.low)
        assert frame.reliability == generalisability(part.canonical).reliability
        assert frame.agreement.value == bws.agreement(part).groups[0].alpha["both"].value


def test_the_last_frame_is_the_whole_study_in_any_order_of_rows(planted, history):
    order = np.random.default_rng(0).permutation(len(planted))
    again = study_history(planted.select(order))
    assert again.frames[-1].reliability == history.frames[-1].reliability
    assert again.frames[4].reliability != history.frames[4].reliability


def test_intervals_shrink_and_reliability_grows(history):
    widths = [np.nanmean(frame.scores.high - frame.scores.low) for frame in history.frames]
    assert widths[-1] < widths[4] < widths[1]
    assert history.frames[-1].reliability.value > history.frames[1].reliability.value


def test_times_give_the_order_and_unknown_ones_are_last(planted):
    judgments = rows_of("t", "t", "u", "u")
    rows, note = collection_order(judgments, np.array([3.0, np.nan, 1.0, 2.0]))
    assert (rows.tolist(), note) == ([2, 3, 0, 1], "order of the judgments: by time")


@pytest.mark.parametrize(
    ("tuples", "rows"),
    [
        ("ttuu", [0, 2, 1, 3]),  # sorted by tuple: the first judgments of both, then the second
        ("tttuv", [0, 3, 4, 1, 2]),
        ("tutu", [0, 1, 2, 3]),
        ("tuv", [0, 1, 2]),  # one judgment per tuple
        ("ttut", [0, 1, 2, 3]),
    ],
)
def test_rows_sorted_by_tuple_are_taken_in_turns(tuples, rows):
    order, note = collection_order(rows_of(*tuples))
    assert order.tolist() == rows
    assert ("sorted by tuple" in note) == (rows != sorted(rows))


def made(*values, target=0.9):
    frames = tuple(
        Frame(100 * number, None, Estimate(value, reason="why"), Estimate(0.5))
        for number, value in enumerate(values, start=1)
    )
    return StudyHistory(frames, target, "order")


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ((0.5, 0.92, 0.95), "a reliability of 0.9 is reached between 100 and 200 of 300 judgments"),
        ((0.95, 0.8, 0.9), "a reliability of 0.9 is reached between 200 and 300 of 300 judgments"),
        ((math.nan, 0.92, 0.95), "a reliability of 0.9 is reached after 200 of 300 judgments, or before"),
        ((0.92, 0.95), "a reliability of 0.9 is reached after 100 of 200 judgments, or before"),
        ((0.95, 0.8996), "a reliability of 0.9 is not reached after 200 judgments: 0.900"),
        ((0.95, math.nan), "no reliability: why"),
    ],
)  # fmt: skip
def test_the_sentence_says_when_the_target_is_reached_for_good(values, sentence):
    assert made(*values).sentence == sentence


def test_a_reason_that_begins_with_no_reliability_is_not_repeated():
    reason = "no reliability: the scores vary no more than their errors"
    frame = Frame(100, None, Estimate(math.nan, reason=reason), Estimate(0.5))
    assert StudyHistory((frame,), 0.9, "order").sentence == reason


def test_without_numbers_there_are_reasons():
    first = [Judgment(("a", "b", "c"), "a", "c", "w1", "", "t1")]
    later = [Judgment(("a", "b", "d"), "a", "d", f"w{n}", "", "t2") for n in range(3)]
    history = study_history(judgments_from_records([*first, *later]), n_frames=2)
    assert [frame.n for frame in history.frames] == [2, 4]
    early = study_history(judgments_from_records([*later, *first]), n_frames=4).frames[0]
    assert math.isnan(early.reliability.value)
    assert math.isnan(early.agreement.value)
    assert early.agreement.reason == "no agreement: no tuple has two judgments"
    early = study_history(judgments_from_records([*first, later[0]]), n_frames=2).frames[0]
    assert early.reliability.reason == "1 of 4 items have no judgment yet"
    assert np.isnan(early.scores.score).sum() == 1


def test_few_judgments_have_few_frames_and_none_an_error():
    judgments = rows_of("t", "u", "v")
    assert [frame.n for frame in study_history(judgments).frames] == [1, 2, 3]
    with pytest.raises(ValueError, match="no judgments"):
        study_history(judgments.select(np.array([], dtype=int)))
    with pytest.raises(ValueError, match="target"):
        study_history(judgments, 1.0)


def test_adaptive_studies_have_a_reason():
    judgments = rows_of("t", "u")
    adaptive = replace(judgments, columns={"purpose": np.array(["adaptive"] * 2, dtype=object)})
    with pytest.raises(ValueError, match="biased on adaptive tuples"):
        study_history(adaptive)


@pytest.fixture(scope="module")
def file(planted, tmp_path_factory):
    path = tmp_path_factory.mktemp("study") / "judgments.csv"
    bws.write_judgments(planted, path)
    return path


def test_the_command_lists_the_frames_and_draws_them(file, history):
    figures = ["--figure", "history=history.svg", "--figure", "frames=frames.svg"]
    arguments = [file, "--trials", 2, "--target", 0.8, "--history", "--json", *figures]
    pytest.importorskip("vl_convert", reason="vl-convert is not installed")
    done = in_process.run("bws-reliability", *map(str, arguments), cwd=file.parent)
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)["history"]
    assert [frame["judgments"] for frame in document["frames"]] == [f.n for f in history.frames]
    values = [frame["reliability"]["value"] for frame in document["frames"]]
    (reached,) = [
        frame["judgments"]
        for number, frame in enumerate(document["frames"])
        if min(values[number:]) >= 0.8 > min(values[number - 1 :])
    ]
    assert document["reached"] == reached
    curve, strip = ((file.parent / f"{name}.svg").read_text() for name in ("history", "frames"))
    assert "target 0.8" in curve
    n_items = min(60, len(history.frames[-1].scores))
    assert strip.count('aria-roledescription="point"') == n_items * len(history.frames)
    for frame in history.frames:
        assert f"{frame.n:,}" in strip


def test_the_strip_has_each_score_in_the_column_of_its_frame(history):
    from bws.history_charts import COLUMN_SHARE, strip_rows

    rows = strip_rows(history)
    final = history.frames[-1].scores
    assert 0 < COLUMN_SHARE < 1
    for row in rows[:: len(rows) // 7]:
        frame = history.frames[row["column"]]
        assert row["judgments"] == frame.n
        assert row["score"] == frame.scores.score[row["index"]]
        own = final.score[row["index"]]
        assert (final.score > own).sum() < row["rank"] <= (final.score >= own).sum()
