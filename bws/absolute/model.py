r"""The model of judgments and anchors, as a log density with its derivatives.

The utility of candidate i of group d is u_di = m_d + v_di with m_d ~ N(0, sigma_m^2), v_di ~ N(0, sigma_v^2).
Annotator a perceives y_adi = u_di + b_adi with a taste b_adi ~ N(0, sigma_b^2), and answers an anchor by
eta_adi = y_adi - t_a - w_ad, with a threshold t_a ~ N(t, sigma_t^2) and its wobble w_ad ~ N(0, sigma_w^2).

- judgment: (1 - lambda_a) times the sequential best-worst logit of y, plus lambda_a / (K (K - 1));
- rating x in (0, 1): 3 logit x = beta_a eta + epsilon, epsilon ~ N(0, sigma_e^2), where
  log beta_a ~ N(log beta, sigma_s^2), sigma_s = 0.2. Answers are whole numbers from 0 to 100, and those at
  the ends are censored; with probability lambda_a the answer is uniform;
- mark: (1 - lambda_a) logistic(eta) + lambda_a / 2.

Latent variables are `Latent.blocks` (u, b / sigma_b and w / sigma_w of each group) and `Latent.thresholds`.
Hyperparameters are a vector: logarithms of the standard deviations `Data.sds`, log beta_a (of ratings), and
logits of lambda_a. Slopes are among them because the utilities, of which there are many, have their joint
mode with slopes at too small a scale.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, log_ndtr

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

HALF_NORMAL_SCALES = {
    "offset": 5.0, "item": 5.0, "taste": 1.0, "wobble": 1.0, "threshold": 3.0, "slider": 3.0,
}  # fmt: skip
"""Scales of the half-normal priors of the standard deviations."""
SLOPE_SD = 0.2
"""Standard deviation sigma_s of the logarithms of annotators' slopes: most are within 2/3 and 3/2 of beta."""
LAPSE_PRIOR = (-4.0, 1.5)
"""Mean and standard deviation of the normal prior of logit lambda_a: 1.8 %, at most 25 % for nearly all."""
THRESHOLD_PRIOR_SD = 5.0
"""Standard deviation of the normal prior of t."""
SLOPE_PRIOR_SD = 1.0
"""Standard deviation of the normal prior of log beta."""
RATING_SCALE = 3.0
"""The slider's unit: 3 logit x."""
LOG_2_PI = math.log(2 * math.pi)


