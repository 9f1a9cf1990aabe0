"""Choice models: maximum a posteriori utilities under models of the judgments.

Each model treats a judgment as a few choices. Each choice follows a logit rule over alternatives that are
linear in the utilities u of the judged items: the probability of alternative l is exp(a_l·u) divided by the
sum over all alternatives. `stages` writes the choices as matrices: a stage has (L, K) rows a_l, the chosen
one first, over the judged items with the best first and the worst last.

- Bradley–Terry (1952): the 2K-3 comparisons implied by a judgment (the best beats every other item, every
  other item beats the worst), each a choice between two items.
- Plackett–Luce (1959, 1975): the best is chosen among all K; the order of the others is unknown, except that
  each of them beats the worst. For K = 3 this is the full likelihood of the ranking.
- Best–worst logit (Marley and Louviere 2005, the sequential model): the best is chosen among all K
  with utilities u, then the worst among the remaining K-1 with utilities -u.
- MaxDiff logit (Marley and Louviere 2005): the pair (best, worst) is chosen among all K(K-1) ordered
  pairs (i, j) with utility u_i - u_j.

MaxDiff and Bradley–Terry are symmetric: with best and worst exchanged in all judgments, the utilities change
their sign. Plackett–Luce and the best–worst logit are not for K ≥ 3, as the best is chosen first, among all
items: the exchange gives other utilities than the negative ones. They suit questions in this order.

The utilities have a Gaussian prior with mean 0 and standard deviation `prior` (in logits), by default the
one with the highest evidence (`posterior`). It keeps the utilities of items that always win finite. The mean
utility is 0 in every set of items connected by judgments, apart from control items.

Standard errors: with M = Σ_c g_c g_cᵀ over clusters c and the prior's precision τ, the variance of the
utilities is the diagonal of H⁻¹ (M + τ I) H⁻¹, with the mean projected out; C/(C-1) corrects M
(`clustering`). The term τ I accounts for the prior's pull towards 0: for judgments that follow the model, M
estimates H - τ I, and the variance is that of the inverse Hessian. The inverse Hessian itself is used for
independent judgments (cluster ``judgment``) if the model is a likelihood of whole judgments: best–worst
logit, MaxDiff, and Plackett–Luce for K = 3. Otherwise a judgment counts more than once in its implied
comparisons, and the curvature overstates the information.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import permutations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bws.base.notes import note
from bws.records import CanonicalJudgments
from bws.scoring.clustering import Clusters
from bws.scoring.methods import (
    METHODS,
    ErrorCovariance,
    Fit,
    Floats,
    Integers,
    Method,
    Utilities,
    logistic,
)
from bws.scoring.posterior import Outcomes, Posterior, Solution, estimate_prior, maximize
from bws.stats.clusters import ErrorVariance

NO_SIGNAL_NOTE = note(
    "the judgments contain no signal: the estimated standard deviation of the prior is 0, and so are all "
    "utilities; they have no standard errors or intervals"
)
DISCONNECTED = (
    "judgments do not connect all items of {groups}: scores of items in different sets of a group are not "
    "comparable (each set has mean utility 0)"
)
MORE_DISCONNECTED = (
    "judgments do not connect all items of {groups} and {more:d} more: scores of items in different sets of "
    "a group are not comparable (each set has mean utility 0)"
)
MAX_STDERR_ITEMS = 2000
"""Maximum items of a connected set for which standard errors are computed; they need a dense inverse."""
MAX_NAMED_GROUPS = 5
Stages = list[Floats]
ChoiceModel = Callable[[int], Stages]
"""K -> the stages of a judgment of K items."""


def bradley_terry(k: int) -> Stages:
    """Return the stages of Bradley–Terry: 2K-3 choices between two items.

    >>> [stage.astype(int).tolist() for stage in bradley_terry(2)]
    [[[1, 0], [0, 1]]]
    """
    best_beats = [(0, position) for position in range(1, k)]
    return _pair_stages(best_beats, k) + _pair_stages(_pairs_beating_worst(k), k)


def plackett_luce(k: int) -> Stages:
    """Return the stages of Plackett–Luce: the best of K, then K-2 choices against the worst."""
    return [np.eye(k), *_pair_stages(_pairs_beating_worst(k), k)]


def best_worst_logit(k: int) -> Stages:
    """Return the stages of the sequential logit: the best of K, then the worst of the remaining K-1."""
    return [np.eye(k), -np.eye(k)[:0:-1]]


def maxdiff(k: int) -> Stages:
    """Return the single stage of MaxDiff: an ordered pair among K(K-1)."""
    pairs = sorted(permutations(range(k), 2), key=lambda pair: pair != (0, k - 1))
    return [np.array([np.eye(k)[i] - np.eye(k)[j] for i, j in pairs])]


def _pair_stages(pairs: list[tuple[int, int]], k: int) -> Stages:
    return [np.eye(k)[list(pair)] for pair in pairs]


def _pairs_beating_worst(k: int) -> list[tuple[int, int]]:
    return [(position, k - 1) for position in range(1, k - 1)]


def make_fit(model: ChoiceModel) -> Fit:
    """Return the `Fit` of a model; `prior` is estimated if it is None."""

    def fit(
        judgments: CanonicalJudgments,
        *,
        clusters: Clusters | None,
        seed: int,
        prior: float | None = None,
    ) -> Utilities:
        if prior is not None and not 0 < prior < np.inf:
            raise ValueError(f"prior is {prior}; expected a standard deviation above 0")
        if not len(judgments):
            return Utilities(np.empty(0))
        label = connected_labels(judgments)
        posterior = Posterior(Outcomes.from_judgments(judgments), model(judgments.k), prior or 1.0)
        if prior is not None:
            return _fit_posterior(posterior, None, judgments, label, clusters)
        estimate, start = estimate_prior(posterior, label)
        if not estimate:
            return _zero_utilities(label, clusters)
        fitted = _fit_posterior(posterior.with_prior(estimate), start, judgments, label, clusters)
        return replace(fitted, estimated={"prior": estimate})

    return fit


def _fit_posterior(
    posterior: Posterior,
    start: Floats | None,
    judgments: CanonicalJudgments,
    label: Integers,
    clusters: Clusters | None,
) -> Utilities:
    solution = maximize(posterior, start)
    utility = np.where(label >= 0, solution.utility, np.nan)
    is_centre = np.arange(len(label)) < judgments.n_scored
    if judgments.n_controls:
        utility = _centred(utility, label, is_centre)
    notes = [*_fit_notes(solution), *_connection_notes(judgments, label)]
    if clusters is None:
        return Utilities(utility, None, notes, solution.converged)
    sets, reasons = connected_sets(posterior, solution.utility, label)
    if judgments.n_controls:
        sets = [_recentred(item_set, is_centre) for item_set in sets]
    if clusters.kind == "judgment" and _is_likelihood(posterior.stages):
        variance, df, stderr_method = _inverse_hessian(sets, len(label)), None, "inverse Hessian"
    else:
        variance, df = _sandwich(sets, len(label), posterior.precision, clusters)
        stderr_method = "sandwich"
    if any(np.isnan(variance[item_set.items]).any() for item_set in sets):
        reasons.append(note("no standard errors for items with a single cluster"))
    notes += reasons
    return Utilities(
        utility, np.sqrt(variance), notes, solution.converged, df=df, stderr_method=stderr_method,
        covariance=_error_covariance(sets, len(label), posterior.precision),
    )  # fmt: skip


def _zero_utilities(label: Integers, clusters: Clusters | None) -> Utilities:
    """Return utilities of 0 without standard errors."""
    utility = np.where(label >= 0, 0.0, np.nan)
    stderr = None if clusters is None else np.full(len(label), np.nan)
    return Utilities(utility, stderr, [NO_SIGNAL_NOTE], estimated={"prior": 0.0})


def connected_labels(judgments: CanonicalJudgments) -> Integers:
    """Return (N,) the index of each item's connected set; -1 for items without judgments."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    n = len(judgments.items)
    judged_tuples = judgments.members[np.unique(judgments.tuple_of)]
    first = np.repeat(judged_tuples[:, 0], judgments.k)
    graph = coo_array((np.ones(judged_tuples.size), (first, judged_tuples.ravel())), shape=(n, n))
    _, label = connected_components(graph, directed=False)
    is_judged = np.zeros(n, dtype=bool)
    is_judged[judged_tuples] = True
    return np.where(is_judged, label, -1).astype(np.int64)


