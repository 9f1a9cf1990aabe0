"""What each scoring method computes, beside slow implementations straight from the formulas."""

import math
from dataclasses import replace
from itertools import combinations, permutations

import choix
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

from bws.components import finite_population_correction
from bws.files import judgments_from_records
from bws.records import Judgment, Judgments, Tuples
from bws.scoring import METHODS, choice, score, utilities
from bws.scoring.choice import best_worst_logit, bradley_terry, maxdiff, plackett_luce
from bws.scoring.counting import abw, analytical, analytical_stderr
from bws.scoring.posterior import Outcomes, Posterior
from bws.scoring.sequential import (
    MATCHES_PER_ITEM,
    _rounds,
)
from tests.nightly import nightly

MODELS = {
    "bradley-terry": bradley_terry,
    "plackett-luce": plackett_luce,
    "best-worst-logit": best_worst_logit,
    "maxdiff": maxdiff,
}


def simulated(n, k, judgments, seed=0, spread=1.0, choose=None):
    """Return judgments of random tuples of n items, and the true utilities behind them."""
    rng = np.random.default_rng(seed)
    truth = rng.normal(size=n) * spread
    truth -= truth.mean()
    members = np.array([rng.choice(n, k, replace=False) for _ in range(judgments)], dtype=np.int32)
    best, worst = (choose or by_gumbel)(truth[members], rng)
    tuples = Tuples(
        np.array([f"t{i}" for i in range(judgments)], dtype=object),
        np.array([f"i{i:04}" for i in range(n)], dtype=object),
        np.zeros(n, dtype=np.int32),
        np.array([""], dtype=object),
        members,
    )
    annotators = np.array([f"w{a}" for a in range(10)], dtype=object)
    who = rng.integers(10, size=judgments).astype(np.int32)
    rows = np.arange(judgments, dtype=np.int32)
    return Judgments(
        tuples, rows, best.astype(np.int8), worst.astype(np.int8), who, annotators
    ), truth


def by_gumbel(x, rng):
    noisy = x + rng.gumbel(size=x.shape)
    return noisy.argmax(axis=1), noisy.argmin(axis=1)


# Counts


@given(st.integers(1, 40), st.data())
def test_analytical_is_the_logit_of_its_proportion(n, data):
    best = data.draw(st.integers(0, n))
    worst = data.draw(st.integers(0, n - best))
    p = (n + best - worst) / (2 * n)
    p = {0: 1 / (4 * n), 1: 1 - 1 / (4 * n)}.get(p, p)
    counts = np.array([n]), np.array([best]), np.array([worst])
    assert analytical(*counts)[0] == pytest.approx(math.log(p / (1 - p)))
    assert analytical_stderr(*counts)[0] == pytest.approx(1 / math.sqrt(2 * n * p * (1 - p)))


@given(st.integers(1, 40), st.data())
def test_abw_is_the_log_ratio_clipped(n, data):
    best = data.draw(st.integers(0, n))
    worst = data.draw(st.integers(0, n - best))
    r = max(-0.9999, min(0.9999, (best - worst) / n))
    result = abw(np.array([n]), np.array([best]), np.array([worst]))[0]
    assert result == pytest.approx(math.log((1 + r) / (1 - r)))


def test_analytical_keeps_the_order_of_counts():
    n = 12
    balance = np.arange(-n, n + 1)
    best, worst = np.maximum(balance, 0), np.maximum(-balance, 0)
    result = analytical(np.full(len(balance), n), best, worst)
    assert (np.diff(result) > 0).all()


@pytest.mark.parametrize("method", ["analytical", "abw"])
def test_logits_of_counts_score_as_counting_but_at_the_ends(method):
    judged, _ = simulated(n=30, k=4, judgments=200)
    plain, other = score(judged).score, score(judged, method).score
    inside = np.abs(plain) < 1
    np.testing.assert_allclose(other[inside], plain[inside], atol=1e-12)


# Learning from matches


@given(st.integers(1, 40), st.integers(2, 9), st.integers(0, 99))
def test_rounds_hold_every_match_once_and_no_item_twice(number, n, seed):
    rng = np.random.default_rng(seed)
    winner = rng.integers(n, size=number)
    loser = (winner + rng.integers(1, n, size=number)) % n
    rounds = list(_rounds(winner, loser, n, rng))
    for winners, losers in rounds:
        assert len({*winners, *losers}) == 2 * len(winners)
    played = sorted(pair for w, l in rounds for pair in zip(w, l, strict=True))  # noqa: E741
    assert played == sorted(zip(winner, loser, strict=True))