@dataclass(frozen=True, eq=False)
class Data:
    """Judgments and anchors as arrays: D groups of at most K items, S annotators of a group, A annotators.

    A perceived utility y has the index (d S + s) K + i: group, place of the annotator in the group, place of
    the item in the group.
    """

    sizes: Integers
    """(D,) number of items of each group."""
    annotator_of_slot: Integers
    """(D, S) annotator of each place; -1 for unused places."""
    n_annotators: int
    choices: Integers
    """(k, J) indices of perceived utilities: the best item first, the worst last."""
    choice_annotator: Integers
    """(J,)"""
    anchors: Integers
    """(M,) indices of perceived utilities."""
    anchor_annotator: Integers
    """(M,)"""
    answers: Floats
    """(M,) answers from 0 to 100, or 0 and 1 for marks."""
    is_rating: bool
    has_wobble: bool = True
    """Whether the wobble of a threshold can be distinguished from slider noise."""

    @property
    def shape(self) -> tuple[int, int, int]:
        """(D, S, K)"""
        return (*self.annotator_of_slot.shape, int(self.sizes.max()))

    @cached_property
    def sds(self) -> tuple[str, ...]:
        """Names of the standard deviations that are estimated."""
        left_out = {"slider": not self.is_rating, "wobble": not self.has_wobble}
        return tuple(name for name in HALF_NORMAL_SCALES if not left_out.get(name))

    @property
    def n_hyper(self) -> int:
        """Number of hyperparameters."""
        return self.first_lapse + self.n_annotators

    @property
    def first_lapse(self) -> int:
        """Index of the first lapse rate; log slopes, if there are any, are before it."""
        return len(self.sds) + self.n_annotators * self.is_rating

    @property
    def block_size(self) -> int:
        """Number of latent variables of a group."""
        _, s, k = self.shape
        return k + s * (k + 1)

    @cached_property
    def anchor_pair(self) -> Integers:
        """(M,) index d S + s of the group and the place of the annotator."""
        return self.anchors // self.shape[2]

    @cached_property
    def has_item(self) -> NDArray[np.bool_]:
        """(D, K)"""
        return np.arange(self.shape[2]) < self.sizes[:, None]

    @cached_property
    def is_annotator(self) -> NDArray[np.bool_]:
        """(1, A)"""
        return np.ones((1, self.n_annotators), dtype=bool)

    @cached_property
    def answered(self) -> NDArray[np.bool_]:
        """(A,) whether an annotator has anchors."""
        return np.bincount(self.anchor_annotator, minlength=self.n_annotators) > 0

    @cached_property
    def rating_values(self) -> Floats:
        """(M,) 3 logit x; the limit of the bin for answers 0 and 100."""
        return RATING_SCALE * _logit(np.clip(self.answers, 0.5, 99.5) / 100)

    @cached_property
    def log_bin_width(self) -> Floats:
        """(M,) logarithm of the width of an answer's bin on the scale of 3 logit x."""
        x = np.clip(self.answers, 0.5, 99.5) / 100
        return np.log(RATING_SCALE / (100 * x * (1 - x)))

    @cached_property
    def end(self) -> Integers:
        """(M,) -1 for the answer 0, 1 for the answer 100, else 0."""
        return np.where(self.answers <= 0, -1, np.where(self.answers >= 100, 1, 0))


class Latent(NamedTuple):
    """Values of the latent variables, or a gradient with respect to them."""

    blocks: Floats
    """(D, K + S (K + 1)): u of the items; b / sigma_b by annotator and item; w / sigma_w by annotator."""
    thresholds: Floats
    """(A,)"""


class Hyper(NamedTuple):
    """Standard deviations by name, (A,) slopes, and (A,) lapse rates."""

    sd: dict[str, float]
    slope: Floats
    lapse: Floats


def hyper(data: Data, theta: Floats) -> Hyper:
    """Return the hyperparameters of a vector."""
    sd = dict.fromkeys(HALF_NORMAL_SCALES, 0.0)
    sd |= dict(zip(data.sds, np.exp(theta[: len(data.sds)]).tolist(), strict=True))
    slopes, lapses = theta[len(data.sds) : data.first_lapse], theta[data.first_lapse :]
    return Hyper(
        sd, np.exp(slopes) if data.is_rating else np.ones(data.n_annotators), expit(lapses)
    )


def start_theta(data: Data) -> Floats:
    """Return plausible hyperparameters, from which the fit starts."""
    start = {
        "offset": 1.5, "item": 2.0, "taste": 0.7, "wobble": 0.6, "threshold": 1.0, "slider": 2.0,
    }  # fmt: skip
    sds = [math.log(start[name]) for name in data.sds]
    return np.concatenate(
        [sds, np.zeros(data.first_lapse - len(sds)), np.full(data.n_annotators, -3.5)]
    )


def zero(data: Data) -> Latent:
    """Return latent variables of 0."""
    return Latent(np.zeros((data.shape[0], data.block_size)), np.zeros(data.n_annotators))


@dataclass(frozen=True, eq=False)
class _Parts:
    """Latent variables by kind, and what follows from them."""

    u: Floats
    """(D, K)"""
    b: Floats
    """(D, S, K) standardised."""
    w: Floats
    """(D, S) standardised."""
    y: Floats
    """(D S K,) perceived utilities."""
    eta: Floats
    """(M,) utilities of the anchors above the threshold."""


def _parts(data: Data, x: Latent, h: Hyper) -> _Parts:
    d, s, k = data.shape
    u = x.blocks[:, :k]
    b = x.blocks[:, k : k + s * k].reshape(d, s, k)
    w = x.blocks[:, k + s * k :]
    y = (u[:, None] + h.sd["taste"] * b).ravel()
    threshold = x.thresholds[data.anchor_annotator] + h.sd["wobble"] * w.ravel()[data.anchor_pair]
    return _Parts(u, b, w, y, y[data.anchors] - threshold)