def _fit_notes(solution: Solution) -> list[str]:
    if solution.converged:
        return []
    return [
        note(
            "the fit did not converge in {n:d} steps: the last step changed a utility by {change:.1g}; a "
            "smaller prior helps convergence",
            n=solution.steps,
            change=solution.last_step,
        )
    ]


def _connection_notes(judgments: CanonicalJudgments, label: Integers) -> list[str]:
    """Return a note on groups whose items are not all connected by judgments."""
    is_judged = label >= 0
    sets = np.unique(np.column_stack((judgments.group_of[is_judged], label[is_judged])), axis=0)
    count = np.bincount(sets[:, 0], minlength=len(judgments.groups))
    split_groups = np.flatnonzero(count > 1)
    if not split_groups.size:
        return []
    named, more = split_groups[:MAX_NAMED_GROUPS], len(split_groups) - MAX_NAMED_GROUPS
    values = {
        "groups": ", ".join(_named_sets(judgments.groups[g], count[g]) for g in named),
        "more": more,
    }
    return [note(MORE_DISCONNECTED, **values) if more > 0 else note(DISCONNECTED, **values)]


def _named_sets(group: str, n: int) -> str:
    """Return the name of a group with its number of connected sets."""
    return f"{group} {note('({n:d} sets)', n=n)}" if group else note("all items ({n:d} sets)", n=n)