class Learner:
    """An item of Hollis (2018) that plays one match after the other."""

    def __init__(self):
        self.elo, self.value, self.won, self.lost = 1000.0, 0.5, 1e-4, 1e-4

    def beats(self, loser, rate):
        expected = 1 / (1 + 10 ** ((loser.elo - self.elo) / 400))
        self.elo, loser.elo = self.elo + 30 * (1 - expected), loser.elo - 30 * (1 - expected)

        salience = 1 - odds(self.value) / (odds(self.value) + odds(loser.value))
        self.value += rate * salience * (1 - self.value)
        loser.value += rate * salience * (0 - loser.value)

        mine, other = odds(self.share()), odds(loser.share())
        salience = 1 - mine / (mine + other)
        self.won += rate * salience * (1 - (self.won + self.lost))
        loser.lost += rate * salience * (1 - (loser.won + loser.lost))

    def share(self):
        return self.won / (self.won + self.lost)


def odds(p):
    return p / (1 - p)


def stretches(winner, loser, n, rng, in_rounds):
    """Yield the matches of pass after pass as `sequential` draws them, in stretches between two means."""
    rounds = list(_rounds(winner, loser, n, rng)) if in_rounds else []
    while True:
        if in_rounds:
            indices = rng.permutation(len(rounds))
            yield [list(zip(*rounds[index], strict=True)) for index in indices]
        else:
            order = rng.permutation(len(winner))
            cuts = range(0, len(order), MATCHES_PER_ITEM * n)
            parts = (order[start : start + MATCHES_PER_ITEM * n] for start in cuts)
            yield [list(zip(winner[part], loser[part], strict=True)) for part in parts]


@pytest.mark.parametrize("passes", [1, 3, 4])
@pytest.mark.parametrize("in_rounds", [False, True])
def test_items_learn_from_one_match_after_the_other(monkeypatch, in_rounds, passes):
    monkeypatch.setattr("bws.scoring.sequential.MIN_ROUND_MATCHES", 0 if in_rounds else 32)
    records = random_records(n=7, k=4, judgments=25)
    names = sorted({item for record in records for item in record.items})
    pairs = [
        (names.index(winner), names.index(loser))
        for record in sorted(records, key=lambda r: (sorted(r.items), r.best, r.worst))
        for winner, loser in implied(record)
    ]
    winner, loser = (np.array(side) for side in zip(*pairs, strict=True))
    rng = np.random.Generator(np.random.PCG64(5))
    learners, unbeaten, beaten = [Learner() for _ in names], Learner(), Learner()
    ratings = []
    drawn = stretches(winner, loser, len(names), rng, in_rounds)
    for number, stretches_of_pass in zip(range(1, passes + 1), drawn, strict=False):
        for stretch in stretches_of_pass:
            for w, l in stretch:  # noqa: E741
                learners[w].beats(learners[l], 0.025 / number)
            if number > passes // 2:
                ratings.append([learner.elo for learner in learners])
        for item in rng.permutation(np.arange(len(names))):
            unbeaten.beats(learners[item], 0.025 / number)
            learners[item].beats(beaten, 0.025 / number)
    mean = np.mean(ratings, axis=0)
    expected = {
        "elo": mean - mean.mean() + 1000,
        "value-learning": [learner.value for learner in learners],
        "rescorla-wagner": [learner.share() for learner in learners],
    }
    judged = judgments_from_records(records)
    order = np.argsort(judged.tuples.items)
    for method, values in expected.items():
        result = utilities(judged, method, seed=5, passes=passes).utility[order]
        np.testing.assert_allclose(result, values, rtol=1e-10)


@pytest.mark.parametrize(
    ("n", "judgments", "spread"),
    [(13, 4550, 0.3), (100, 800, 1.0), *map(nightly, [(13, 4550, 1.0), (100, 800, 0.3)])],
)
def test_elo_hardly_depends_on_the_order_of_matches(n, judgments, spread):
    judged, _ = simulated(n=n, k=4, judgments=judgments, spread=spread)
    first, second = (utilities(judged, "elo", seed=seed).utility for seed in (1, 2))
    assert np.corrcoef(first, second)[0, 1] >= 0.999


def implied(record):
    """Yield (winner, loser): the best over the rest in order, then the middle over the worst."""
    middle = sorted(set(record.items) - {record.best, record.worst})
    yield from ((record.best, item) for item in [*middle, record.worst])
    yield from ((item, record.worst) for item in middle)


