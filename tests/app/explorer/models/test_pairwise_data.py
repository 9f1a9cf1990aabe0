"""Frames about models that predict scores, by hand."""

import math

import numpy as np
import polars as pl

from bws.stats.estimates import Estimate
from giccs.measures.results import Group, Result
from giccs.report.setting_effects import history_pairs
from giccs_app.explorer.models import data as frames


def result(model="m", history="without", value=0.5, groups=(), **signature):
    metrics = {"spearman": Estimate(value, value - 0.1, value + 0.1, 10)}
    said = {"task": "pairwise-sts", "model": model, "history": history, "template": history}
    return Result(model, "pairwise-sts", metrics, groups, {**said, **signature}, {}, 1.0)


def test_the_leaderboard_is_best_first_and_keeps_what_has_no_number():
    undefined = result("none", value=math.nan)
    frame = frames.leaderboard(
        [
            result("bad", value=0.1),
            undefined,
            result("baseline:chance", "with", 0.3),
            result("good"),
        ],
        "spearman",
    )
    assert frame["model"].to_list() == ["good", "baseline:chance", "bad", "none"]
    assert frame["history"].to_list() == ["without", "with", "without", "without"]
    assert frame["baseline"].to_list() == [False, True, False, False]
    assert frame["low"].round(3).to_list()[:3] == [0.4, 0.2, 0.0]
    other = frames.leaderboard([result()], "pearson").row(0, named=True)
    assert math.isnan(other["value"])
    assert other["reason"] == "not computed"
    assert frames.leaderboard([], "spearman").is_empty()


def test_parts_are_the_groups_by_that_division_alone():
    estimate = {"spearman": Estimate(0.2, 0.1, 0.3, 4)}
    groups = (
        Group({"n_turns": 3}, estimate),
        Group({"n_turns": 5}, estimate),
        Group({"domain": "tv"}, estimate),
        Group({"history": "with", "n_turns": 3}, estimate),
    )
    frame = frames.subset_metrics([result(groups=groups)], "spearman", "n_turns")
    assert frame.select("part", "history", "value", "n").rows() == [
        ("3", "without", 0.2, 4),
        ("5", "without", 0.2, 4),
    ]
    assert frames.subset_metrics([result(groups=groups)], "spearman", "source").is_empty()


def test_histories_are_paired_where_all_else_is_the_same():
    with_it, without = result("a", "with"), result("a", "without")
    other, alone = result("b", "with", seed=1), result("b", "without", seed=2)
    assert history_pairs([without, other, with_it, alone]) == [(with_it, without)]
    change = {"spearman": Estimate(0.25, 0.1, 0.4, 10)}
    (row,) = frames.side_by_side([(with_it, without)], "spearman", [change]).rows(named=True)
    assert (row["model"], row["with"], row["without"], row["value"]) == ("a", 0.5, 0.5, 0.25)
    (row,) = frames.side_by_side([(with_it, without)], "spearman", [{}]).rows(named=True)
    assert (row["value"], row["reason"]) == (0.0, "no interval: not resampled")
    assert math.isnan(row["low"])


ITEMS = pl.DataFrame(
    {
        "item_id": ["a", "b", "c", "d", "e"],
        "dialogue_id": ["y", "y", "x", "x", "x"],
        "score": [0.0, 0.25, 0.5, 0.75, 1.0],
    }
)


def predictions(**values):
    return pl.DataFrame(
        {"item_id": list(values), "prediction": [float(value) for value in values.values()]}
    )


def test_predictions_are_joined_by_id_and_what_is_no_number_is_left_out():
    result = frames.join_predictions(ITEMS, predictions(e=5, c=math.nan, a=1, z=2, b=math.inf))
    assert result.select("item_id", "prediction").rows() == [
        ("a", 1.0),
        ("b", math.inf),
        ("e", 5.0),
    ]


def test_two_models_are_compared_by_ranks():
    # first ranks a b c d e as 4 1 2 3 0 of 4; second as the scores do, on another scale
    first = predictions(a=9, b=2, c=3, d=4, e=1)
    second = predictions(a=-5, b=-4, c=-3, d=-2, e=-1)
    result = frames.compare_ranks(ITEMS, first, second)
    assert result["item_id"].to_list() == ["a", "e", "b", "c", "d"]
    assert result["difference"].to_list() == [1.0, -1.0, 0.0, 0.0, 0.0]
    assert result["nearer"].to_list() == ["second", "second", "same", "same", "same"]
    turned = frames.compare_ranks(ITEMS, second, first)
    assert turned["nearer"].to_list()[:2] == ["first", "first"]


def test_cells_count_every_item_once_and_the_greatest_value_too():
    draw = np.random.default_rng(0)
    frame = pl.DataFrame({"x": draw.random(1000), "y": draw.normal(size=1000)})
    result = frames.bin_counts(frame, "x", "y", cells=7)
    counts, _, _ = np.histogram2d(frame["x"], frame["y"], bins=7)
    assert result["items"].sum() == 1000
    assert sorted(result["items"]) == sorted(counts[counts > 0].astype(int))
    flat = frames.bin_counts(pl.DataFrame({"x": [1.0, 1.0], "y": [0.0, 2.0]}), "x", "y", cells=2)
    assert flat["items"].to_list() == [1, 1]


def test_a_sample_keeps_the_order_and_is_the_same_each_time():
    frame = pl.DataFrame({"x": range(100)})
    drawn = frames.sample(frame, 10)
    assert len(drawn) == 10
    assert drawn["x"].is_sorted()
    assert drawn.equals(frames.sample(frame, 10))
    assert frames.sample(frame, 100) is frame
