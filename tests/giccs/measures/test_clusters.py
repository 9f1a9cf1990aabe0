"""Clusters above the dialogue: oracles by loops, few and unequal clusters, the test of heterogeneity."""

import math

import numpy as np
import pytest
from scipy import stats

from giccs.measures.clusters import Clusters, heterogeneity_p
from giccs.measures.comparison import (
    paired_accuracies,
    paired_correlations,
    share_over_clusters,
)
from giccs.measures.metrics import correlations, mean_over_dialogues

ITEMS = 4


def study(sizes, seed=0, shared=0.5):
    """Predictions of two models, scores and dialogues, with the domain of each dialogue."""
    rng = np.random.default_rng(seed)
    domain = np.repeat(np.arange(len(sizes)), sizes)
    n = len(domain)
    score = rng.normal(size=(n, ITEMS))
    offset = shared * rng.normal(size=len(sizes))[domain][:, None]
    first, second = (score + offset + rng.normal(size=(n, ITEMS)) for _ in range(2))
    dialogue = np.repeat(np.arange(n), ITEMS)
    return first.ravel(), second.ravel(), score.ravel(), dialogue, domain


def clusters_of(domain):
    return Clusters.named([f"d{each:02}" for each in domain], "domains")


def limits_by_loops(value, without, sizes, to_z=np.arctanh, from_z=np.tanh):
    """Jackknife-t with the effective number of clusters minus one as degrees of freedom."""
    z, g = to_z(np.array(without)), len(without)
    stderr = math.sqrt((g - 1) / g * np.sum((z - z.mean()) ** 2))
    df = np.sum(sizes) ** 2 / np.sum(np.square(sizes)) - 1
    return from_z(to_z(value) + np.array([-1, 1]) * stats.t.ppf(0.975, df) * stderr)


@pytest.mark.parametrize("sizes", [(3,) * 8, (1, 2, 3, 4, 5, 6, 12)])
def test_whole_domains_are_omitted(sizes):
    x, _, y, dialogue, domain = study(sizes)
    estimates = correlations(x, y, dialogue, clusters=clusters_of(domain))
    rows = [domain[dialogue] != each for each in range(len(sizes))]
    rho = [stats.spearmanr(x[kept], y[kept]).statistic for kept in rows]
    within = np.array([
        stats.spearmanr(x[dialogue == d], y[dialogue == d]).statistic for d in range(len(domain))
    ])  # fmt: skip
    mean = [within[domain != each].mean() for each in range(len(sizes))]
    for name, without in (("spearman", rho), ("rank_spearman", mean)):
        found = estimates[name]
        assert (found.low, found.high) == pytest.approx(
            limits_by_loops(found.value, without, sizes)
        )
        assert found.value == correlations(x, y, dialogue)[name].value
        assert found.reason == f"{len(sizes)} domains: the interval is approximate below 20"
    notes = estimates["pearson"].reason.split("; ")
    assert "too narrow if offsets differ much between domains, read ρ" in notes


def test_dialogues_as_clusters_change_nothing():
    x, second, y, dialogue, domain = study((2,) * 12)
    each = Clusters.single(len(domain))
    assert correlations(x, y, dialogue, clusters=each) == correlations(x, y, dialogue)
    assert paired_correlations(x, second, y, dialogue, clusters=each) == paired_correlations(
        x, second, y, dialogue
    )


