"""Choice models: utilities under which the judgments are likely.

Each model takes a judgment for a few choices, each made by a logit rule over alternatives that are
linear in the utilities u of the judged items: the chance of alternative l is exp(a_l·u) / sum over
all alternatives. `stages` writes the choices as matrices: a stage is (L, K) rows a_l, the chosen one
first, over the judged items with the best first and the worst last.

- Bradley–Terry (1952): the 2K-3 comparisons that a judgment implies, the best beats every other
  item and every other item beats the worst, each a choice between two.
- Plackett–Luce (1959, 1975): the best is chosen among all K; the order of the others is unknown but
  for the worst, which every one of them beats. For K = 3 this is the ranking's whole likelihood.
- Best–worst logit (Marley and Louviere 2005, the sequential model): the best is chosen among all K
  with utilities u, then the worst among the remaining K-1 with utilities -u.
- MaxDiff logit (Marley and Louviere 2005): the pair (best, worst) is chosen among all K(K-1) ordered
  pairs (i, j) with utility u_i - u_j.

The utilities have a Gaussian prior with mean 0 and standard deviation `prior` (in logits). It makes
those of an item that always wins finite, and their mean is 0 in every set of items that the
judgments connect. With the comparisons of Bradley–Terry and Plackett–Luce a judgment counts more
than once, so that their curvature overstates what is known; standard errors are therefore the
clustered sandwich, H⁻¹ (Σ_c g_c g_cᵀ) H⁻¹ · C/(C-1) over C clusters, for all four models.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import permutations

import numpy as np

from bws.scoring.answers import Answers
from bws.scoring.likelihood import Outcomes, Posterior, Solution, maximum
from bws.scoring.records import Fit, Floats, Integers, Utilities

__all__ = [
    "PRIOR", "Model", "best_worst_logit", "bradley_terry", "fit_with", "maxdiff", "plackett_luce",
]  # fmt: skip

PRIOR = 3.0
LARGEST_DENSE = 2000
"""Items of a connected set up to which standard errors are computed: they need a dense inverse."""
NAMED = 5
Stages = list[Floats]
Model = Callable[[int], Stages]
"""K -> the stages of a judgment of K items."""


def bradley_terry(k: int) -> Stages:
    """Return the stages of Bradley–Terry: 2K-3 choices between two.

    >>> [stage.astype(int).tolist() for stage in bradley_terry(2)]
    [[[1, 0], [0, 1]]]
    """
    best_beats = [(0, other) for other in range(1, k)]
    return _pairs(best_beats, k) + _pairs(_beat_worst(k), k)


def plackett_luce(k: int) -> Stages:
    """Return the stages of Plackett–Luce: the best of K, then K-2 choices against the worst."""
    return [np.eye(k), *_pairs(_beat_worst(k), k)]


def best_worst_logit(k: int) -> Stages:
    """Return the stages of the sequential logit: the best of K, then the worst of the K-1 left."""
    return [np.eye(k), -np.eye(k)[:0:-1]]


def maxdiff(k: int) -> Stages:
    """Return the one stage of MaxDiff: an ordered pair among K(K-1)."""
    pairs = sorted(permutations(range(k), 2), key=lambda pair: pair != (0, k - 1))
    return [np.array([np.eye(k)[i] - np.eye(k)[j] for i, j in pairs])]


def _pairs(pairs: list[tuple[int, int]], k: int) -> Stages:
    return [np.eye(k)[list(pair)] for pair in pairs]


def _beat_worst(k: int) -> list[tuple[int, int]]:
    return [(other, k - 1) for other in range(1, k - 1)]


def fit_with(stages: Model) -> Fit:
    """Return the `Fit` of a model."""

    def fit(
        answers: Answers, *, clusters: Integers | None, seed: int, prior: float = PRIOR
    ) -> Utilities:
        if not 0 < prior < np.inf:
            raise ValueError(f"prior is {prior}; it is a standard deviation: a number above 0")
        if not len(answers):
            return Utilities(np.empty(0))
        outcomes = Outcomes.of(answers)
        posterior = Posterior(outcomes, stages(answers.k), prior)
        solution = maximum(posterior)
        label = _connected(answers)
        utility = np.where(label >= 0, solution.utility, np.nan)
        notes = [*_fit_notes(solution), *_connection_notes(answers, label)]
        if clusters is None:
            return Utilities(utility, None, notes, solution.converged)
        stderr, why = _sandwich(posterior, solution.utility, clusters, label)
        return Utilities(utility, stderr, [*notes, *why], solution.converged)

    return fit


def _connected(answers: Answers) -> Integers:
    """Return (N,) the number of each item's connected set, -1 where no answer shows the item."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    n = len(answers.items)
    shown = answers.members[np.unique(answers.tuple_of)]
    first = np.repeat(shown[:, 0], answers.k)
    graph = coo_array((np.ones(shown.size), (first, shown.ravel())), shape=(n, n))
    _, label = connected_components(graph, directed=False)
    seen = np.zeros(n, dtype=bool)
    seen[shown] = True
    return np.where(seen, label, -1).astype(np.int64)


