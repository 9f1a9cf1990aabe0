"""Draws of the true utilities, those of infinitely many judgments, given the actual judgments.

The utilities of a choice model are shrunk by a prior. They are not a sum of truth and error with comparable
variances, because the error is shrunk together with the truth. However, the model gives the distribution of
the true utilities given the judgments. The expected agreement of scores with the truth is its mean over
draws.

The draws come from a Hamiltonian Monte Carlo chain (Duane and others 1987; Neal 2011) with the inverse
Hessian as the metric. Laplace's normal approximation is too wide for utilities bounded by few judgments. The
draws are the utilities v that infinitely many answers of the same annotators would give.

Other annotators have other tastes. Let an annotator's own utilities have the variance t around the
population's u. An item judged by annotators in shares f_a has v = u + a mean taste with the variance
e = t Σ f_a², and v has the prior's variance σ². Given v, u is then normal with mean (1 - e/σ²) v and
variance (1 - e/σ²) e.

t is estimated by moments. With g_a the gradient of annotator a's judgments and B the inverse Hessian,
Σ_a (B g_a)² exceeds its value for annotators without tastes, which is estimated by simulating judgments from
draws. The excess per unit of t is Σ f_a² times the squared rows of B H. Items are weighted by the squared
derivative of their score. The estimate is not clipped at 0, so that means are unbiased.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from bws.records import CanonicalJudgments
from bws.scoring.choice import ChoiceModel, ConnectedSet, connected_labels, connected_sets
from bws.scoring.expected import answer_probabilities
from bws.scoring.methods import Floats, Integers
from bws.scoring.posterior import Outcomes, Posterior, maximize

BURN_IN = 10
LEAPFROG_STEPS, LEAPFROG_STEP_SIZE = 4, 0.35
"""Leapfrog steps per draw and their size; together about a quarter of the period of a normal distribution."""
N_REPLICATES = 6
"""Simulated studies for the value expected without tastes."""
REPLICATE_TOLERANCE = 1e-3
"""Tolerance of the last step of a replicate's fit."""
MIN_TASTE_VARIANCE = 1e-3
ANNOTATOR_BATCH_SIZE = 1000
"""Annotators per batch in the computation of influences."""


@dataclass(frozen=True, eq=False)
class TrueUtilities:
    """R draws of the true utilities of N items, and the variance t of the annotators' tastes."""

    without_tastes: Floats
    """(R, N) for annotators without tastes."""
    with_tastes: Floats
    """(R, N) for annotators whose tastes have the variance `assumed_variance`."""
    assumed_variance: float
    """|t|, but at least 0.001."""
    non_taste_share: Floats
    """(N,) 1 - e/σ² for such tastes, at least 0: the share of the variance that is not due to tastes."""
    excess: Floats
    """(N,) contribution of annotators to the variance of the utilities; NaN for items with one annotator."""
    excess_per_unit: Floats
    """(N,) contribution expected for t = 1."""
    excess_without_block: Floats
    """(B, N) `excess` without each block of annotators; NaN for items without other annotators."""

    @property
    def taste_variance(self) -> float:
        """The variance t of the annotators' tastes; random variation can make it negative."""
        return estimate_taste_variance(self.excess, self.excess_per_unit)


def estimate_taste_variance(excess: Floats, excess_per_unit: Floats) -> float:
    """Return t from `TrueUtilities.excess` and `excess_per_unit` of some items; NaN if undefined for all."""
    is_defined = ~np.isnan(excess)
    return (
        float(excess[is_defined].sum() / excess_per_unit[is_defined].sum())
        if is_defined.any()
        else np.nan
    )


