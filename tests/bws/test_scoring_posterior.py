"""The prior's standard deviation by its evidence, beside integrals and dense matrices."""

from itertools import permutations

import numpy as np
import pytest

from bws.design import make_tuples
from bws.files import judgments_from_records
from bws.records import Judgment
from bws.scoring import score, utilities
from bws.scoring.choice import (
    best_worst_logit,
    bradley_terry,
    connected_labels,
    maxdiff,
    plackett_luce,
)
from bws.scoring.posterior import (
    PRIOR_RANGE,
    Outcomes,
    Posterior,
    _likelihood_weight,
    estimate_prior,
    log_evidence,
    maximize,
)
from bws.simulation import simulate

MODELS = {
    "bradley-terry": bradley_terry,
    "plackett-luce": plackett_luce,
    "best-worst-logit": best_worst_logit,
    "maxdiff": maxdiff,
}


def study(n=40, sd=1.0, seed=0, annotators=4, factor=2):
    """Return judgments by the sequential logit, and the utilities behind them."""
    design = make_tuples([f"i{i:03}" for i in range(n)], 4, factor=factor, seed=seed)
    truth = np.random.default_rng(seed).normal(size=n) * sd
    return simulate(design, truth, annotators, noise=1.0, seed=seed), truth


def parts(judgments, model):
    answers = judgments.canonical
    posterior = Posterior(Outcomes.from_judgments(answers), MODELS[model](answers.k), 1.0)
    return posterior, connected_labels(answers)


def dense_evidence(posterior, prior):
    """Return log Z(prior) - log Z(0) with NumPy alone."""
    trial = posterior.with_prior(prior)
    u = maximize(trial).utility
    determinant = np.linalg.slogdet(trial.hessian(u).toarray())[1]
    weight = _likelihood_weight(posterior.stages)
    gain = weight * (trial.value(u) - trial.value(np.zeros(len(u))))
    return gain - len(u) * np.log(prior) - determinant / 2


@pytest.mark.parametrize("sd", [0.3, 1.0, 2.75])
@pytest.mark.parametrize("model", MODELS)
def test_no_prior_has_more_evidence_than_the_estimate(model, sd):
    posterior, label = parts(study(sd=sd)[0], model)
    grid = np.exp(np.linspace(*np.log(PRIOR_RANGE), 24))
    evidence = [dense_evidence(posterior, prior) for prior in grid]
    result, near = estimate_prior(posterior, label)
    if not result:  # as for two models at the smallest scale
        assert (sd, max(evidence) <= 0) == (0.3, True)
        return
    assert dense_evidence(posterior, result) > max(evidence) - 0.02
    exact = maximize(posterior.with_prior(result)).utility
    assert np.abs(near - exact).max() < 0.1


def test_evidence_is_close_to_the_integral():
    names = "abc"
    records = [Judgment(tuple(names), *p[:2]) for p in list(permutations(names))[:3] * 4]
    posterior, label = parts(judgments_from_records(records), "best-worst-logit")
    nodes, weights = np.polynomial.hermite_e.hermegauss(18)
    points = np.stack(np.meshgrid(*[nodes] * 3), axis=-1).reshape(-1, 3)
    share = np.prod(np.stack(np.meshgrid(*[weights] * 3), axis=-1).reshape(-1, 3), axis=1)
    flat = posterior.with_prior(np.inf)  # its value is the log-likelihood
    for prior in (0.1, 0.5, 1.0, 2.0):
        values = np.exp([flat.value(point) for point in points * prior])
        integral = np.log(share @ values / share.sum())
        trial = posterior.with_prior(prior)
        result = log_evidence(trial, maximize(trial).utility, label)
        assert result == pytest.approx(integral, abs=0.15)


def test_determinants_of_blocks_and_of_random_vectors(monkeypatch):
    items = [f"i{i:03}" for i in range(90)]
    design = make_tuples(items, 3, groups=[f"g{min(i // 6, 9)}" for i in range(90)], factor=2)
    judged = simulate(design, np.random.default_rng(0).normal(size=90), 3, noise=1.0)
    for judgments, monkey in ((judged, False), (study(n=300)[0], True)):
        posterior, label = parts(judgments, "best-worst-logit")
        assert len(label) <= 300
        monkeypatch.setattr("bws.scoring.posterior.MAX_DENSE_ITEMS", 1 if monkey else 200)
        u = maximize(posterior).utility
        determinant = np.linalg.slogdet(posterior.hessian(u).toarray())[1]
        result = -2 * (log_evidence(posterior, u, label) - posterior.value(u))
        assert result == pytest.approx(determinant, abs=10 if monkey else 1e-8)
        if monkey:
            estimate = estimate_prior(posterior, label)[0]
            monkeypatch.setattr("bws.scoring.posterior.MAX_DENSE_ITEMS", 300)
            assert estimate == pytest.approx(estimate_prior(posterior, label)[0], rel=0.02)