def _fit_notes(solution: Solution) -> list[str]:
    if solution.converged:
        return []
    return [
        f"the fit did not converge in {solution.steps} steps: the last one moved a utility by "
        f"{solution.moved:.1g}; a smaller prior makes it easier"
    ]


def _connection_notes(answers: Answers, label: Integers) -> list[str]:
    """Say which groups fall into sets of items that no judgment connects."""
    seen = label >= 0
    sets = np.unique(np.column_stack((answers.group_of[seen], label[seen])), axis=0)
    count = np.bincount(sets[:, 0], minlength=len(answers.groups))
    split = np.flatnonzero(count > 1)
    if not split.size:
        return []
    named = ", ".join(
        f"{answers.groups[g] or 'all items'} ({count[g]} sets)" for g in split[:NAMED]
    )
    more = f" and {len(split) - NAMED} more" if len(split) > NAMED else ""
    return [
        f"no judgments connect all items of {named}{more}: the scores of items in different sets "
        "of a group cannot be compared (each set has mean utility 0)"
    ]


def _sandwich(
    posterior: Posterior, utility: Floats, clusters: Integers, label: Integers
) -> tuple[Floats, list[str]]:
    """Return (N,) standard errors, one connected set of items after the other, and why some are NaN."""
    hessian = posterior.hessian(utility)
    outcomes, gradients = posterior.outcomes, posterior.gradients(utility).T
    set_of_answer = label[outcomes.items[0, outcomes.of_answer]]
    stderr, notes = np.full(len(label), np.nan), set()
    for items, answers in zip(_members(label), _members(set_of_answer), strict=True):
        cluster = np.unique(clusters[answers], return_inverse=True)[1]
        if why := _no_stderr(len(items), cluster):
            notes.add(why)
            continue
        outcome = outcomes.of_answer[answers]
        place = np.searchsorted(items, outcomes.items[:, outcome].T)
        bread = np.linalg.inv(hessian[items][:, items].toarray())
        meat = _scatter(gradients[outcome], place, cluster, len(items))
        stderr[items] = np.sqrt(((bread @ meat) * bread).sum(axis=1))
    return stderr, sorted(notes)


def _no_stderr(items: int, cluster: Integers) -> str | None:
    """Return why a connected set of items has no standard errors, None where it has."""
    if items > LARGEST_DENSE:
        return (
            f"no standard errors for a connected set of {items} items (the limit is "
            f"{LARGEST_DENSE}, they need a dense matrix); use the bootstrap"
        )
    if not cluster.any():
        return "no standard errors where all answers are of one cluster"
    return None


def _scatter(gradients: Floats, place: Integers, cluster: Integers, n: int) -> Floats:
    """Return (n, n) C/(C-1) Σ_c g_c g_cᵀ, g_c the sum of a cluster's gradients.

    `gradients`: (J, K) of each answer by its items' utilities; `place`: (J, K) those items.
    """
    from scipy.sparse import csr_array

    c = int(cluster.max()) + 1
    rows = np.repeat(cluster, place.shape[1])
    summed = csr_array((gradients.ravel(), (rows, place.ravel())), shape=(c, n))
    meat: Floats = (summed.T @ summed).toarray() * (c / (c - 1))
    return meat


def _members(label: Integers) -> list[Integers]:
    """Return the places of each label, ascending by label; those labelled -1 are left out."""
    order = np.argsort(label, kind="stable")
    starts = np.flatnonzero(np.diff(label[order], prepend=-1))
    return np.split(order, starts)[1:] if starts.size else []
