"""People's judgments saved by a model: planned, simulated, and from a pilot study."""

import json
import math

import numpy as np
import pytest
from click.testing import CliRunner

import bws
from bws.cli import simulate as simulate_command
from bws.design import make_tuples
from bws.model_savings import SHARES, pilot_savings, planned_savings, simulated_savings
from bws.scoring import score
from bws.scoring.prediction_powered import mean_width, prediction_powered_scores
from bws.simulation import correlated_scores, simulate, simulate_model

from .model_judgments import design, study


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


def test_judgments_of_the_table_are_whole_and_enough():
    plan = planned_savings(1000, reliability=0.9, score_correlation=0.8, within_correlation=0.31)
    for share, row in zip(SHARES, plan.result_table().rows, strict=True):
        exact = (plan.powered(share), plan.pooled(share))
        assert (row[1], row[3]) == tuple(math.ceil(number - 1e-6) for number in exact)
        assert row[1] < 1000 or share == 1
    assert any(plan.powered(share) % 1 < 0.5 for share in SHARES)


def test_few_items_have_a_reason():
    found = pilot_savings(*study(model_noise=0.6, items=9, annotators=6))
    assert found.reason.startswith("fewer than 10 items with intervals")


# simulated


@pytest.mark.parametrize("groups", [1, 5])
@pytest.mark.parametrize("correlation", [0.0, 0.8, 0.99])
def test_simulated_scores_have_the_correlation_within_groups(groups, correlation):
    tuples, truth = design(groups)
    truth = truth + 10 * tuples.group_of_item  # Differences between groups are without effect.
    scores = correlated_scores(tuples, truth, correlation, seed=1)
    within = truth - [truth[tuples.group_of_item == g].mean() for g in tuples.group_of_item]
    assert np.corrcoef(scores, within)[0, 1] == pytest.approx(correlation, abs=1e-12)
    assert np.bincount(tuples.group_of_item, scores) == pytest.approx(0, abs=1e-9)
    assert not np.allclose(scores, correlated_scores(tuples, truth, correlation, seed=2))


@pytest.mark.parametrize(
    ("items", "truth", "correlation", "problem"),
    [
        ("abcd", [0, 1, 2, 3], 1.0, "the correlation of the model is 1.0; expected a number from"),
        ("abcd", [1, 1, 1, 1], 0.5, "the true scores of the items of a group are equal"),
        ("ab", [0, 1], 0.5, "2 items; expected at least three"),
    ],
)
def test_impossible_models_are_refused(items, truth, correlation, problem):
    tuples = make_tuples(list(items), 2, count=1)
    with pytest.raises(ValueError, match=problem):
        simulate_model(tuples, np.array(truth, dtype=float), correlation)


def test_simulated_savings_are_those_of_the_formula():
    """The formula has the reliability and the correlation; the simulation estimates the error ratio."""
    tuples, truth = design(items=80)
    found = [
        simulated_savings(simulate(tuples, truth, 6, noise=0.4, seed=s), truth, 0.7, seed=s)
        for s in range(8)
    ]
    planned = [
        planned_savings(480, reliability=each.reliability, score_correlation=0.7).error_ratio
        for each in found
    ]
    assert np.mean([each.error_ratio for each in found]) == pytest.approx(np.mean(planned), rel=0.1)


def test_simulated_savings_are_those_of_the_intervals():
    """People judge half of the tuples: the squared width relative to theirs alone is that of the plan."""
    expected, actual = [], []
    for seed in range(6):
        tuples = make_tuples([f"{n:02}" for n in range(60)], 4, factor=4, seed=seed)
        truth = np.linspace(-1, 1, 60)[tuples.items.astype(int)]
        people = simulate(tuples, truth, 8, noise=0.4, seed=seed)
        half = people.select(people.tuple_of % 2 == 0)
        plan = simulated_savings(half, truth, 0.9, seed=seed)
        model = simulate_model(tuples, truth, 0.9, seed=seed)
        powered = prediction_powered_scores(half, model)
        alone = score(half, interval="model")
        expected.append(plan.powered(0.5) / plan.judgments)
        actual.append((mean_width(powered) / mean_width(alone)) ** 2)
    assert np.mean(expected) < 0.9
    assert np.mean(actual) == pytest.approx(np.mean(expected), abs=0.04)


def planned(tmp_path, *arguments):
    items = [f"i{n:02}" for n in range(20)]
    bws.write_tuples(make_tuples(items, 4), tmp_path / "tuples.csv")
    rows = [f"{item},{n / 10 - 1}" for n, item in enumerate(items)]
    (tmp_path / "truth.csv").write_text("\n".join(["item,score", *rows]), "utf-8")
    files = [tmp_path / "tuples.csv", "--truth", tmp_path / "truth.csv"]
    done = CliRunner().invoke(simulate_command, [*map(str, [*files, *arguments])])
    assert done.exit_code == 0, done.output
    return done


def test_the_command_plans_without_changing_the_judgments(tmp_path):
    settings = ("--annotators", 6, "--noise", 0.4, "--seed", 3)
    alone = planned(tmp_path, *settings)
    with_model = planned(tmp_path, *settings, "--model-correlation", 0.8)
    assert with_model.stdout == alone.stdout
    assert "saving" in with_model.stderr
    assert "saving" not in alone.stderr
    output = tmp_path / "judgments.csv"
    written = planned(tmp_path, *settings, "--model-correlation", 0.8, "-o", output)
    assert output.read_text("utf-8") == alone.stdout
    row = next(line for line in written.stdout.splitlines() if line.split()[:1] == ["100"])
    assert row.split()[2:5] == ["240", "0", "%"]
    document = json.loads(
        planned(tmp_path, *settings, "--model-correlation", 0.8, "-o", output, "--json").stdout
    )
    tuples = bws.read_tuples(tmp_path / "tuples.csv")
    truth = np.array([int(item[1:]) / 10 - 1 for item in tuples.items])
    people = simulate(tuples, truth, 6, noise=0.4, seed=3)
    expected = simulated_savings(people, truth, 0.8, seed=3).document()
    assert document["savings"] == expected
    assert document["model_correlation"] == 0.8


def test_the_command_says_why_savings_are_unknown(tmp_path):
    done = planned(tmp_path, "--annotators", 3, "--model-correlation", 0.8)
    assert "savings unknown: 3 annotators: no interval" in done.stderr
