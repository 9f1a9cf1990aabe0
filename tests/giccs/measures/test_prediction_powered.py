"""Prediction-powered correlations: people scored a part of the dialogues, a judge all of them."""

import math

import numpy as np
import pytest
from scipy import stats

from giccs.measures.clusters import Clusters
from giccs.measures.comparison import paired_correlations, share, wilson
from giccs.measures.metrics import correlations
from giccs.measures.prediction_powered import powered_accuracy, powered_correlations


def study(dialogues=60, judged=25, items=5, judge_noise=0.5, seed=0):
    """Predictions, the judge's and people's scores, and dialogues."""
    rng = np.random.default_rng(seed)
    quality = rng.normal(size=dialogues * items)
    prediction, judge, people = (
        quality + noise * rng.normal(size=len(quality)) for noise in (0.8, judge_noise, 0.3)
    )
    dialogue = np.repeat(np.arange(dialogues), items)
    return prediction, judge, np.where(dialogue < judged, people, np.nan), dialogue


def fisher_z(name, x, y, dialogue):
    """Fisher's z of a correlation by scipy."""
    if name == "rank_spearman":
        return np.arctanh(
            np.mean([stats.spearmanr(x[dialogue == d], y[dialogue == d])[0] for d in set(dialogue)])
        )
    return np.arctanh({"pearson": stats.pearsonr, "spearman": stats.spearmanr}[name](x, y)[0])


def leave_one_out(name, x, y, dialogue):
    return np.array(
        [
            fisher_z(name, x[dialogue != d], y[dialogue != d], dialogue[dialogue != d])
            for d in sorted(set(dialogue))
        ]
    )


def df_of_kurtosis(values):
    """Satterthwaite's degrees of freedom of a variance: 2 n / (kurtosis - 1), at most n - 1."""
    return min(len(values) - 1, 2 * len(values) / (stats.kurtosis(values, fisher=False) - 1))


@pytest.mark.parametrize("name", ["pearson", "spearman", "rank_spearman"])
def test_values_are_those_of_a_jackknife_by_loops(name):
    prediction, judge, people, dialogue = study(dialogues=20, judged=8)
    found = powered_correlations(prediction, judge, people, dialogue)[name]
    p, u = dialogue < 8, dialogue >= 8
    samples = [(people, p), (judge, p), (judge, u)]
    h, f, g = (fisher_z(name, prediction[s], y[s], dialogue[s]) for y, s in samples)
    of_h, of_f, of_g = (leave_one_out(name, prediction[s], y[s], dialogue[s]) for y, s in samples)
    variance = [(len(z) - 1) * z.var() for z in (of_h, of_f, of_g)]
    covariance = (len(of_h) - 1) * np.mean((of_h - of_h.mean()) * (of_f - of_f.mean()))
    weight = np.clip(covariance / (variance[1] + variance[2]), 0, 1)
    assert 0 < weight < 1
    assert found.weight == pytest.approx(weight)
    assert math.atanh(found.powered.value) == pytest.approx(h - weight * (f - g))
    n = len(
        of_h
    )  # the variance of residuals has n - 2 degrees of freedom, that of λ adds 1 / (n - 3)
    rectifier = (n - 1) * (of_h - weight * of_f).var() * (n - 1) / (n - 2) * (1 + 1 / (n - 3))
    further = weight**2 * variance[2]
    df_of_people, df_of_judge = 7, 11
    if name == "pearson":
        df_of_people, df_of_judge = (df_of_kurtosis(z) for z in (of_h - weight * of_f, of_g))
    df = (rectifier + further) ** 2 / (rectifier**2 / df_of_people + further**2 / df_of_judge)
    half = stats.t.ppf(0.975, df) * math.sqrt(rectifier + further)
    assert math.atanh(found.powered.high) == pytest.approx(h - weight * (f - g) + half)
    df_alone = df_of_kurtosis(of_h) if name == "pearson" else 7
    alone = stats.t.ppf(0.975, df_alone) * math.sqrt(variance[0])
    assert found.equivalent_dialogues == pytest.approx(8 * (alone / half) ** 2)


