"""Items by error: ranks in their set, wrong labels, ranks of true answers."""

import math

import polars as pl
import pytest

from giccs.report.item_errors import item_errors
from giccs.tasks import METRICS, ResultKind, open_tasks, result_kind, task_names


def test_ranks_are_those_within_the_set():
    table = pl.DataFrame(
        {
            "set": ["a", "a", "a", "b", "b", "c"],
            "prediction": [10.0, 20.0, 30.0, 0.2, 0.1, 5.0],
            "label": [3.0, 2.0, 1.0, 0.0, 9.0, 1.0],
        }
    )
    errors = item_errors(table, METRICS)
    # set a: 0, 1/2, 1 minus 1, 1/2, 0; set b: 1, 0 minus 0, 1; c: alone
    assert errors.measure == "rank_difference"
    assert errors.table.select("set", "error").rows() == [
        ("a", -1.0), ("a", 1.0), ("b", 1.0), ("b", -1.0), ("a", 0.0), ("c", 0.0),
    ]  # fmt: skip


def test_items_without_values_are_counted():
    table = pl.DataFrame({"prediction": [0.1, math.nan, None, 0.5], "label": [1, 2, 4, None]})
    errors = item_errors(table, METRICS)
    assert errors.n_missing == 3
    assert errors.table.rows() == [(0.0, 0.1, 1)]


def test_labels_are_right_or_wrong():
    table = pl.DataFrame({"prediction": ["x", "y", None], "label": ["x", "x", "x"]})
    errors = item_errors(table, METRICS)
    assert (errors.measure, errors.n_missing) == ("wrong", 1)
    assert errors.table.rows() == [(1, "y", "x"), (0, "x", "x")]


def test_ranks_of_answers():
    table = pl.DataFrame({"anchor": ["a", "b", "c"], "rank": [1, None, 7]})
    errors = item_errors(table, ResultKind("metrics", item_columns=("rank", "")))
    assert (errors.measure, errors.n_missing) == ("rank", 1)
    assert errors.table.rows() == [(7, "c", 7), (1, "a", 1)]


def test_other_predictions_and_none_have_no_errors():
    assert item_errors(pl.DataFrame({"value": [1.0]}), METRICS) is None
    empty = pl.DataFrame(schema={"prediction": pl.Float64, "label": pl.Int64})
    assert item_errors(empty, METRICS).table.is_empty()


@pytest.mark.parametrize("name", [n for n in task_names() if result_kind(n).tables == "metrics"])
def test_tasks_open_with_their_kind_of_results(name):
    assert open_tasks(name)[0].name == name
    assert len(result_kind(name).item_columns) == 2
