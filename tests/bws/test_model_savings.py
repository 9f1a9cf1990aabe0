"""People's judgments saved by a model: planned, and from a pilot study."""

import numpy as np
import pytest

from bws.model_savings import SHARES, pilot_savings, planned_savings
from bws.scoring import score
from bws.scoring.prediction_powered import mean_width, prediction_powered_scores

from .model_judgments import study


def test_plan_is_that_of_the_variances():
    judgments, reliability, r, within = 500, 0.8, 0.7, 0.3
    plan = planned_savings(
        judgments, reliability=reliability, score_correlation=r, within_correlation=within
    )
    true = 1.0
    error = true * (1 - reliability) / reliability
    residual = true * (1 - r**2)
    for share in SHARES:
        factor = 1 - within**2 * (1 - share)
        assert error * judgments / plan.powered(share) * factor == pytest.approx(error)
        with_fewer = error * judgments / plan.pooled(share) * factor
        assert with_fewer * residual / (with_fewer + residual) == pytest.approx(error)


def test_acceptance_of_a_judge_that_correlates_by_08():
    for reliability in (0.7, 0.8, 0.9):
        plan = planned_savings(1000, reliability=reliability, score_correlation=0.8)
        assert not plan.pooled(1.0) > 750


def test_useless_model_explains_nothing_within_items():
    plan = planned_savings(100, reliability=0.9, score_correlation=0.0)
    assert [plan.powered(share) for share in SHARES] == [100] * len(SHARES)


@pytest.mark.parametrize(
    "change",
    [{"reliability": 1}, {"score_correlation": 1}, {"within_correlation": -0.1}, {"judgments": 0}],
)
def test_numbers_out_of_range_are_refused(change):
    settings = {"judgments": 10, "reliability": 0.9, "score_correlation": 0.8} | change
    with pytest.raises(ValueError, match=f"{next(iter(change))} is"):
        planned_savings(settings.pop("judgments"), **settings)


def test_pilot_predicts_the_width_of_pooled_scores():
    people, models = study(model_noise=0.6, runs=3, items=30, annotators=6)
    found = pilot_savings(people, models)
    assert 0 <= found.explained < 1
    pooled = prediction_powered_scores(people, models, pool=True)
    variance = (mean_width(pooled) / 2 / 1.96) ** 2
    alone = (mean_width(score(people, interval="model")) / 2 / 1.96) ** 2
    assert variance < alone
    assert found.pooled(1.0) < found.judgments or np.isnan(found.pooled(1.0))


def test_predictions_explain_nothing_if_people_judged_all_possible_tuples():
    people, models = study(model_noise=0.6, groups=12, items=5, k=3, annotators=6)
    assert len(people.tuples) == 12 * 10
    found = pilot_savings(people, models)
    assert found.explained == 0
    assert found.powered(0.1) == found.judgments


def test_pilot_without_intervals_has_a_reason():
    found = pilot_savings(*study(model_noise=0.6, annotators=3))
    assert "3 annotators: no interval" in found.reason
    table = found.result_table()
    assert all(np.isnan(row[1]) for row in table.rows)
    assert table.notes == [f"savings unknown: {found.reason}"]
    assert found.document()["explained"] is found.explained


def test_few_items_have_a_reason():
    found = pilot_savings(*study(model_noise=0.6, items=9, annotators=6))
    assert found.reason.startswith("fewer than 10 items with intervals")