# --- answers ------------------------------------------------------------------------------------------------


class Answers(NamedTuple):
    """Log probabilities of answers without lapses and their derivatives."""

    value: Floats
    slope: Floats
    curvature: Floats
    """Minus the second derivative."""
    by_log_sd: Floats
    """Derivative with respect to log sigma_e."""


def choice_values(y: Floats) -> tuple[Floats, Floats, Floats, Floats]:
    """Return (J,) probabilities of choices, (k, J) gradients of their logarithms, and those of both stages.

    y: (k, J) utilities, the best item first and the worst last.
    """
    best = np.exp(y - y.max(axis=0))
    best_sum = best.sum(axis=0)
    worst = np.exp(y[1:].min(axis=0) - y[1:])
    worst_sum = worst.sum(axis=0)
    best /= best_sum
    worst /= worst_sum
    probability = best[0] * worst[-1]
    gradient = -best
    gradient[0] += 1
    gradient[1:] += worst
    gradient[-1] -= 1
    return probability, gradient, best, worst


def rating_answers(data: Data, mu: Floats, sd: float) -> Answers:
    """Return the answers of ratings with the predictions mu on the scale of 3 logit x."""
    z = (data.rating_values - mu) / sd
    value = -(z**2 + LOG_2_PI) / 2 - math.log(sd) + data.log_bin_width
    slope, curvature, by_log_sd = z / sd, np.full(len(z), sd**-2), z**2 - 1
    ends = np.flatnonzero(data.end)
    if len(ends):
        sign = -data.end[ends]
        below = sign * z[ends]  # of 0: the answer is below the limit; of 100: above
        value_at_ends = log_ndtr(below)
        hazard = np.exp(-(below**2 + LOG_2_PI) / 2 - value_at_ends)
        value[ends] = value_at_ends
        slope[ends] = -sign * hazard / sd
        curvature[ends] = hazard * (hazard + below) / sd**2
        by_log_sd[ends] = -below * hazard
    return Answers(value, slope, curvature, by_log_sd)


def mark_answers(data: Data, eta: Floats) -> Answers:
    """Return the answers of marks."""
    sign = 2 * data.answers - 1
    p = expit(eta)
    return Answers(-np.logaddexp(0, -sign * eta), data.answers - p, p * (1 - p), np.zeros(len(p)))


def anchor_answers(data: Data, eta: Floats, h: Hyper) -> tuple[Answers, Floats, Floats]:
    """Return the answers to anchors, as functions of mu = beta_a eta, with (M,) slopes beta_a and mu."""
    slope = h.slope[data.anchor_annotator]
    mu = slope * eta
    answers = rating_answers(data, mu, h.sd["slider"]) if data.is_rating else mark_answers(data, mu)
    return answers, slope, mu


def random_choice(data: Data) -> float:
    """Return the probability of a choice in a lapse."""
    k = len(data.choices)
    return 1 / (k * (k - 1))


def random_answer(data: Data) -> Floats | float:
    """Return the probability, or (M,) probabilities, of the answers to anchors in a lapse."""
    return np.where(data.end == 0, 0.01, 0.005) if data.is_rating else 0.5


def _mixed(
    probability: Floats, at_lapse: Floats | float, h: Hyper, annotator: Integers
) -> tuple[Floats, Floats]:
    """Return log probabilities with lapses, and the probability that an answer was no lapse."""
    attentive = (1 - h.lapse)[annotator] * probability
    mixed = attentive + h.lapse[annotator] * at_lapse
    return np.log(mixed), attentive / mixed


# --- density ------------------------------------------------------------------------------------------------


class _ChoiceSlopes(NamedTuple):
    """Log probability of all choices, and its derivatives."""

    value: float
    by_y: Floats
    by_lapse: Floats
    """(A,) with respect to logit lambda_a."""


