"""Choice models' scores on counting's scale, beside sums over all sets of items."""

import json
import math
from itertools import combinations, permutations

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from bws.cli import score as score_command
from bws.design import make_tuples
from bws.files import write_judgments
from bws.scoring import score, utilities
from bws.scoring.choice import best_worst_logit, bradley_terry, maxdiff, plackett_luce
from bws.scoring.expected import expected_counting
from bws.simulation import simulate

MODELS = {
    "bradley-terry": bradley_terry,
    "plackett-luce": plackett_luce,
    "best-worst-logit": best_worst_logit,
    "maxdiff": maxdiff,
}


def likelihood(model, u, best, middle, worst):
    """Return the chance of an answer, up to a factor that all answers share."""

    def first(chosen, among, sign=1):
        return math.exp(sign * u[chosen]) / sum(math.exp(sign * u[i]) for i in among)

    others = [*middle, worst]
    if model == "bradley-terry":
        pairs = [(best, i) for i in others] + [(i, worst) for i in middle]
        return math.prod(first(pair[0], pair) for pair in pairs)
    if model == "plackett-luce":
        return first(best, [best, *others]) * math.prod(first(i, (i, worst)) for i in middle)
    if model == "best-worst-logit":
        return first(best, [best, *others]) * first(worst, others, sign=-1)
    return math.exp(u[best] - u[worst])


def slow_scores(model, u, k):
    balance, count = np.zeros(len(u)), np.zeros(len(u))
    for members in combinations(range(len(u)), k):
        answers = {
            (b, w): likelihood(model, u, b, [i for i in members if i not in (b, w)], w)
            for b, w in permutations(members, 2)
        }
        total = sum(answers.values())
        for (b, w), value in answers.items():
            balance[b] += value / total
            balance[w] -= value / total
        count[list(members)] += 1
    return balance / count


def one_group(u):
    return np.zeros(len(u), dtype=np.int64)


@pytest.mark.parametrize("k", [2, 3, 4])
@pytest.mark.parametrize("model", MODELS)
def test_scores_are_means_over_all_sets(model, k):
    u = np.random.default_rng(k).normal(size=6) * 2
    result = expected_counting(u, one_group(u), k, MODELS[model])
    np.testing.assert_allclose(result, slow_scores(model, u, k), atol=1e-12)


@given(st.integers(3, 12), st.integers(3, 12), st.integers(2, 3), st.integers(0, 99))
def test_scores_are_of_the_own_group_and_sum_to_zero(first, second, k, seed):
    rng = np.random.default_rng(seed)
    u, group_of = rng.normal(size=first + second) * 3, rng.permutation([0] * first + [1] * second)
    result = expected_counting(u, group_of, k, best_worst_logit)
    assert np.abs(result).max() <= 1
    for group in (0, 1):
        own = group_of == group
        assert result[own].sum() == pytest.approx(0, abs=1e-12)
        alone = expected_counting(u[own], one_group(u[own]), k, best_worst_logit)
        np.testing.assert_allclose(result[own], alone, atol=1e-12)
        assert (np.diff(alone[np.argsort(u[own])]) > 0).all()


@pytest.mark.parametrize("model", MODELS)
def test_sampled_sets_come_close_to_all_sets(model, monkeypatch):
    u = np.random.default_rng(0).normal(size=30) * 2.75
    exact = expected_counting(u, one_group(u), 4, MODELS[model])
    monkeypatch.setattr("bws.scoring.expected.MAX_EXACT_SETS", 0)
    monkeypatch.setattr("bws.scoring.expected.SAMPLED_SETS", 50_000)
    result, again, other = (
        expected_counting(u, one_group(u), 4, MODELS[model], s) for s in (1, 1, 2)
    )
    assert (result == again).all()
    assert (result != other).any()
    assert result.sum() == pytest.approx(0, abs=1e-12)
    assert np.sqrt(np.mean((result - exact) ** 2)) < 0.008
    assert (np.diff(result[np.argsort(u)]) >= 0).all()


@pytest.mark.parametrize("n", [41, 300])
def test_chance_hardly_enters_the_scores_of_large_groups(n):
    u = np.random.default_rng(0).normal(size=n) * 2.75
    first, second = (expected_counting(u, one_group(u), 4, best_worst_logit, s) for s in (1, 2))
    assert (first - second).std() / np.sqrt(2) < 0.006


def study(n=200, seed=0, annotators=4):
    design = make_tuples([f"i{i:03}" for i in range(n)], 4, factor=2, seed=seed)
    truth = np.random.default_rng(seed).normal(size=n) * 2.75
    return simulate(design, truth, annotators, noise=1.0, seed=seed), truth


@pytest.mark.parametrize("model", MODELS)
def test_scores_are_closer_to_the_truth_than_counting(model):
    judged, u = study()
    truth = expected_counting(u, one_group(u), 4, best_worst_logit, seed=9)
    counted = np.corrcoef(score(judged).score, truth)[0, 1]
    result = np.corrcoef(score(judged, model, scale="counting").score, truth)[0, 1]
    print(f"counting {counted:.3f}, {model} {result:.3f}")
    assert counted < 0.975
    assert result > 0.98


def test_scores_use_the_fitted_utilities_of_the_judgments():
    items = [f"{g}{n}" for g in "gh" for n in range(5)]
    design = make_tuples(items, 3, groups=[item[0] for item in items], count=10)
    judged = simulate(design, np.random.default_rng(0).normal(size=10), 5, noise=1.0)
    result = score(judged, "maxdiff", scale="counting")
    u = utilities(judged, "maxdiff").utility
    for group in "gh":
        own = result.groups == group
        np.testing.assert_allclose(result.score[own], slow_scores("maxdiff", u[own], 3), atol=1e-7)
    assert result.signature["scale"] == "counting"


def test_the_command_scores_on_countings_scale_or_refuses(tmp_path):
    path, output = str(tmp_path / "j.csv"), str(tmp_path / "s.csv")
    write_judgments(study(n=20, annotators=5)[0], path)

    def run(*arguments):
        return CliRunner().invoke(score_command, [path, "--quiet", *arguments])

    result = run("--method", "best-worst-logit", "--scale", "counting", "--json")
    document = json.loads(result.stdout)
    assert sum(row["score"] for row in document["scores"]) == pytest.approx(0, abs=1e-9)
    assert document["signature"]["scale"] == "counting"
    assert document["signature"]["prior_estimated"] is True
    result = run("--scale", "counting", "-o", output)
    assert result.exit_code == 2
    assert (
        "scale 'counting' needs the probabilities of a choice model, which method counting"
        in result.stderr
    )
    for intervals in (["--intervals"], ["--bootstrap", "10"]):
        result = run("--method", "maxdiff", "--scale", "counting", *intervals)
        assert result.exit_code == 2
        assert "scale 'counting' has no intervals, as a score depends" in result.stderr