@pytest.mark.parametrize("n_domains", [1, 2, 5])
def test_fewer_than_six_domains_are_refused_with_the_reason(n_domains):
    x, second, y, dialogue, domain = study((6,) * n_domains)
    clusters = clusters_of(domain)
    correct = np.tile([1.0, 0.0], len(domain) // 2)
    estimates = [
        *correlations(x, y, dialogue, clusters=clusters).values(),
        *paired_correlations(x, second, y, dialogue, clusters=clusters).values(),
        share_over_clusters(correct, clusters),
        paired_accuracies(correct, 1 - correct, clusters=clusters),
    ]
    for estimate in estimates:
        assert not math.isnan(estimate.value)
        assert math.isnan(estimate.low)
        assert f"{n_domains} domains: no interval, which needs 6" in estimate.reason
        assert "offsets" not in estimate.reason  # which is about the width of an interval


def test_a_paired_difference_is_that_of_domain_means_for_equal_domains():
    rng = np.random.default_rng(1)
    difference, domain = rng.normal(size=40), np.arange(40) % 8
    found = paired_accuracies(difference, np.zeros(40), clusters=clusters_of(domain))
    means = [difference[domain == each].mean() for each in range(8)]
    expected = stats.ttest_1samp(means, 0)
    assert found.extra["p"] == pytest.approx(expected.pvalue)
    assert (found.low, found.high) == pytest.approx(tuple(expected.confidence_interval()))
    assert found.extra["stderr"] == pytest.approx(stats.sem(means))
    assert (found.extra["test"], found.extra["df"]) == ("t", pytest.approx(7))


def test_a_share_has_a_wilson_interval_with_student_t():
    correct, domain = np.array([1.0, 1, 0, 1, 0, 0, 1, 1, 1, 0, 1, 1, 1, 1]), np.arange(14) % 7
    found = share_over_clusters(correct, clusters_of(domain))
    p, stderr = correct.mean(), stats.sem(correct.reshape(2, 7).mean(axis=0))
    n, t = p * (1 - p) / stderr**2, stats.t.ppf(0.975, 6)
    middle = (p + t**2 / (2 * n)) / (1 + t**2 / n)
    half = t * math.sqrt(p * (1 - p) / n + t**2 / (4 * n**2)) / (1 + t**2 / n)
    assert (found.low, found.high) == pytest.approx((middle - half, middle + half))
    equal = share_over_clusters(np.ones(14), clusters_of(domain))
    assert 0 < equal.low < equal.high == pytest.approx(1)


def test_dialogues_without_a_value_leave_their_domain():
    values, domain = np.arange(24.0), np.arange(24) % 8
    values[domain == 0] = np.nan
    found = mean_over_dialogues(values, clusters=clusters_of(domain))
    assert "7 domains: the interval is approximate" in found.reason
    assert found.n == 21


def test_the_test_of_heterogeneity_has_its_level_and_finds_differences():
    rng = np.random.default_rng(0)
    clusters = clusters_of(np.repeat(np.arange(6), [2, 3, 5, 8, 10, 12]))
    skewed = [heterogeneity_p(rng.exponential(size=40) ** 2, clusters) for _ in range(200)]
    assert np.mean(np.array(skewed) < 0.05) < 0.05 + 2 * math.sqrt(0.05 * 0.95 / 200)
    shifted = rng.normal(size=40) + 2 * clusters.of_dialogue
    assert heterogeneity_p(shifted, clusters) == 1 / 2000


@pytest.mark.parametrize("names", [["a"] * 5, ["a", "b", "c", "d", "e"]])
def test_one_domain_or_only_domains_of_one_dialogue_are_untestable(names):
    assert math.isnan(heterogeneity_p(np.arange(5.0), Clusters.named(names, "domains")))


def test_intervals_over_new_domains_cover():
    """Predictions with an offset per domain: intervals over dialogues are far too narrow."""
    hits = {"dialogues": 0, "domains": 0}
    truth = np.mean([
        correlations(*pick(study((20,) * 300, 1000 + n, 1.5)), resamples=0)["spearman"].value
        for n in range(3)
    ])  # fmt: skip
    for seed in range(150):
        *data, domain = study((12,) * 10, seed, 1.5)
        for name, clusters in (("dialogues", None), ("domains", clusters_of(domain))):
            found = correlations(*pick((*data, domain)), clusters=clusters)["spearman"]
            hits[name] += found.low <= truth <= found.high
    assert hits["dialogues"] / 150 < 0.85
    assert 0.9 < hits["domains"] / 150 < 0.99


def pick(data):
    first, _, score, dialogue, _ = data
    return first, score, dialogue
