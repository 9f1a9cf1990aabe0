"""The model of anchors: derivatives, evidence and draws, beside differences, integrals, known densities."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from scipy.stats import chisquare, multivariate_normal

from bws.absolute.fit import Factor, find_mode, fit, log_determinant, moved, product
from bws.absolute.model import (
    HALF_NORMAL_SCALES,
    LAPSE_PRIOR,
    SLOPE_PRIOR_SD,
    SLOPE_SD,
    THRESHOLD_PRIOR_SD,
    Data,
    Latent,
    curvature,
    hyper_prior,
    log_density,
    start_theta,
    zero,
)
from bws.absolute.posterior import draw
from bws.absolute.sampler import sample


def study(kind, seed=0, sizes=(3, 2), people=((0, 1), (2, -1)), k=2):
    """Judgments of all k-tuples and anchors of all items, with random answers, also at the slider's ends."""
    random = np.random.default_rng(seed)
    people = np.array(people)
    d, s, largest = len(sizes), people.shape[1], max(sizes)
    choices, judges, anchors, who = [], [], [], []
    for group, size in enumerate(sizes):
        for slot in range(s):
            if people[group, slot] < 0:
                continue
            first = (group * s + slot) * largest
            choices += [first + random.permutation(c) for c in combinations(range(size), k)]
            judges += [people[group, slot]] * (len(choices) - len(judges))
            anchors += [first + item for item in range(size)]
            who += [people[group, slot]] * size
    answers = (
        random.choice([0, 0, 13, 50, 77, 100], len(anchors))
        if kind == "rating"
        else random.integers(2, size=len(anchors))
    )
    assert d * s * largest > max(anchors)
    return Data(
        np.array(sizes), people, int(people.max()) + 1, np.array(choices).T, np.array(judges),
        np.array(anchors), np.array(who), answers.astype(float), kind == "rating",
    )  # fmt: skip


def random_point(data, seed=1):
    random = np.random.default_rng(seed)
    blocks = random.normal(size=zero(data).blocks.shape)
    theta = start_theta(data) + 0.3 * random.normal(size=data.n_hyper)
    return Latent(blocks, random.normal(size=data.n_annotators)), theta, random


@pytest.mark.parametrize("kind", ["rating", "mark"])
def test_gradients_are_those_of_differences(kind):
    data = study(kind, k=2)
    x, theta, random = random_point(data)
    step, direction = 1e-5, Latent(*(random.normal(size=each.shape) for each in x))

    def value(along, theta_change):
        return log_density(data, moved(x, direction, along), theta + theta_change)[0]

    _, by_x, by_theta = log_density(data, x, theta)
    assert product(by_x, direction) == pytest.approx(
        (value(step, 0) - value(-step, 0)) / (2 * step), abs=1e-7
    )
    for index, unit in enumerate(np.eye(data.n_hyper)):
        difference = (value(0, step * unit) - value(0, -step * unit)) / (2 * step)
        assert by_theta[index] == pytest.approx(difference, abs=1e-7)


@pytest.mark.parametrize("kind", ["rating", "mark"])
@pytest.mark.parametrize("k", [2, 3])
def test_curvature_without_lapses_is_that_of_differences_of_the_gradient(kind, k):
    data = study(kind, sizes=(4, 3), k=k)
    x, theta, random = random_point(data)
    theta[data.first_lapse :] = -25
    step, direction = 1e-5, Latent(*(random.normal(size=each.shape) for each in x))
    above, below = (
        log_density(data, moved(x, direction, sign * step), theta)[1] for sign in (1, -1)
    )
    h = curvature(data, x, theta)
    product = dense(h) @ np.concatenate([direction.blocks.ravel(), direction.thresholds])
    difference = np.concatenate([
        (below.blocks - above.blocks).ravel(), below.thresholds - above.thresholds
    ]) / (2 * step)  # fmt: skip
    np.testing.assert_allclose(product, difference, atol=1e-6)


def dense(h):
    """The whole Hessian of blocks with a border."""
    blocks, border = h.blocks(), h.border()
    d, n, s = border.shape
    a = len(h.people)
    matrix = np.zeros((d * n + a, d * n + a))
    for group in range(d):
        rows = slice(group * n, (group + 1) * n)
        matrix[rows, rows] = blocks[group]
        for slot in range(s):
            column = d * n + h.annotator[group, slot]
            matrix[rows, column] += border[group, :, slot]
            matrix[column, rows] += border[group, :, slot]
    matrix[d * n :, d * n :] = h.people
    return matrix


