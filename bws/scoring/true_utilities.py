"""The utilities that very many judgments would give: draws given the judgments that there are.

A choice model's utilities, shrunk by a prior, are no sum of truth and error whose variances could be
compared: the error has been shrunk with the truth. But the model says how the true utilities are
distributed given the judgments, and how well scores agree with them is the mean over draws of that.

The draws are those of a Hamiltonian Monte Carlo chain (Duane and others 1987; Neal 2011), with the inverse
Hessian as the metric, as Laplace's normal approximation is too wide where few judgments bound a utility.
They are the utilities v that all answers of these annotators would give.

Other annotators have other tastes. Let an annotator's own utilities have the variance t around the
population's u. An item judged by annotators in shares f_a has v = u + a mean taste with the variance
e = t Σ f_a², and v has the prior's variance σ². Given v, u is then normal with mean (1 - e/σ²) v and
variance (1 - e/σ²) e.

t is estimated by moments. With g_a the gradient of annotator a's judgments and B the inverse Hessian,
Σ_a (B g_a)² exceeds what annotators without tastes give, which is found by simulating the judgments anew
from draws. The excess for every unit of t is Σ f_a² times the squared rows of B H. Items have the weight of
the squared derivative of their score. The estimate is not cut off at 0, so that means have no bias.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from bws.records import CanonicalJudgments
from bws.scoring.choice import ConnectedSet, Model, connected_labels, connected_sets
from bws.scoring.expected import answer_chances
from bws.scoring.methods import Floats, Integers
from bws.scoring.posterior import Outcomes, Posterior, maximum

__all__ = ["TrueUtilities", "tastes_of", "true_utilities"]

BURN_IN = 10
STEPS, STEP = 4, 0.35
"""Leapfrog steps of a draw and their length; together about a quarter of a normal distribution's period."""
REPLICATES = 6
"""Simulated studies behind what annotators without tastes give."""
TOLERANCE = 1e-3
"""The last step of a replicate's fit moves no utility by more."""
SMALLEST_TASTES = 1e-3
TOGETHER = 1000
"""Annotators whose influence on all items is computed at a time."""


@dataclass(frozen=True, eq=False)
class TrueUtilities:
    """R draws of the true utilities of N items, and the variance t of the annotators' tastes."""

    alike: Floats
    """(R, N) for annotators without tastes."""
    tasteful: Floats
    """(R, N) for annotators whose tastes have the variance `assumed`."""
    assumed: float
    """|t|, but at least 0.001."""
    kept: Floats
    """(N,) 1 - e/σ² for such tastes, at least 0: the share of the variance that is not tastes."""
    excess: Floats
    """(N,) what annotators add to the variance of the utilities; NaN where one judged the item."""
    per_unit: Floats
    """(N,) what they would add for t = 1."""
    without: Floats
    """(B, N) `excess` without each block of annotators; NaN where no other judged the item."""

    @property
    def tastes(self) -> float:
        """The variance t of the annotators' tastes; below 0 where chance has it so."""
        return tastes_of(self.excess, self.per_unit)


def tastes_of(excess: Floats, per_unit: Floats) -> float:
    """Return t from `TrueUtilities.excess` and `per_unit` of some items; NaN where none is known."""
    known = ~np.isnan(excess)
    return float(excess[known].sum() / per_unit[known].sum()) if known.any() else np.nan


