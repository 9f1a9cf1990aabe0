"""Tests of differences of scores: variances by loops, Holm by statsmodels, known priors."""

from functools import partial
from itertools import combinations

import numpy as np
import pytest
from scipy.stats import chi2

from bws import score
from bws.design import make_tuples
from bws.scoring.choice import connected_labels
from bws.scoring.clustering import cluster_judgments
from bws.scoring.counting import SMOOTHED_COUNTING, cluster_products, squared_products
from bws.scoring.methods import ErrorCovariance
from bws.scoring.pair_tests import (
    LEVEL,
    _difference_variances,
    _pooled_df,
    holm_rejected,
    moderated,
    order_counts,
)
from bws.simulation import simulate
from bws.stats.clusters import ErrorVariance

ITEMS = [f"i{n:02}" for n in range(12)]


def study(sd=1.5, annotators=6, tastes=0.5, seed=0, groups=None):
    tuples = make_tuples(ITEMS, 3, factor=2, groups=groups, seed=1)
    utility = sd * np.random.default_rng(seed).standard_normal(len(ITEMS))
    return simulate(tuples, utility, annotators, noise=1, disagreement=tastes, seed=seed)


def difference_by_loops(judgments, first, second, labels):
    """The variance between clusters of the difference of two smoothed logits, as of the smaller number."""
    influence = dict.fromkeys(labels, 0.0)
    clusters_of = {first: set(), second: set()}
    for item, sign in ((first, 1), (second, -1)):
        rows = [
            (label, (record.best == item) - (record.worst == item))
            for record, label in zip(judgments.records(), labels, strict=True)
            if item in record.items
        ]
        values = np.array([value for _, value in rows])
        s = values.sum() / (len(values) + 1)
        for label, value in rows:
            clusters_of[item].add(label)
            influence[label] += sign * (value - values.mean()) * 2 / (1 - s**2) / (len(values) + 1)
    count = min(map(len, clusters_of.values()))
    return sum(value**2 for value in influence.values()) * count / (count - 1)


def counted(canonical, clusters):
    return SMOOTHED_COUNTING.fit(canonical, clusters=clusters, seed=0)


def order_counts_of(judgments):
    canonical, clusters = judgments.canonical, cluster_judgments(judgments, "both")
    sets = connected_labels(canonical)
    return order_counts(counted(canonical, clusters), clusters, canonical.group_of, sets)


def test_variances_of_differences_are_those_of_loops():
    judgments = study()
    clusters = cluster_judgments(judgments, "annotator")
    canonical = judgments.canonical
    pairs = tuple(np.array(list(combinations(range(4), 2))).T)
    covariance = counted(canonical, clusters).covariance
    error, independent = _difference_variances(covariance, clusters, pairs)
    annotators = judgments.annotator_of.tolist()
    for a, b, variance, of_judgments in zip(*pairs, error.variance, independent, strict=True):
        names = canonical.items[a], canonical.items[b]
        assert variance == pytest.approx(difference_by_loops(judgments, *names, annotators))
        every = list(range(len(judgments)))
        assert of_judgments == pytest.approx(difference_by_loops(judgments, *names, every))
    assert (error.df == 5).all()


def test_holm_is_that_of_statsmodels_in_each_family():
    multipletests = pytest.importorskip("statsmodels.stats.multitest").multipletests
    rng = np.random.default_rng(0)
    p, family = rng.random(200) ** 4, rng.integers(0, 5, 200)
    rejected = holm_rejected(p, family)
    for number in range(5):
        expected = multipletests(p[family == number], LEVEL, "holm")[0]
        assert rejected[family == number].tolist() == expected.tolist()
    assert 0 < rejected.sum() < (p < LEVEL).sum()


@pytest.mark.parametrize("prior", [6.0, 15.0])
def test_moderation_finds_the_prior_from_which_ratios_were_drawn(prior):
    rng, n, d, common = np.random.default_rng(1), 50_000, 4.0, 1.7
    true = common * prior / chi2.rvs(prior, size=n, random_state=rng)
    ratio = true * chi2.rvs(d, size=n, random_state=rng) / d
    independent = rng.random(n) + 0.5
    error = ErrorVariance(ratio * independent, np.full(n, d))
    found = moderated(error, independent, 1e6)
    assert found.df == pytest.approx(np.full(n, prior + d), rel=0.1)
    expected = (prior * common + d * ratio) / (prior + d)
    assert found.variance / independent == pytest.approx(expected, rel=0.05)
    assert moderated(error, independent, 7.0).df == pytest.approx(np.full(n, 7.0))
    unchanged = moderated(error, independent, d)
    assert unchanged.variance == pytest.approx(error.variance)


def test_pooled_degrees_of_freedom_count_independent_differences_of_annotators():
    """Independent tastes for 12 items have many, a taste that all items share has those of the annotators."""
    judgments = study(annotators=20)
    clusters = cluster_judgments(judgments, "annotator")
    rng, known = np.random.default_rng(0), np.arange(len(ITEMS))
    tastes = rng.standard_normal((20, len(ITEMS)))
    shared = rng.standard_normal(20)[:, None] * rng.standard_normal(len(ITEMS))

    def pooled_df(values, group_of, is_compared_only):
        influence = values[clusters.rows[:, None], clusters.items]
        squared = None if is_compared_only else partial(squared_products, clusters.items, influence)
        between = partial(cluster_products, clusters.items, influence, group_of=group_of)
        return _pooled_df(ErrorCovariance(between, None, squared), clusters, known)

    for values, low, high in ((tastes, 100, 400), (shared, 19, 22)):  # 19 times 12 is 228
        one_group = pooled_df(values, np.zeros(len(ITEMS), int), is_compared_only=True)
        assert low <= one_group < high
        # Items of different groups are not compared, but annotators may differ in all in the same way.
        assert pooled_df(values, known, is_compared_only=False) == pytest.approx(one_group)


def test_equal_items_rarely_differ():
    """Annotators differ in tastes or in none; a group with a significant pair is an error."""
    errors = []
    for seed in range(100):
        judgments = study(sd=0, annotators=5, tastes=seed % 2, seed=seed)
        above, _ = order_counts_of(judgments)
        errors.append(above.any())
    assert np.mean(errors) <= LEVEL + 2 * np.sqrt(LEVEL * (1 - LEVEL) / 100)


def test_ranks_of_counting_scores_are_those_of_the_tests():
    judgments = study(sd=3, annotators=20, groups=list("ab" * 6))
    scores = score(judgments, interval="model", ranks=True)
    canonical = judgments.canonical
    above, below = order_counts_of(judgments)
    assert above.sum() == below.sum() > 10
    np.testing.assert_array_equal(scores.rank_low[canonical.origin], 1 + above)
    np.testing.assert_array_equal(scores.rank_high[canonical.origin], 6 - below)
    assert any("which hold for all pairs of a group at once" in note for note in scores.notes)
    by_bootstrap = score(judgments, bootstrap=20, ranks=True)
    np.testing.assert_array_equal(by_bootstrap.rank_low, scores.rank_low)