def true_utilities(
    judgments: CanonicalJudgments,
    model: ChoiceModel,
    utility: Floats,
    prior: float,
    draws: int,
    block_of: Integers,
    seed: int = 0,
) -> TrueUtilities | None:
    """Return draws of the true utilities; None if a connected set is too large for dense matrices.

    utility: (N,) mode under the `prior`, a standard deviation. block_of: (A,) the block of each annotator,
    from 0. Each judgment with annotator -1 counts as a separate annotator outside all blocks.

    If tastes account for all variance of an item, its draws in `with_tastes` do not depend on the judgments.
    """
    rng = np.random.Generator(np.random.PCG64(seed))
    label = connected_labels(judgments)
    posterior = Posterior(Outcomes.from_judgments(judgments), model(judgments.k), prior)
    sets, notes = connected_sets(posterior, utility, label)
    if notes:
        return None
    without_tastes = _centred(_draw_utilities(posterior, utility, label, draws, rng), label)
    annotator_items = _AnnotatorItems.from_judgments(judgments, block_of)
    observed, expected, excess_per_unit = annotator_items.influence_sums(posterior, utility, sets)
    model_sums = np.zeros(2)
    for start in np.linspace(0, draws - 1, N_REPLICATES).astype(int):
        simulated = _simulate_judgments(judgments, model, without_tastes[start], rng)
        replicate = Posterior(Outcomes.from_judgments(simulated), posterior.stages, prior)
        replicate_utility = maximize(replicate, without_tastes[start], REPLICATE_TOLERANCE).utility
        squares, replicate_expected, _ = annotator_items.influence_sums(
            replicate, replicate_utility, connected_sets(replicate, replicate_utility, label)[0]
        )
        is_defined = ~np.isnan(squares[-1])
        model_sums += squares[-1, is_defined].sum(), replicate_expected[is_defined].sum()
    ratio = model_sums[0] / model_sums[1] if model_sums[1] else np.nan
    excess = observed - ratio * expected
    assumed_variance = np.nanmax(
        [abs(estimate_taste_variance(excess[-1], excess_per_unit)), MIN_TASTE_VARIANCE]
    )
    non_taste_share = np.clip(1 - assumed_variance * annotator_items.share / prior**2, 0, 1)
    noise = _centred(rng.standard_normal(without_tastes.shape), label)
    with_tastes = (
        non_taste_share * without_tastes
        + prior * np.sqrt(non_taste_share * (1 - non_taste_share)) * noise
    )
    return TrueUtilities(
        without_tastes,
        with_tastes,
        float(assumed_variance),
        non_taste_share,
        excess[-1],
        excess_per_unit,
        excess[:-1],
    )


@dataclass(frozen=True, eq=False)
class _AnnotatorItems:
    """The annotators of each of N items."""

    annotator_of: Integers
    """(J,) annotators; a separate one for each judgment without annotator."""
    block_of: Integers
    """(A,) each annotator's block, or -1."""
    n_annotators: Floats
    """(1 + B, N) annotators per item: without each block and, in the last row, in total."""
    share: Floats
    """(N,) Σ f_a² over the shares of an item's judgments."""

    @classmethod
    def from_judgments(cls, judgments: CanonicalJudgments, block_of: Integers) -> _AnnotatorItems:
        annotator_of = judgments.distinct_annotator_of
        n_unknown = np.count_nonzero(judgments.annotator_of < 0)
        block_of = np.concatenate([block_of, np.full(n_unknown, -1)])
        n, size = len(judgments.items), len(block_of)
        keys = judgments.judged_items * size + annotator_of[:, np.newaxis]
        pairs, times = np.unique(keys, return_counts=True)
        item, annotator = np.divmod(pairs, size)
        share = np.bincount(item, times**2.0, n) / np.bincount(item, times, n) ** 2
        blocks = int(block_of.max(initial=-1)) + 1
        of_block = np.bincount((block_of[annotator] + 1) * n + item, minlength=(blocks + 1) * n)
        by_block = of_block.reshape(blocks + 1, n)
        total = by_block.sum(axis=0)
        n_annotators = np.concatenate([total - by_block[1:], total[np.newaxis]]).astype(np.float64)
        return cls(annotator_of, block_of, n_annotators, share)

    def influence_sums(
        self, posterior: Posterior, utility: Floats, sets: list[ConnectedSet]
    ) -> tuple[Floats, Floats, Floats]:
        """Return Σ_a (B g_a)² (1 + B, N), its expectation from the Hessian (N,), and the t = 1 excess (N,).

        The rows are without each block and, in the last row, for all annotators; NaN for items with one
        annotator.
        """
        observed = np.full(self.n_annotators.shape, np.nan)
        expected, excess_per_unit = np.full((2, len(utility)), np.nan)
        n_total = self.n_annotators[-1]
        scale = n_total**2 / np.where(n_total > 1, n_total - 1, np.nan)
        scale = scale / np.where(self.n_annotators > 0, self.n_annotators, np.nan)
        weight = (1 - np.tanh(utility / 2) ** 2) ** 2
        for item_set in sets:
            items = item_set.items
            information = item_set.hessian - posterior.precision * np.eye(len(items))
            by_block = self._influence_squares(item_set)
            total = by_block.sum(axis=0)
            squares = np.concatenate([total - by_block[1:], total[np.newaxis]])
            shrinkage = item_set.bread @ information
            observed[:, items] = weight[items] * squares * scale[:, items]
            expected[items] = weight[items] * (shrinkage * item_set.bread).sum(axis=1)
            excess_per_unit[items] = weight[items] * self.share[items] * (shrinkage**2).sum(axis=1)
        return observed, expected, excess_per_unit

    def _influence_squares(self, item_set: ConnectedSet) -> Floats:
        """Return (1 + B, n) sums of squared influences: of annotators outside all blocks, then per block."""
        from scipy.sparse import csr_array

        annotators, row_of_judgment = np.unique(
            self.annotator_of[item_set.judgments], return_inverse=True
        )
        rows = np.repeat(row_of_judgment.ravel(), item_set.positions.shape[1])
        entries = (item_set.gradients.ravel(), (rows, item_set.positions.ravel()))
        gradient = csr_array(entries, shape=(len(annotators), len(item_set.items)))
        centre = gradient.sum(axis=0) @ item_set.bread / len(annotators)
        squares = np.zeros((len(self.n_annotators), len(item_set.items)))
        for start in range(0, len(annotators), ANNOTATOR_BATCH_SIZE):
            batch = slice(start, start + ANNOTATOR_BATCH_SIZE)
            influence = gradient[batch] @ item_set.bread - centre
            np.add.at(squares, self.block_of[annotators[batch]] + 1, influence**2)
        return squares