def true_utilities(
    answers: CanonicalJudgments,
    stages: Model,
    utility: Floats,
    prior: float,
    draws: int,
    block_of: Integers,
    seed: int = 0,
) -> TrueUtilities | None:
    """Return draws of the true utilities; None where a connected set has too many items for dense matrices.

    utility: (N,) most probable under the `prior`, a standard deviation. block_of: (A,) a number from 0 for
    each annotator, where -1 in the answers is another annotator for every judgment, in no block.

    Where the tastes account for all of an item's variance, its draws in `tasteful` do not depend on the
    judgments.
    """
    random = np.random.Generator(np.random.PCG64(seed))
    label = connected_labels(answers)
    posterior = Posterior(Outcomes.of(answers), stages(answers.k), prior)
    sets, notes = connected_sets(posterior, utility, label)
    if notes:
        return None
    alike = _centred(_draws(posterior, utility, label, draws, random), label)
    judged = _Judged.of(answers, block_of)
    observed, expected, per_unit = judged.sums(posterior, utility, sets)
    of_model = np.zeros(2)
    for start in np.linspace(0, draws - 1, REPLICATES).astype(int):
        said = _simulated(answers, stages, alike[start], random)
        again = Posterior(Outcomes.of(said), posterior.stages, prior)
        found = maximum(again, alike[start], TOLERANCE).utility
        squares, of_hessian, _ = judged.sums(again, found, connected_sets(again, found, label)[0])
        known = ~np.isnan(squares[-1])
        of_model += squares[-1, known].sum(), of_hessian[known].sum()
    ratio = of_model[0] / of_model[1] if of_model[1] else np.nan
    excess = observed - ratio * expected
    assumed = np.nanmax([abs(tastes_of(excess[-1], per_unit)), SMALLEST_TASTES])
    kept = np.clip(1 - assumed * judged.share / prior**2, 0, 1)
    noise = _centred(random.standard_normal(alike.shape), label)
    tasteful = kept * alike + prior * np.sqrt(kept * (1 - kept)) * noise
    return TrueUtilities(alike, tasteful, float(assumed), kept, excess[-1], per_unit, excess[:-1])


@dataclass(frozen=True, eq=False)
class _Judged:
    """Who judged which of N items."""

    annotator_of: Integers
    """(J,) another one for every judgment that names none."""
    block_of: Integers
    """(A,) each annotator's block, -1 for those in none."""
    number: Floats
    """(1 + B, N) how many annotators judged each item: without each block, and last of all."""
    share: Floats
    """(N,) Σ f_a² over the shares of an item's judgments."""

    @classmethod
    def of(cls, answers: CanonicalJudgments, block_of: Integers) -> _Judged:
        annotator_of = answers.distinct_annotator_of
        unknown = np.count_nonzero(answers.annotator_of < 0)
        block_of = np.concatenate([block_of, np.full(unknown, -1)])
        n, size = len(answers.items), len(block_of)
        keys = answers.judged_items * size + annotator_of[:, np.newaxis]
        pairs, times = np.unique(keys, return_counts=True)
        item, annotator = np.divmod(pairs, size)
        share = np.bincount(item, times**2.0, n) / np.bincount(item, times, n) ** 2
        blocks = int(block_of.max(initial=-1)) + 1
        of_block = np.bincount((block_of[annotator] + 1) * n + item, minlength=(blocks + 1) * n)
        by_block = of_block.reshape(blocks + 1, n)
        everybody = by_block.sum(axis=0)
        number = np.concatenate([everybody - by_block[1:], everybody[np.newaxis]]).astype(
            np.float64
        )
        return cls(annotator_of, block_of, number, share)

    def sums(
        self, posterior: Posterior, utility: Floats, sets: list[ConnectedSet]
    ) -> tuple[Floats, Floats, Floats]:
        """Return Σ_a (B g_a)² (1 + B, N), what the Hessian says of it, and what t = 1 adds (N,) each.

        The rows are without each block and, last, of all annotators; NaN where one judged the item.
        """
        observed = np.full(self.number.shape, np.nan)
        expected, per_unit = np.full((2, len(utility)), np.nan)
        everyone = self.number[-1]
        scale = everyone**2 / np.where(everyone > 1, everyone - 1, np.nan)
        scale = scale / np.where(self.number > 0, self.number, np.nan)
        weight = (1 - np.tanh(utility / 2) ** 2) ** 2
        for one in sets:
            items = one.items
            information = one.hessian - posterior.precision * np.eye(len(items))
            by_block = self._squares(one)
            everybody = by_block.sum(axis=0)
            squares = np.concatenate([everybody - by_block[1:], everybody[np.newaxis]])
            shrinkage = one.bread @ information
            observed[:, items] = weight[items] * squares * scale[:, items]
            expected[items] = weight[items] * (shrinkage * one.bread).sum(axis=1)
            per_unit[items] = weight[items] * self.share[items] * (shrinkage**2).sum(axis=1)
        return observed, expected, per_unit

    def _squares(self, one: ConnectedSet) -> Floats:
        """Return (1 + B, n) the sums of squares of the influence of those in no block, and in each."""
        from scipy.sparse import csr_array

        annotators, number = np.unique(self.annotator_of[one.answers], return_inverse=True)
        rows = np.repeat(number.ravel(), one.positions.shape[1])
        entries = (one.gradients.ravel(), (rows, one.positions.ravel()))
        gradient = csr_array(entries, shape=(len(annotators), len(one.items)))
        centre = gradient.sum(axis=0) @ one.bread / len(annotators)
        squares = np.zeros((len(self.number), len(one.items)))
        for start in range(0, len(annotators), TOGETHER):
            part = slice(start, start + TOGETHER)
            influence = gradient[part] @ one.bread - centre
            np.add.at(squares, self.block_of[annotators[part]] + 1, influence**2)
        return squares