@pytest.mark.parametrize(("model", "k", "weight"), [
    ("best-worst-logit", 5, 1), ("maxdiff", 5, 1), ("plackett-luce", 3, 1),
    ("bradley-terry", 2, 1), ("bradley-terry", 4, 5 / 9), ("plackett-luce", 4, 7 / 9),
])  # fmt: skip
def test_comparisons_of_one_answer_count_as_one_answer(model, k, weight):
    assert _likelihood_weight(MODELS[model](k)) == pytest.approx(weight)


@pytest.mark.parametrize("model", ["best-worst-logit", "maxdiff"])
def test_the_estimate_is_the_scale_of_the_utilities(model):
    for sd in (0.5, 1.0, 2.0):
        result = [
            score(study(n=80, sd=sd, seed=seed)[0], model).signature["prior"] for seed in range(5)
        ]
        assert np.mean(result) == pytest.approx(sd, rel=0.2)


def test_the_signature_has_the_estimate_and_the_estimate_gives_the_same_scores():
    judged, _ = study()
    result = score(judged, "best-worst-logit", bootstrap=5)
    prior = result.signature["prior"]
    assert result.signature["prior_estimated"] is True
    assert 0.5 < prior < 2
    again = score(judged, "best-worst-logit", bootstrap=5, prior=prior)
    assert again.signature["prior_estimated"] is False
    np.testing.assert_allclose(again.score, result.score, atol=1e-8)
    np.testing.assert_allclose(again.low, result.low, atol=1e-8)
    assert utilities(judged, "best-worst-logit").estimated == {"prior": prior}
    assert "prior_estimated" not in score(judged).signature


@pytest.mark.parametrize(
    "options", [{}, {"bootstrap": 9}, {"interval": "model"}, {"scale": "counting"}]
)
@pytest.mark.parametrize("model", MODELS)
def test_judgments_without_signal_say_so(model, options):
    answers = enumerate(permutations("abcd", 2))
    judged = judgments_from_records([Judgment(tuple("abcd"), *a, f"w{n}") for n, a in answers])
    result = score(judged, model, **options)
    assert result.score.tolist() == pytest.approx([0] * 4, abs=1e-12)
    assert result.signature["prior"] == 0
    assert result.notes[0].startswith("the judgments contain no signal: the estimated")
    if options.keys() & {"bootstrap", "interval"}:
        assert np.isnan([result.low, result.high]).all()
    assert np.isnan(utilities(judged, model, cluster="annotator").stderr).all()


def claim(judgments, truth, rng, **options):
    """Return the correlation with the truth that the fit expects of its utilities, and the real one."""
    posterior, label = parts(judgments, "best-worst-logit")
    prior = options.get("prior") or estimate_prior(posterior, label)[0]
    if not prior:
        return 0.0, 0.0, prior
    trial = posterior.with_prior(prior)
    u = maximize(trial).utility
    root = np.linalg.cholesky(np.linalg.inv(trial.hessian(u).toarray()))
    draws = u[:, np.newaxis] + root @ rng.normal(size=(len(u), 200))
    expected = np.mean([np.corrcoef(u, draw)[0, 1] for draw in draws.T])
    return expected, np.corrcoef(u, truth)[0, 1], prior


def test_little_signal_is_not_taken_for_much():
    rng = np.random.default_rng(1)
    studies = [study(n=100, sd=0.3, seed=seed) for seed in range(12)]
    fixed, real, _ = np.mean([claim(*s, rng, prior=3.0) for s in studies], axis=0)
    assert fixed - real > 0.1
    estimated, real, prior = np.mean([claim(*s, rng) for s in studies], axis=0)
    print(f"{estimated:.3f} {real:.3f}; fixed {fixed:.3f}")
    assert abs(estimated - real) < 0.05
    assert prior == pytest.approx(0.3, abs=0.05)


def test_no_signal_is_hardly_taken_for_any():
    rng = np.random.default_rng(1)
    nothing = [study(n=100, sd=0.0, seed=seed) for seed in range(8)]
    truth = rng.normal(size=100)
    assert np.mean([claim(judged, truth, rng)[0] for judged, _ in nothing]) < 0.3
    assert np.mean([claim(judged, truth, rng, prior=3.0)[0] for judged, _ in nothing]) > 0.7