class _AnchorSlopes(NamedTuple):
    """Log probability of all answers to anchors, and its derivatives."""

    value: float
    by_eta: Floats
    """(M,)"""
    by_log_slope: Floats
    """(A,)"""
    by_log_slider: float
    by_lapse: Floats
    """(A,)"""


def _choice_slopes(data: Data, parts: _Parts, h: Hyper) -> _ChoiceSlopes:
    person = data.choice_annotator
    probability, gradient, _, _ = choice_values(parts.y[data.choices])
    mixed, attentive = _mixed(probability, random_choice(data), h, person)
    by_y = sums(data.choices.ravel(), (attentive * gradient).ravel(), len(parts.y))
    return _ChoiceSlopes(float(mixed.sum()), by_y, _lapse_slope(attentive, h, person))


def _anchor_slopes(data: Data, parts: _Parts, h: Hyper) -> _AnchorSlopes:
    person = data.anchor_annotator
    answers, slope, mu = anchor_answers(data, parts.eta, h)
    mixed, attentive = _mixed(np.exp(answers.value), random_answer(data), h, person)
    by_mu = attentive * answers.slope
    return _AnchorSlopes(
        float(mixed.sum()),
        by_mu * slope,
        sums(person, by_mu * mu, data.n_annotators),
        float(attentive @ answers.by_log_sd),
        _lapse_slope(attentive, h, person),
    )


def sums(index: Integers, values: Floats, size: int) -> Floats:
    """Return (size,) sums of values by index."""
    return np.bincount(index, values, size).astype(np.float64)


def _lapse_slope(attentive: Floats, h: Hyper, annotator: Integers) -> Floats:
    """Return (A,) sums over answers of P(lapse | answer) - lambda_a, the derivative in logit lambda_a."""
    return sums(annotator, 1 - attentive - h.lapse[annotator], len(h.lapse))


def log_density(data: Data, x: Latent, theta: Floats) -> tuple[float, Latent, Floats]:
    """Return the log posterior density up to a constant, and its gradients with respect to x and theta."""
    h = hyper(data, theta)
    parts = _parts(data, x, h)
    d, s, k = data.shape
    taste, wobble = h.sd["taste"], h.sd["wobble"]
    choices, anchors = _choice_slopes(data, parts, h), _anchor_slopes(data, parts, h)
    by_y = choices.by_y + sums(data.anchors, anchors.by_eta, d * s * k)
    by_items = by_y.reshape(d, s, k)
    by_w = -sums(data.anchor_pair, anchors.by_eta, d * s).reshape(d, s)
    by_t = -sums(data.anchor_annotator, anchors.by_eta, data.n_annotators)
    items = _equicorrelated(parts.u, data.has_item, h.sd["item"], h.sd["offset"])
    people = _equicorrelated(
        x.thresholds[None], data.is_annotator, h.sd["threshold"], THRESHOLD_PRIOR_SD
    )
    by_blocks = np.concatenate(
        [by_items.sum(axis=1) + items.slope, taste * by_y.reshape(d, s * k), wobble * by_w], axis=1
    )
    standard = x.blocks[:, k:]
    by_blocks[:, k:] -= standard
    by_sd = {
        "offset": items.by_log_shared_sd,
        "item": items.by_log_sd,
        "taste": taste * float((by_items * parts.b).sum()),
        "wobble": wobble * float((by_w * parts.w).sum()),
        "threshold": people.by_log_sd,
        "slider": anchors.by_log_slider,
    }
    by_theta = np.concatenate([
        [by_sd[name] for name in data.sds],
        anchors.by_log_slope if data.is_rating else [],
        choices.by_lapse + anchors.by_lapse,
    ])  # fmt: skip
    prior, by_prior = hyper_prior(data, theta)
    value = choices.value + anchors.value + items.value + people.value + prior
    value -= float((standard**2).sum()) / 2
    return value, Latent(by_blocks, by_t + people.slope[0]), by_theta + by_prior