def test_factor_is_that_of_the_whole_hessian():
    data = study("rating")
    x, theta, random = random_point(data)
    h = curvature(data, x, theta)
    factor, matrix = Factor.of(h), dense(h)
    right = Latent(*(random.normal(size=each.shape) for each in x))
    solution = factor.solve(right)
    flat = np.concatenate([right.blocks.ravel(), right.thresholds])
    np.testing.assert_allclose(
        np.concatenate([solution.blocks.ravel(), solution.thresholds]),
        np.linalg.solve(matrix, flat),
        atol=1e-10,
    )
    expected = np.linalg.slogdet(matrix).logabsdet
    assert factor.log_determinant == pytest.approx(expected)
    assert log_determinant(h) == pytest.approx(expected)


def evidence(data, theta):
    return find_mode(data, theta).log_evidence - hyper_prior(data, theta)[0]


def test_evidence_of_ratings_alone_is_a_normal_density():
    data = replace(
        study("rating"), choices=np.zeros((2, 0), int), choice_annotator=np.zeros(0, int)
    )
    data = replace(data, answers=np.clip(data.answers, 13, 77) + np.arange(len(data.answers)))
    thetas = [random_point(data, seed)[1] for seed in (1, 2)]
    for theta in thetas:
        theta[data.first_lapse :] = -25

    def exact(theta):
        # 3 logit x = beta_a (m_d + v_di + b_adi - t_a - w_ad) + epsilon: same indices, same variables
        sd = dict(zip(data.sds, np.exp(theta), strict=False))
        slope = np.exp(theta[len(data.sds) : data.first_lapse])[data.anchor_annotator]
        _, s, k = data.shape
        group, item, who = data.anchors // (s * k), data.anchors % k, data.anchor_annotator
        same_group, same_item, same_person = (each[:, None] == each for each in (group, item, who))
        covariance = same_group * (sd["offset"] ** 2 + same_item * sd["item"] ** 2)
        covariance = covariance + same_group * same_item * same_person * sd["taste"] ** 2
        covariance += same_person * sd["threshold"] ** 2 + THRESHOLD_PRIOR_SD**2
        covariance += same_group * same_person * sd["wobble"] ** 2
        covariance = np.outer(slope, slope) * covariance + np.eye(len(who)) * sd["slider"] ** 2
        return multivariate_normal(cov=covariance).logpdf(data.rating_values)

    first, second = thetas
    assert evidence(data, first) - evidence(data, second) == pytest.approx(
        exact(first) - exact(second), abs=1e-5
    )


def test_evidence_of_judgments_and_marks_is_near_the_integral():
    # Two items, one annotator, no tastes and wobbles: an integral over two utilities and a threshold.
    data = replace(study("mark", sizes=(2,), people=((0,),)), has_wobble=False)
    data = replace(
        data, choices=np.tile(data.choices, 4), choice_annotator=np.zeros(4, int),
        anchors=np.tile(data.anchors, 3), anchor_annotator=np.zeros(6, int),
        answers=np.array([1.0, 0, 1, 1, 1, 0]),
    )  # fmt: skip
    nodes, weights = np.polynomial.hermite_e.hermegauss(40)
    thetas = [np.log([0.5, 1.0, 1e-6, 0.6]), np.log([1.0, 1.8, 1e-6, 1.2])]
    thetas = [np.append(theta, -25.0) for theta in thetas]

    def integral(theta):
        offset, item, _, threshold = np.exp(theta[:4])
        m, a, b, t = np.meshgrid(
            nodes * offset,
            nodes * item,
            nodes * item,
            nodes * np.hypot(threshold, THRESHOLD_PRIOR_SD),
            indexing="ij",
        )
        u = np.stack([m + a, m + b])
        best, worst = data.choices[:, 0]
        density = (1 / (1 + np.exp(u[worst] - u[best]))) ** 4
        for place, answer in zip(data.anchors, data.answers, strict=True):
            density *= 1 / (1 + np.exp((1 - 2 * answer) * (u[place] - t)))
        return np.log(np.einsum("ijkl,i,j,k,l", density, *[weights] * 4))

    first, second = thetas
    difference = integral(first) - integral(second)
    assert abs(difference) > 0.1
    assert evidence(data, first) - evidence(data, second) == pytest.approx(difference, abs=0.05)