def _draw_utilities(
    posterior: Posterior, mode: Floats, label: Integers, count: int, rng: np.random.Generator
) -> Floats:
    """Return (R, N) draws of the posterior from a chain that starts near its mode."""
    from scipy.sparse import block_diag

    hessian, order = posterior.hessian(mode), np.argsort(label, kind="stable")
    items_by_set = np.split(order, np.cumsum(np.bincount(label))[:-1])
    factors = [np.linalg.inv(np.linalg.cholesky(hessian[i][:, i].toarray())) for i in items_by_set]
    to_whitened = block_diag(factors, format="csr")
    from_whitened = to_whitened.T.tocsr()
    inverse_order = np.argsort(order)

    def to_utilities(z: Floats) -> Floats:
        return np.asarray(mode + (from_whitened @ z)[inverse_order])

    def whitened_gradient(z: Floats) -> Floats:
        return np.asarray(to_whitened @ posterior.gradient(to_utilities(z))[order])

    z = rng.standard_normal(len(mode))
    value, gradient, samples = posterior.value(to_utilities(z)), whitened_gradient(z), []
    for _ in range(BURN_IN + count):
        step = LEAPFROG_STEP_SIZE * rng.uniform(0.8, 1.2)
        initial_momentum = rng.standard_normal(len(z))
        proposal, momentum, proposal_gradient = z, initial_momentum + step / 2 * gradient, gradient
        for steps_left in range(LEAPFROG_STEPS, 0, -1):
            proposal = proposal + step * momentum
            proposal_gradient = whitened_gradient(proposal)
            momentum = momentum + (step if steps_left > 1 else step / 2) * proposal_gradient
        proposal_value = posterior.value(to_utilities(proposal))
        log_ratio = (
            proposal_value - value + (initial_momentum @ initial_momentum - momentum @ momentum) / 2
        )
        if np.log(rng.random()) < log_ratio:
            z, value, gradient = proposal, proposal_value, proposal_gradient
        samples.append(to_utilities(z))
    return np.array(samples[BURN_IN:])


def _simulate_judgments(
    judgments: CanonicalJudgments, model: ChoiceModel, utility: Floats, rng: np.random.Generator
) -> CanonicalJudgments:
    """Return simulated judgments of the same annotators and tuples under the model with (N,) utilities."""
    pairs, probabilities = answer_probabilities(
        model(judgments.k), utility[judgments.judged_items].T
    )
    answer_index = (probabilities.cumsum(axis=0) < rng.random(len(judgments))).sum(axis=0)
    best, worst = np.array(pairs)[np.minimum(answer_index, len(pairs) - 1)].T
    return replace(judgments, best=best, worst=worst)


def _centred(values: Floats, label: Integers) -> Floats:
    """Return (R, N) values minus their means per connected set."""
    sizes = np.bincount(label)
    means = np.array([np.bincount(label, row) / sizes for row in values])
    centred: Floats = values - means[:, label]
    return centred
