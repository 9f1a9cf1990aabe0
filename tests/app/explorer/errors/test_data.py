"""Frames about errors, by hand."""

import math

import polars as pl
import pytest

from giccs_app.explorer.errors.data import by_subset, largest, residuals

ITEMS = pl.DataFrame(
    {
        "item_id": ["a", "b", "c", "d", "e"],
        "dialogue_id": ["x", "x", "y", "y", "z"],
        "domain": ["tv", "tv", "tv", "tv", "hotel"],
        "n_turns": [3, 3, 5, 5, 3],
        "score": [0.0, 0.25, 0.5, 0.75, 1.0],
    }
)
PREDICTIONS = pl.DataFrame({"item_id": list("abcde"), "prediction": [40.0, 10, 20, 30, 0]})
# ranks by the model, of 4: a 4, b 1, c 2, d 3, e 0; by the scores: a 0, b 1, c 2, d 3, e 4


def test_the_residual_is_rank_less_rank_largest_first():
    result = residuals(ITEMS, PREDICTIONS)
    assert result["item_id"].to_list() == ["a", "e", "b", "c", "d"]
    assert result["residual"].to_list() == [1.0, -1.0, 0.0, 0.0, 0.0]
    assert residuals(ITEMS, PREDICTIONS.head(1))["residual"].to_list() == [0.0]
    assert residuals(ITEMS, PREDICTIONS.head(0)).is_empty()


def test_errors_are_kept_by_direction_domain_and_length():
    errors = residuals(ITEMS, PREDICTIONS)
    assert largest(errors)["item_id"].to_list() == ["a", "e", "b", "c", "d"]
    assert largest(errors, "high")["item_id"].to_list() == ["a"]
    assert largest(errors, "low")["item_id"].to_list() == ["e"]
    assert largest(errors, domains=["hotel"])["item_id"].to_list() == ["e"]
    assert largest(errors, "both", ["tv"], [5])["item_id"].to_list() == ["c", "d"]
    assert largest(errors, "high", lengths=[5]).is_empty()


def test_parts_are_means_over_dialogues():
    errors = residuals(ITEMS, PREDICTIONS)
    tv, hotel = by_subset(errors, "domain").sort("part", descending=True).rows(named=True)
    # tv: dialogue x has (1 + 0) / 2, y has 0: 0.25; its residuals are 1, 0, 0, 0
    assert (tv["part"], tv["value"], tv["bias"], tv["n"], tv["items"]) == ("tv", 0.25, 0.25, 2, 4)
    assert math.isnan(tv["low"])
    assert tv["reason"] == "2 dialogues: no interval, which needs 5"
    assert (hotel["value"], hotel["bias"], hotel["items"]) == (1.0, -1.0, 1)
    assert hotel["reason"] == "1 dialogues: no interval, which needs 5"
    assert by_subset(errors, "domain")["part"].to_list() == ["hotel", "tv"]
    assert by_subset(errors, "n_turns")["part"].to_list() == ["3", "5"]


def test_ranks_at_random_are_off_by_a_third():
    import numpy as np

    n = 20_000
    items = pl.DataFrame(
        {
            "item_id": [str(i) for i in range(n)],
            "dialogue_id": [str(i // 5) for i in range(n)],
            "domain": "one",
            "score": np.random.default_rng(0).random(n),
        }
    )
    chance = items.select("item_id", prediction=np.random.default_rng(1).random(n))
    (result,) = by_subset(residuals(items, chance), "domain").rows(named=True)
    assert result["value"] == pytest.approx(1 / 3, abs=0.01)
    assert result["bias"] == pytest.approx(0, abs=1e-12)