@dataclass(frozen=True, eq=False)
class ConnectedSet:
    """A set of n items connected by judgments, and its j judgments."""

    items: Integers
    """(n,)"""
    judgments: Integers
    """(j,)"""
    positions: Integers
    """(j, K) the judged items, as indices into `items`."""
    gradients: Floats
    """(j, K) gradients of each judgment's log-likelihood with respect to the utilities of its items."""
    hessian: Floats
    """(n, n)"""
    bread: Floats
    """(n, n) inverse Hessian with the mean utility projected out."""
    is_centre: NDArray[np.bool_] | None = None
    """(n,) the items of this mean; None for all."""


def connected_sets(
    posterior: Posterior, utility: Floats, label: Integers
) -> tuple[list[ConnectedSet], list[str]]:
    """Return the sets that are small enough for a dense inverse, and notes on the others."""
    hessian = posterior.hessian(utility)
    outcomes, gradients = posterior.outcomes, posterior.gradients(utility).T
    set_of_judgment = label[outcomes.items[0, outcomes.outcome_of_judgment]]
    sets, notes = [], set()
    for items, judgments in zip(
        indices_by_label(label), indices_by_label(set_of_judgment), strict=True
    ):
        if len(items) > MAX_STDERR_ITEMS:
            notes.add(
                note(
                    "no standard errors for a connected set of {n:d} items (limit: {limit:d}, dense matrix "
                    "required); use the bootstrap",
                    n=len(items),
                    limit=MAX_STDERR_ITEMS,
                )
            )
            continue
        outcome = outcomes.outcome_of_judgment[judgments]
        positions = np.searchsorted(items, outcomes.items[:, outcome].T)
        dense = hessian[items][:, items].toarray()
        inverse = np.linalg.inv(dense)
        bread = inverse - inverse.mean(axis=0)
        sets.append(ConnectedSet(items, judgments, positions, gradients[outcome], dense, bread))
    return sets, sorted(notes)


def _centred(utility: Floats, label: Integers, is_centre: NDArray[np.bool_]) -> Floats:
    """Return utilities whose mean over the items of `is_centre` is 0 in every connected set."""
    rows = np.flatnonzero(is_centre & (label >= 0))
    size = int(label.max()) + 1
    counts = np.maximum(np.bincount(label[rows], minlength=size), 1)
    centred: Floats = utility - (np.bincount(label[rows], utility[rows], size) / counts)[label]
    return centred


def _recentred(item_set: ConnectedSet, is_centre: NDArray[np.bool_]) -> ConnectedSet:
    """Return the set with the mean utility of the items of `is_centre`, if any, projected out."""
    rows = is_centre[item_set.items]
    if rows.all() or not rows.any():
        return item_set
    inverse = np.linalg.inv(item_set.hessian)
    return replace(item_set, bread=inverse - inverse[rows].mean(axis=0), is_centre=rows)