def hyper_prior(data: Data, theta: Floats) -> tuple[float, Floats]:
    """Return the log prior density of the hyperparameters and its gradient.

    A standard deviation is half-normal; its logarithm has the density exp(log sd) times that.
    """
    n = len(data.sds)
    scales = np.array([HALF_NORMAL_SCALES[name] for name in data.sds])
    squares = (np.exp(theta[:n]) / scales) ** 2
    z = (theta[data.first_lapse :] - LAPSE_PRIOR[0]) / LAPSE_PRIOR[1]
    value = float((theta[:n] - squares / 2).sum() - (z**2).sum() / 2)
    slope = np.concatenate([1 - squares, np.zeros(data.first_lapse - n), -z / LAPSE_PRIOR[1]])
    if data.is_rating:
        log_slopes = theta[None, n : data.first_lapse]
        normal = _equicorrelated(log_slopes, data.is_annotator, SLOPE_SD, SLOPE_PRIOR_SD)
        value += normal.value
        slope[n : data.first_lapse] = normal.slope[0]
    return value, slope


class _Normal(NamedTuple):
    value: float
    slope: Floats
    by_log_sd: float
    by_log_shared_sd: float


def _equicorrelated(values: Floats, has: NDArray[np.bool_], sd: float, shared_sd: float) -> _Normal:
    """Return the log density of rows with the covariance sd^2 I + shared_sd^2 1 1', and its derivatives.

    With n values of mean a in a row, the density is that of the deviations from a, with the variance sd^2,
    and of a, with the variance T / n, T = sd^2 + n shared_sd^2. Places without a value are standard normal.
    """
    n, own, shared = has.sum(axis=1), sd**2, shared_sd**2
    mean = np.where(has, values, 0).sum(axis=1) / n
    deviation = np.where(has, values - mean[:, None], 0)
    padding = np.where(has, 0, values)
    total = own + n * shared
    within, between = (deviation**2).sum(axis=1), n * mean**2
    value = -(within / own + between / total + (n - 1) * math.log(own) + np.log(total)).sum() / 2
    slope = -deviation / own - np.where(has, (mean / total)[:, None], padding)
    by_total = (between / total - 1) / total / 2
    by_log_sd = (within / own - (n - 1)).sum() + 2 * own * by_total.sum()
    by_log_shared_sd = 2 * shared * (n * by_total).sum()
    return _Normal(
        float(value - (padding**2).sum() / 2), slope, float(by_log_sd), float(by_log_shared_sd)
    )


def _precisions(has: NDArray[np.bool_], sd: float, shared_sd: float) -> Floats:
    """Return (D, K, K) inverses of the covariances of `_equicorrelated`."""
    own, shared = sd**2, shared_sd**2
    between = shared / (own * (own + has.sum(axis=1) * shared))
    precision = np.where(has[:, :, None] & has[:, None], -between[:, None, None], 0.0)
    k = has.shape[1]
    precision[:, range(k), range(k)] += np.where(has, 1 / own, 1.0)
    return precision


# --- curvature ----------------------------------------------------------------------------------------------


class Curvature(NamedTuple):
    """Minus the Hessian with respect to x, by the items u of a group, and b and w of each place in it.

    Places are independent of each other given the items and the thresholds.
    """

    items: Floats
    """(D, K, K)"""
    places: Floats
    """(D, S, K + 1, K + 1) of the b and the w of a place."""
    coupling: Floats
    """(D, S, K + 1, K + 1) of these with the items and with the threshold of the place's annotator."""
    thresholds: Floats
    """(D, S, K) of the items with this threshold."""
    annotator: Integers
    """(D, S) annotator of each place; 0 for unused ones, whose entries are those of the unit matrix."""
    people: Floats
    """(A, A)"""

    def blocks(self) -> Floats:
        """Return (D, n, n) the entries of each group in the order of `Latent.blocks`."""
        d, k, _ = self.items.shape
        n = k + self.places[0, :, 0].size
        blocks = np.zeros((d, n, n))
        blocks[:, :k, :k] = self.items
        for slot, rows in enumerate(self._rows()):
            blocks[:, rows[:, None], rows] = self.places[:, slot]
            blocks[:, rows, :k] = self.coupling[:, slot, :, :k]
            blocks[:, :k, rows] = self.coupling[:, slot, :, :k].transpose(0, 2, 1)
        return blocks

    def border(self) -> Floats:
        """Return (D, n, S) the entries of each group with the threshold of each place."""
        d, k, _ = self.items.shape
        s = self.annotator.shape[1]
        border = np.zeros((d, k + s * (k + 1), s))
        border[:, :k] = self.thresholds.transpose(0, 2, 1)
        for slot, rows in enumerate(self._rows()):
            border[:, rows, slot] = self.coupling[:, slot, :, k]
        return border

    def _rows(self) -> list[Integers]:
        """Return the rows of each place in `Latent.blocks`."""
        k, s = self.items.shape[1], self.annotator.shape[1]
        return [np.append(np.arange(k) + k * (n + 1), k * (s + 1) + n) for n in range(s)]