def random_records(n, k, judgments, seed=0):
    rng = np.random.default_rng(seed)
    for_all = [f"i{i}" for i in range(n)]
    records = []
    for number in range(judgments):
        items = tuple(rng.permutation(for_all)[:k].tolist())
        best, worst = rng.permutation(items)[:2].tolist()
        records.append(Judgment(items, best, worst, f"w{number}"))
    return records


@pytest.mark.parametrize("method", ["elo", "rescorla-wagner", "value-learning"])
def test_the_seed_decides_the_order_of_matches(method):
    judged, _ = simulated(n=30, k=4, judgments=200)
    first, again, other = (score(judged, method, seed=s, passes=5).score for s in (1, 1, 2))
    assert (first == again).all()
    assert (first != other).any()
    assert np.corrcoef(first, other)[0, 1] > 0.9


# Choice models


def chance(model, u, best, middle, worst):
    """Return the probability of an answer as the model's definition says it."""
    others = [*middle, worst]
    everyone = [best, *others]

    def first(chosen, among, sign=1):
        return math.exp(sign * u[chosen]) / sum(math.exp(sign * u[i]) for i in among)

    if model == "bradley-terry":
        pairs = [(best, i) for i in others] + [(i, worst) for i in middle]
        return math.prod(first(winner, pair) for pair in pairs for winner in pair[:1])
    if model == "plackett-luce":
        return first(best, everyone) * math.prod(first(i, (i, worst)) for i in middle)
    if model == "best-worst-logit":
        return first(best, everyone) * first(worst, others, sign=-1)
    weights = {(i, j): math.exp(u[i] - u[j]) for i, j in permutations(everyone, 2)}
    return weights[best, worst] / sum(weights.values())


def slow_log_posterior(model, records, names, prior):
    def at(u):
        total = -sum(u**2) / (2 * prior**2)
        for record in records:
            middle = [names.index(i) for i in record.items if i not in (record.best, record.worst)]
            ends = names.index(record.best), names.index(record.worst)
            total += math.log(chance(model, u, ends[0], middle, ends[1]))
        return total

    return at


def posterior_of(model, records, prior=3.0):
    outcomes = Outcomes.from_judgments(judgments_from_records(records).canonical)
    return Posterior(outcomes, MODELS[model](len(records[0].items)), prior)


@pytest.mark.parametrize("k", [2, 3, 4, 5])
@pytest.mark.parametrize("model", MODELS)
def test_log_posterior_is_that_of_the_definition(model, k):
    records = random_records(n=6, k=k, judgments=12)
    u = np.random.default_rng(1).normal(size=6) * 2
    names = [f"i{i}" for i in range(6)]
    slow = slow_log_posterior(model, records, names, 3.0)
    assert posterior_of(model, records).value(u) == pytest.approx(slow(u), rel=1e-12)


@pytest.mark.parametrize("k", [2, 3, 4, 5])
@pytest.mark.parametrize("model", MODELS)
def test_derivatives_are_finite_differences(model, k):
    posterior = posterior_of(model, random_records(n=6, k=k, judgments=12))
    u = np.random.default_rng(1).normal(size=6)
    steps = np.eye(6) * 1e-5
    slope = [(posterior.value(u + h) - posterior.value(u - h)) / 2e-5 for h in steps]
    bend = [(posterior.gradient(u - h) - posterior.gradient(u + h)) / 2e-5 for h in steps]
    np.testing.assert_allclose(posterior.gradient(u), slope, atol=1e-7)
    np.testing.assert_allclose(posterior.hessian(u).toarray(), bend, atol=1e-7)


@pytest.mark.parametrize("model", MODELS)
def test_utilities_are_where_another_optimiser_finds_them(model):
    records = random_records(n=6, k=4, judgments=20)
    names = [f"i{i}" for i in range(6)]
    slow = slow_log_posterior(model, records, names, 3.0)
    best = minimize(lambda u: -slow(u), np.zeros(6), options={"gtol": 1e-7}).x
    judged = judgments_from_records(records)
    result = utilities(judged, model, prior=3.0).utility[np.argsort(judged.tuples.items)]
    np.testing.assert_allclose(result, best, atol=1e-5)


@pytest.mark.parametrize("solve", [choix.ilsr_pairwise, choix.opt_pairwise])
def test_bradley_terry_agrees_with_choix(solve):
    judged, _ = simulated(n=20, k=4, judgments=400)
    items = judged.tuples.members[judged.tuple_of]
    pairs = [
        (row[winner], row[loser])
        for row, best, worst in zip(items, judged.best, judged.worst, strict=True)
        for winner, loser in implied(Judgment(tuple(range(4)), best, worst))
    ]
    expected = solve(20, [(int(w), int(l)) for w, l in pairs])  # noqa: E741
    result = utilities(judged, "bradley-terry", prior=1e4).utility
    np.testing.assert_allclose(result, expected - expected.mean(), atol=1e-4)