def _is_likelihood(stages: Stages) -> bool:
    """Return whether the probabilities of all (best, worst) pairs sum to 1, so that judgments count once.

    >>> [_is_likelihood(model(4)) for model in (best_worst_logit, maxdiff, plackett_luce)]
    [True, True, False]
    """
    k = stages[0].shape[1]
    u = np.linspace(-1, 1, k)
    orders = [
        [best, *(position for position in range(k) if position not in (best, worst)), worst]
        for best, worst in permutations(range(k), 2)
    ]
    total = 0.0
    for order in orders:
        stage_weights = [np.exp(stage @ u[order]) for stage in stages]
        total += float(np.prod([weights[0] / weights.sum() for weights in stage_weights]))
    return abs(total - 1) < 1e-9


def _inverse_hessian(sets: list[ConnectedSet], n: int) -> Floats:
    """Return (N,) variances; NaN for items outside the sets."""
    variance = np.full(n, np.nan)
    for item_set in sets:
        variance[item_set.items] = item_set.bread.diagonal()
        if item_set.is_centre is not None:
            variance[item_set.items] -= item_set.bread[:, item_set.is_centre].mean(axis=1)
    return variance


def _sandwich(
    sets: list[ConnectedSet], n: int, precision: float, clusters: Clusters
) -> ErrorVariance:
    """Return the clustered sandwich variance of each item; NaN for items outside the sets."""
    prior = np.full(n, np.nan)
    for item_set in sets:
        prior[item_set.items] = precision * (item_set.bread**2).sum(axis=1)

    def variance(labels: Integers) -> Floats:
        summed = np.full(n, np.nan)
        for item_set in sets:
            bread, meat = item_set.bread, _scatter(item_set, labels[item_set.judgments])
            summed[item_set.items] = ((bread @ meat) * bread).sum(axis=1)
        return summed

    return clusters.error_variance(variance, prior)


def _error_covariance(sets: list[ConnectedSet], n: int, precision: float) -> ErrorCovariance:
    """Return the covariance of the sandwich; 0 outside the sets."""

    def between(labels: Integers) -> Any:
        blocks = [
            (part.bread @ _scatter(part, labels[part.judgments])) @ part.bread.T for part in sets
        ]
        return joined_blocks(item_sets, blocks, n)

    item_sets = [part.items for part in sets]
    prior = [precision * (part.bread @ part.bread.T) for part in sets]
    return ErrorCovariance(between, joined_blocks(item_sets, prior, n))


def joined_blocks(item_sets: list[Integers], blocks: list[Floats], n: int) -> Any:
    """Return the sparse (n, n) matrix with a dense block for each set of items."""
    from scipy.sparse import coo_array

    pairs = [np.meshgrid(items, items, indexing="ij") for items in item_sets]
    rows, columns = (
        np.concatenate([np.empty(0, np.int64), *(pair[axis].ravel() for pair in pairs)])
        for axis in (0, 1)
    )
    values = np.concatenate([np.empty(0), *(block.ravel() for block in blocks)])
    return coo_array((values, (rows, columns)), shape=(n, n)).tocsr()


def _scatter(item_set: ConnectedSet, labels: Integers) -> Floats:
    """Return (n, n) Σ_c g_c g_cᵀ, where g_c is the sum of the gradients of cluster c."""
    from scipy.sparse import csr_array

    cluster = np.unique(labels, return_inverse=True)[1].ravel()
    rows = np.repeat(cluster, item_set.positions.shape[1])
    shape = (int(cluster.max()) + 1, len(item_set.items))
    entries = (item_set.gradients.ravel(), (rows, item_set.positions.ravel()))
    summed = csr_array(entries, shape=shape)
    meat: Floats = (summed.T @ summed).toarray()
    return meat


def indices_by_label(label: Integers) -> list[Integers]:
    """Return the indices of each label, in ascending label order, ignoring -1."""
    order = np.argsort(label, kind="stable")
    starts = np.flatnonzero(np.diff(label[order], prepend=-1))
    return np.split(order, starts)[1:] if starts.size else []


def _register(name: str, summary: str, stages: ChoiceModel) -> None:
    METHODS[name] = Method(
        summary, make_fit(stages), logistic, {"prior": None}, has_stderr=True, stages=stages
    )


_register("bradley-terry", "logit model of the implied comparisons", bradley_terry)
_register("plackett-luce", "choice of the best, and comparisons with the worst", plackett_luce)
_register(
    "best-worst-logit", "choice of the best, then of the worst of the others", best_worst_logit
)
_register("maxdiff", "choice of the (best, worst) pair among all pairs", maxdiff)