def test_draws_of_a_known_normal_density():
    random = np.random.default_rng(0)
    mean, root = random.normal(size=4), 0.3 * random.normal(size=(4, 4)) + np.eye(4)
    covariance = root @ root.T
    precision = np.linalg.inv(covariance)

    def density(x):
        return -(x - mean) @ precision @ (x - mean) / 2, -precision @ (x - mean)

    draws = sample(density, np.zeros(4), 4000, random)
    assert draws.divergences == 0
    np.testing.assert_allclose(draws.positions.mean(axis=0), mean, atol=0.12)
    np.testing.assert_allclose(np.cov(draws.positions.T), covariance, atol=0.25)


def drawn_from_the_prior(kind, random, sizes=(3, 3, 3), n_people=2):
    """A study with parameters and answers from the model, and the first utility and standard deviation."""
    template = study(kind, sizes=sizes, people=[range(n_people)] * len(sizes), k=3)
    scales = [HALF_NORMAL_SCALES[name] for name in template.sds]
    sd = dict(zip(template.sds, np.abs(random.normal(size=len(scales))) * scales, strict=True))
    d, s, k = template.shape
    slope = np.exp(SLOPE_PRIOR_SD * random.normal() + SLOPE_SD * random.normal(size=n_people))
    slope = slope if kind == "rating" else np.ones(n_people)
    lapse = 1 / (1 + np.exp(-LAPSE_PRIOR[0] - LAPSE_PRIOR[1] * random.normal(size=n_people)))
    u = sd["offset"] * random.normal(size=(d, 1)) + sd["item"] * random.normal(size=(d, k))
    y = (u[:, None] + sd["taste"] * random.normal(size=(d, s, k))).ravel()
    t = THRESHOLD_PRIOR_SD * random.normal() + sd["threshold"] * random.normal(size=n_people)
    w = sd["wobble"] * random.normal(size=d * s)
    choices = []
    for items, who in zip(template.choices.T, template.choice_annotator, strict=True):
        best = items[np.argmax(y[items] + random.gumbel(size=3))]
        rest = items[items != best]
        worst = rest[np.argmax(-y[rest] + random.gumbel(size=2))]
        order = [best, *rest[rest != worst], worst]
        choices.append(random.permutation(items) if random.random() < lapse[who] else order)
    who = template.anchor_annotator
    eta = y[template.anchors] - t[who] - w[template.anchor_pair]
    if kind == "rating":
        value = slope[who] * eta + sd["slider"] * random.normal(size=len(eta))
        answers, guesses = (
            np.round(100 / (1 + np.exp(-value / 3))),
            np.round(100 * random.random(len(eta))),
        )
    else:
        answers, guesses = (
            random.random(len(eta)) < 1 / (1 + np.exp(-eta)),
            random.integers(2, size=len(eta)),
        )
    answers = np.where(random.random(len(eta)) < lapse[who], guesses, answers)
    return replace(template, choices=np.array(choices).T, answers=answers.astype(float)), u, sd, t


RANKS, SIMULATIONS = 20, 100


@pytest.mark.nightly
@pytest.mark.parametrize("kind", ["rating", "mark"])
def test_ranks_of_true_values_among_draws_are_uniform(kind):
    """Simulation-based calibration (Talts et al. 2018): rank of truth from the prior among thinned draws."""
    random, ranks = np.random.default_rng(7), []
    for seed in range(SIMULATIONS):
        data, u, sd, t = drawn_from_the_prior(kind, random)
        posterior = draw(data, fit(data), 5 * (RANKS - 1), seed)
        thin = slice(None, None, 5)
        pairs = [
            (posterior.utility[thin, 0, 0], u[0, 0]),
            (posterior.utility[thin].mean(axis=(1, 2)), u.mean()),
            (posterior.thresholds[thin, 0], t[0]),
            *((posterior.sd[name][thin], sd[name]) for name in data.sds),
        ]
        ranks.append([int((values < true).sum()) for values, true in pairs])
    for column in np.array(ranks).T:
        counts = np.histogram(column, bins=5, range=(0, RANKS))[0]
        assert chisquare(counts).pvalue > 0.001, counts