def test_plackett_luce_of_triples_agrees_with_choix_on_rankings():
    judged, _ = simulated(n=12, k=3, judgments=300)
    rows = judged.tuples.members[judged.tuple_of]
    rankings = [
        (int(row[best]), int(row[3 - best - worst]), int(row[worst]))
        for row, best, worst in zip(
            rows, judged.best.astype(int), judged.worst.astype(int), strict=True
        )
    ]
    expected = choix.opt_rankings(12, rankings)
    result = utilities(judged, "plackett-luce", prior=1e4).utility
    np.testing.assert_allclose(result, expected - expected.mean(), atol=1e-4)


@pytest.mark.parametrize("name", MODELS)
def test_only_models_without_an_order_of_choices_are_symmetric(name):
    """With best and worst exchanged, utilities change their sign, unless the best is chosen first."""
    judgments, _ = simulated(8, 4, 60)
    exchanged = replace(judgments, best=judgments.worst, worst=judgments.best)
    first, second = (utilities(each, name, prior=1.0).utility for each in (judgments, exchanged))
    is_symmetric = np.allclose(first, -second, atol=1e-6)
    assert is_symmetric == (name in ("bradley-terry", "maxdiff"))


@pytest.mark.parametrize("prior", [0.1, 3.0, 1e4])
@pytest.mark.parametrize("model", MODELS)
def test_an_item_that_always_wins_has_a_finite_utility(model, prior):
    records = [
        Judgment(items, items[0], items[-1], w)
        for items in combinations("abcdef", 4)
        for w in ("w1", "w2")
    ]
    result = utilities(judgments_from_records(records), model, prior=prior)
    assert result.converged
    assert result.notes == []
    assert np.isfinite(result.utility).all()
    assert result.utility[0] == result.utility.max()
    assert result.utility.mean() == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize("model", MODELS)
def test_sets_of_items_that_no_judgment_connects_are_named(model):
    records = [
        Judgment(("a", "b", "c"), "a", "b", group="g"),
        Judgment(("d", "e", "f"), "f", "d", group="g"),
        Judgment(("a", "b", "c"), "a", "b", group="h"),
    ]
    result = score(judgments_from_records(records), model, prior=3.0)
    assert result.notes == [
        "judgments do not connect all items of g (2 sets): scores of items in different sets of a "
        "group are not comparable (each set has mean utility 0)"
    ]
    u = utilities(judgments_from_records(records), model, prior=3.0).utility
    np.testing.assert_allclose(u.reshape(3, 3).mean(axis=1), 0, atol=1e-9)


def test_a_fit_that_does_not_converge_says_so(monkeypatch):
    monkeypatch.setattr("bws.scoring.posterior.MAX_STEPS", 2)
    judged, _ = simulated(n=10, k=4, judgments=40)
    result = utilities(judged, "bradley-terry", prior=3.0)
    assert not result.converged
    assert result.notes[0].startswith("the fit did not converge in 2 steps: the last step changed")


@pytest.mark.parametrize("method", METHODS)
def test_scores_recover_the_truth(method):
    # 100 items in 120 judgments each (3000 * 4 / 100): the noise on a utility is small beside its
    # spread of 1.
    judged, truth = simulated(n=100, k=4, judgments=3000)
    result = score(
        judged, method, **({"passes": 20} if "passes" in METHODS[method].options else {})
    )
    # One rank-based figure for all: the scores bend the utilities.
    order, expected = np.argsort(np.argsort(result.score)), np.argsort(np.argsort(truth))
    assert np.corrcoef(order, expected)[0, 1] > 0.95


def choose_by(model):
    """Return how annotators answer who follow the model: each answer drawn by its probability."""

    def choose(x, rng):
        k = x.shape[1]
        answers = list(permutations(range(k), 2))
        p = np.array(
            [
                [
                    chance(model, row, b, [i for i in range(k) if i not in (b, w)], w)
                    for b, w in answers
                ]
                for row in x
            ]
        )
        assert np.allclose(p.sum(axis=1), 1)
        drawn = (p.cumsum(axis=1) > rng.random((len(x), 1))).argmax(axis=1)
        return np.array(answers)[drawn].T

    return choose