@pytest.mark.parametrize("name", ["pearson", "spearman", "rank_spearman"])
def test_intervals_over_domains_are_those_of_a_jackknife_by_loops(name):
    """Each domain is omitted from people's dialogues and the others at once; values stay the same."""
    data = prediction, judge, people, dialogue = study(dialogues=40, judged=20)
    domain = np.arange(40) % 8
    clusters = Clusters(domain, "domains", 6)
    over_domains = powered_correlations(*data, clusters=clusters)[name]
    over_dialogues = powered_correlations(*data)[name]
    assert over_domains.powered.value == over_dialogues.powered.value
    assert over_domains.weight == over_dialogues.weight > 0
    assert math.isnan(over_domains.equivalent_dialogues)
    by_people = dialogue < 20
    samples = [(people, by_people), (judge, by_people), (judge, ~by_people)]

    def value(is_used):
        h, f, u = (
            fisher_z(name, prediction[s & is_used], y[s & is_used], dialogue[s & is_used])
            for y, s in samples
        )
        return h - over_domains.weight * (f - u)

    values = np.array([value(domain[dialogue] != left) for left in range(8)])
    variance = 7 * values.var() * 19 / 17
    df = 20**2 / sum(n**2 for n in np.bincount(domain[:20])) - 1
    df = min(df, df_of_kurtosis(values)) if name == "pearson" else df
    half = stats.t.ppf(0.975, df) * math.sqrt(variance)
    middle = math.atanh(over_domains.powered.value)
    expected = [math.tanh(middle - half), math.tanh(middle + half)]
    assert [over_domains.powered.low, over_domains.powered.high] == pytest.approx(expected)
    assert "8 domains: the interval is approximate" in over_domains.powered.reason
    few = powered_correlations(*data, clusters=Clusters(np.arange(40) // 4, "domains", 6))[name]
    assert few.powered.reason.startswith("5 domains of people: no interval, which needs 6")
    assert math.isnan(few.powered.low)


def test_accuracies_over_domains_are_wilsons_with_the_variance_of_a_jackknife():
    rng = np.random.default_rng(0)
    domain = np.repeat(np.arange(8), 10)
    correct = (rng.random(80) < 0.4 + 0.05 * domain).astype(float)
    by_judge = np.where(rng.random(80) < 0.8, correct, 1 - correct)
    is_scored = np.arange(80) % 10 < 5
    people = np.where(is_scored, correct, np.nan)
    found, over_dialogues = (
        powered_accuracy(by_judge, people, clusters)
        for clusters in (Clusters(domain, "domains", 6), None)
    )
    assert found.powered.value == over_dialogues.powered.value
    assert found.weight == over_dialogues.weight > 0

    def value(is_used):
        h, f = (x[is_scored & is_used].mean() for x in (correct, by_judge))
        return h - found.weight * (f - by_judge[~is_scored & is_used].mean())

    values = np.array([value(domain != left) for left in range(8)])
    variance = 7 * values.var() * 39 / 37
    p, t = found.powered.value, stats.t.ppf(0.975, 7)
    expected = wilson(p * p * (1 - p) / variance, p * (1 - p) / variance, t)
    assert (found.powered.low, found.powered.high) == pytest.approx(expected)
    assert found.people.low != over_dialogues.people.low


def test_judge_and_people_alone_are_the_usual_correlations():
    prediction, judge, people, dialogue = study()
    found = powered_correlations(prediction, judge, people, dialogue)
    by_people = dialogue < 25
    alone = correlations(prediction[by_people], people[by_people], dialogue[by_people])
    everything = correlations(prediction, judge, dialogue)
    for name, each in found.items():
        assert each.people == alone[name]
        assert each.judge == everything[name]


def test_opposite_judge_changes_nothing():
    prediction, judge, people, dialogue = study(judge_noise=0.1)
    for each in powered_correlations(prediction, -judge, people, dialogue).values():
        assert each.powered.value == pytest.approx(each.people.value)
        assert each.weight == 0


def test_useless_judge_widens_intervals_by_the_estimation_of_lambda_only():
    prediction, _, people, dialogue = study()
    useless = np.random.default_rng(9).normal(size=len(people))
    for each in powered_correlations(prediction, useless, people, dialogue).values():
        width, alone = (e.high - e.low for e in (each.powered, each.people))
        assert width <= 1.02 * math.sqrt(24 / 22) * alone


def test_good_judge_saves_dialogues():
    found = powered_correlations(*study(dialogues=200, judged=40, judge_noise=0.4))
    assert all(each.equivalent_dialogues > 50 for each in found.values())


@pytest.mark.parametrize(("judged", "reason"), [(4, "of people"), (57, "of the judge alone")])
def test_too_few_dialogues_leave_people_alone(judged, reason):
    each = powered_correlations(*study(judged=judged))["pearson"]
    assert (each.powered.value, each.powered.low) == pytest.approx(
        (each.people.value, each.people.low), nan_ok=True
    )
    assert f"dialogues {reason}: no interval, which needs 5" in each.powered.reason
    assert math.isnan(each.weight)


def test_constant_judge_leaves_people_alone_with_a_reason():
    prediction, judge, people, dialogue = study()
    each = powered_correlations(prediction, np.ones_like(judge), people, dialogue)["pearson"]
    assert each.powered.value == each.people.value
    assert "undefined" in each.powered.reason


def test_dialogues_that_people_scored_in_part_are_excluded():
    prediction, judge, people, dialogue = study()
    people[0] = np.nan
    each = powered_correlations(prediction, judge, people, dialogue)["spearman"]
    assert (each.people_dialogues, each.judge_dialogues) == (24, 35)


# accuracies


def answers(dialogues=60, judged=25, seed=0):
    """Correct answers by the judge's and by people's key."""
    rng = np.random.default_rng(seed)
    people = rng.random(dialogues) < 0.6
    judge = np.where(rng.random(dialogues) < 0.8, people, rng.random(dialogues) < 0.6)
    is_scored = np.arange(dialogues) < judged
    return judge.astype(float), np.where(is_scored, people, np.nan)


def test_accuracy_minimises_the_variance_of_means():
    proportion = pytest.importorskip("statsmodels.stats.proportion")
    judge, people = answers()
    found = powered_accuracy(judge, people)
    h, f, u = people[:25], judge[:25], judge[25:]

    def variance(weight):
        return np.var(h - weight * f) / 25 + weight**2 * np.var(u) / 35

    grid = np.linspace(0, 1, 10_001)
    assert found.weight == pytest.approx(grid[np.argmin([variance(w) for w in grid])], abs=1e-4)
    assert found.powered.value == pytest.approx(h.mean() - found.weight * (f.mean() - u.mean()))
    assert found.equivalent_dialogues == pytest.approx(25 * variance(0) / variance(found.weight))
    wilson = proportion.proportion_confint(
        found.powered.value * found.equivalent_dialogues,
        found.equivalent_dialogues,
        method="wilson",
    )
    assert (found.powered.low, found.powered.high) == pytest.approx(wilson, abs=1e-4)


def test_accuracies_alone_are_shares():
    judge, people = answers()
    found = powered_accuracy(judge, people)
    for estimate, correct in ((found.judge, judge), (found.people, people[:25])):
        expected = share(correct == 1)
        assert (estimate.value, estimate.low, estimate.high, estimate.n) == pytest.approx(
            (expected.value, expected.low, expected.high, expected.n)
        )


@pytest.mark.parametrize("change", ["opposite judge", "always right"])
def test_accuracy_is_that_of_people_if_the_keys_do_not_covary(change):
    judge, people = answers()
    if change == "opposite judge":
        judge[:25] = 1 - people[:25]
    else:
        people[:25] = 1
    found = powered_accuracy(judge, people)
    assert found.weight == 0
    assert found.powered == found.people
    assert found.equivalent_dialogues == 25


@pytest.mark.parametrize(("judged", "reason"), [(4, "of people"), (57, "of the judge alone")])
def test_too_few_dialogues_leave_the_accuracy_of_people(judged, reason):
    found = powered_accuracy(*answers(judged=judged))
    assert (found.powered.value, found.powered.high) == (found.people.value, found.people.high)
    assert f"dialogues {reason}: no interval, which needs 5" in found.powered.reason
    assert math.isnan(found.weight)


def test_a_part_that_is_not_random_is_noticed():
    """People scored the dialogues in which the judge's scores are most spread, or a random part."""
    prediction, judge, people, dialogue = study(dialogues=100, judged=100)
    spread = np.array([judge[dialogue == d].std() for d in range(100)])
    selected = np.isin(dialogue, np.argsort(spread)[:30])
    found = powered_correlations(prediction, judge, np.where(selected, people, np.nan), dialogue)
    assert all(each.random_p < 1e-6 for each in found.values())
    random = np.where(dialogue < 30, people, np.nan)
    assert powered_correlations(prediction, judge, random, dialogue)["spearman"].random_p > 0.01
    correct = np.repeat([1.0, 0.0], 50)
    first = np.where(np.arange(100) < 50, correct, np.nan)
    assert math.isnan(powered_accuracy(np.ones(100), first).random_p)
    assert powered_accuracy(np.roll(correct, 5), first).random_p < 1e-6


def test_few_reversed_dialogues_of_two_items_have_a_note():
    """One in ten of the dialogues of two items is reversed; the others have five items.

    The difference from a model without reversed dialogues has the same note.
    """
    further, judge, _, of_five = study()
    for count, is_noted in ((20, True), (200, False)):
        score = np.tile([0.0, 1.0], count)
        prediction = np.abs(score - np.repeat(np.arange(count) % 10 == 0, 2))
        dialogue = np.repeat(np.arange(count), 2)
        prediction, score = (
            np.concatenate(each) for each in ((prediction, further), (score, judge))
        )
        dialogue = np.concatenate([dialogue, count + of_five])
        estimate = correlations(prediction, score, dialogue)["rank_spearman"]
        assert (f"{count} dialogues of 2 or 3 items" in estimate.reason) == is_noted
        people = np.where(dialogue % 4 == 0, score, np.nan)
        powered = powered_correlations(prediction, score, people, dialogue)["rank_spearman"]
        assert ("dialogues of 2 or 3 items" in powered.powered.reason) == is_noted
        other = np.where(dialogue < count, score, -prediction)
        difference = paired_correlations(prediction, other, score, dialogue)["rank_spearman"]
        assert (f"{count} dialogues of 2 or 3 items" in difference.reason) == is_noted
    assert correlations(further, judge, of_five)["rank_spearman"].reason == ""