def _draws(
    posterior: Posterior, mode: Floats, label: Integers, count: int, random: np.random.Generator
) -> Floats:
    """Return (R, N) draws of the posterior, from a chain that starts near its mode."""
    from scipy.sparse import block_diag

    hessian, order = posterior.hessian(mode), np.argsort(label, kind="stable")
    each = np.split(order, np.cumsum(np.bincount(label))[:-1])
    factors = [np.linalg.inv(np.linalg.cholesky(hessian[i][:, i].toarray())) for i in each]
    to_whitened = block_diag(factors, format="csr")
    from_whitened = to_whitened.T.tocsr()
    back = np.argsort(order)

    def place(z: Floats) -> Floats:
        return np.asarray(mode + (from_whitened @ z)[back])

    def slope(z: Floats) -> Floats:
        return np.asarray(to_whitened @ posterior.gradient(place(z))[order])

    z = random.standard_normal(len(mode))
    value, gradient, drawn = posterior.value(place(z)), slope(z), []
    for _ in range(BURN_IN + count):
        step = STEP * random.uniform(0.8, 1.2)
        start = random.standard_normal(len(z))
        there, momentum, uphill = z, start + step / 2 * gradient, gradient
        for left in range(STEPS, 0, -1):
            there = there + step * momentum
            uphill = slope(there)
            momentum = momentum + (step if left > 1 else step / 2) * uphill
        reached = posterior.value(place(there))
        gain = reached - value + (start @ start - momentum @ momentum) / 2
        if np.log(random.random()) < gain:
            z, value, gradient = there, reached, uphill
        drawn.append(place(z))
    return np.array(drawn[BURN_IN:])


def _simulated(
    answers: CanonicalJudgments, stages: Model, utility: Floats, random: np.random.Generator
) -> CanonicalJudgments:
    """Return answers of the same annotators to the same tuples, by the model with (N,) utilities."""
    pairs, chances = answer_chances(stages(answers.k), utility[answers.judged_items].T)
    drawn = (chances.cumsum(axis=0) < random.random(len(answers))).sum(axis=0)
    best, worst = np.array(pairs)[np.minimum(drawn, len(pairs) - 1)].T
    return replace(answers, best=best, worst=worst)


def _centred(values: Floats, label: Integers) -> Floats:
    """Return (R, N) values less their means in each connected set."""
    sizes = np.bincount(label)
    means = np.array([np.bincount(label, row) / sizes for row in values])
    centred: Floats = values - means[:, label]
    return centred