@pytest.mark.parametrize("model", ["best-worst-logit", "maxdiff"])
def test_a_model_finds_the_utilities_that_it_was_simulated_from(model):
    judged, truth = simulated(n=12, k=4, judgments=4000, choose=choose_by(model))
    result = utilities(judged, model, prior=100.0, cluster="tuple")
    # 12 errors of standard normal size: their mean square is 1 ± sqrt(2 / 12) = 1 ± 0.4.
    errors = (result.utility - truth) / result.stderr
    assert 0.2 < np.mean(errors**2) < 2.5
    assert np.abs(result.utility - truth).max() < 0.2


@pytest.mark.parametrize("cluster", ["both", "annotator", "tuple"])
@pytest.mark.parametrize("model", MODELS)
def test_standard_errors_are_the_clustered_sandwich(model, cluster):
    records = random_records(n=6, k=4, judgments=20)
    records = [Judgment(r.items, r.best, r.worst, f"w{i % 7}") for i, r in enumerate(records)]
    records = list({(r.annotator, frozenset(r.items)): r for r in records}.values())
    judged, names = judgments_from_records(records), [f"i{i}" for i in range(6)]
    result = utilities(judged, model, cluster=cluster, prior=3.0)
    order = np.argsort(judged.tuples.items)
    u = result.utility[order]

    def slope(some):
        at = slow_log_posterior(model, some, names, prior=1e9)
        return np.array([(at(u + h) - at(u - h)) / 2e-5 for h in np.eye(6) * 1e-5])

    bread = np.linalg.inv(posterior_of(model, records).hessian(u).toarray())
    bread -= bread.mean(axis=0)

    def variance(key):
        kinds = {key(record) for record in records}
        slopes = np.array([slope([r for r in records if key(r) == kind]) for kind in kinds])
        clusters = [len({key(r) for r in records if name in r.items}) for name in names]
        corrected = np.array([count / (count - 1) for count in clusters])
        return np.diag(bread @ slopes.T @ slopes @ bread) * corrected

    def tuple_of(record):
        return frozenset(record.items)

    def cell(record):
        return record.annotator, tuple_of(record)

    expected = variance(cell if cluster == "tuple" else lambda record: record.annotator)
    if cluster != "annotator":
        left_out = finite_population_correction(judged.canonical)
        expected += left_out * np.maximum(variance(tuple_of) - variance(cell), 0)
    expected += np.diag(bread @ bread) / 3.0**2
    np.testing.assert_allclose(result.stderr[order], np.sqrt(expected), rtol=1e-5)
    assert result.stderr_method == "sandwich"


@pytest.mark.parametrize("model", MODELS)
def test_independent_judgments_have_the_inverse_hessian_of_a_likelihood(model):
    records = random_records(n=6, k=4, judgments=20)
    judged = judgments_from_records(records)
    result = utilities(judged, model, cluster="judgment", prior=3.0)
    u = result.utility[np.argsort(judged.tuples.items)]
    inverse = np.linalg.inv(posterior_of(model, records).hessian(u).toarray())
    centre = np.eye(6) - 1 / 6
    expected = np.sqrt(np.diag(centre @ inverse @ centre))[
        np.argsort(np.argsort(judged.tuples.items))
    ]
    own = model in ("best-worst-logit", "maxdiff")
    assert result.stderr_method == ("inverse Hessian" if own else "sandwich")
    assert np.allclose(result.stderr, expected) == own


def test_standard_errors_that_cannot_be_had_are_nan_with_a_reason(monkeypatch):
    records = [
        Judgment(("a", "b", "c"), "a", "c", "w1", "g"),
        Judgment(("a", "b", "c"), "a", "b", "w2", "g"),
        Judgment(("a", "b", "c"), "a", "b", "w1", "h"),
        *(
            Judgment(items, items[0], items[1], w, "i")
            for items in combinations("abcd", 3)
            for w in ("w1", "w2")
        ),
    ]
    judged = judgments_from_records(records)
    monkeypatch.setattr(choice, "MAX_STDERR_ITEMS", 3)
    result = utilities(judged, "bradley-terry", cluster="annotator", prior=3.0)
    groups = judged.tuples.groups[judged.tuples.group_of_item]
    assert np.isfinite(result.stderr[groups == "g"]).all()
    assert np.isnan(result.stderr[groups == "h"]).all()
    assert np.isnan(result.stderr[groups == "i"]).all()
    assert result.notes == [
        "no standard errors for a connected set of 4 items (limit: 3, dense "
        "matrix required); use the bootstrap",
        "no standard errors for items with a single cluster",
    ]