def curvature(data: Data, x: Latent, theta: Floats) -> Curvature:
    """Return minus the Hessian without the variance of the indicators of lapses.

    It is exact without lapses, and always positive definite; with the omitted term it may be indefinite.
    """
    h = hyper(data, theta)
    parts = _parts(data, x, h)
    d, s, k = data.shape
    a = data.n_annotators
    g = _choice_curvature(data, parts, h)

    person = data.anchor_annotator
    answers, slope, _ = anchor_answers(data, parts.eta, h)
    _, attentive = _mixed(np.exp(answers.value), random_answer(data), h, person)
    by_eta = attentive * slope**2 * answers.curvature
    c = sums(data.anchors, by_eta, d * s * k).reshape(d, s, k)
    g[:, :, range(k), range(k)] += c
    people = _precisions(data.is_annotator, h.sd["threshold"], THRESHOLD_PRIOR_SD)[0]
    people[range(a), range(a)] += sums(person, by_eta, a)
    items = _precisions(data.has_item, h.sd["item"], h.sd["offset"]) + g.sum(axis=1)
    annotator = np.maximum(data.annotator_of_slot, 0)
    return Curvature(items, *_place_curvature(g, c, h), -c, annotator, people)


def _choice_curvature(data: Data, parts: _Parts, h: Hyper) -> Floats:
    """Return (D, S, K, K) minus the Hessian of the choices with respect to y."""
    d, s, k = data.shape
    probability, _, best, worst = choice_values(parts.y[data.choices])
    n = len(data.choices)
    _, attentive = _mixed(probability, random_choice(data), h, data.choice_annotator)
    pair, place = np.divmod(data.choices, k)
    total = np.zeros(d * s * k * k)
    for i in range(n):
        for j in range(n):
            entry = -best[i] * best[j] + (best[i] if i == j else 0)
            if i and j:
                entry = entry - worst[i - 1] * worst[j - 1] + (worst[i - 1] if i == j else 0)
            total += sums((pair[i] * k + place[i]) * k + place[j], attentive * entry, len(total))
    return total.reshape(d, s, k, k)


def _place_curvature(g: Floats, c: Floats, h: Hyper) -> tuple[Floats, Floats]:
    """Return `Curvature.places` and `Curvature.coupling`.

    g: (D, S, K, K) minus the Hessian with respect to y. c: (D, S, K) the anchors' part of its diagonal.
    """
    k = c.shape[2]
    taste, wobble = h.sd["taste"], h.sd["wobble"]
    places, coupling = np.zeros((2, *c.shape[:2], k + 1, k + 1))
    places[..., :k, :k] = taste**2 * g
    places[..., :k, k] = places[..., k, :k] = -taste * wobble * c
    places[..., k, k] = wobble**2 * c.sum(axis=2)
    places[..., range(k + 1), range(k + 1)] += 1
    coupling[..., :k, :k] = taste * g
    coupling[..., k, :k] = -wobble * c
    coupling[..., :k, k] = -taste * c
    coupling[..., k, k] = wobble * c.sum(axis=2)
    return places, coupling


def _logit(x: Floats) -> Floats:
    return np.log(x / (1 - x))
