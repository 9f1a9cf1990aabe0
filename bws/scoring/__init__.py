"""Judgments to item scores: counting first, choice models behind the same call.

Every method finds utilities on a scale of its own and maps them to scores in [-1, 1], strictly
increasing, so that methods compare; `scale="unit"` is (score + 1) / 2, in [0, 1].

| method | utility u | score |
|---|---|---|
| counting | (best - worst) / appearances | u |
| analytical, abw | logit ln(p / (1 - p)) | 2 / (1 + exp(-u)) - 1 |
| elo | rating; each group's mean is 1000 | 2 / (1 + 10^((1000 - u) / 400)) - 1 |
| rescorla-wagner, value-learning | share of wins learned, in [0, 1] | 2u - 1 |
| bradley-terry, plackett-luce, best-worst-logit, maxdiff | logit | 2 / (1 + exp(-u)) - 1 |

The logits of the choice models have mean 0 in each set of items that judgments connect.
So the unit score of Bradley–Terry, Plackett–Luce and Elo is the chance to beat an item of the
group's average utility. The score of `analytical` and `abw` is that of counting but for items that
were always best or always worst: what they add are the logits, which `utilities` returns.

A method that has options takes them by name: `prior` (choice models; the standard deviation of the
utilities' Gaussian prior, in logits) and `passes` (elo, rescorla-wagner, value-learning).
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import replace
from importlib.metadata import version
from typing import Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from bws.records import Judgments, Scores
from bws.scoring.anchoring import anchor
from bws.scoring.answers import Answers, in_order
from bws.scoring.bootstrap import percentile_interval
from bws.scoring.intervals import Cluster, Source, clusters_of, interval_source, model_interval
from bws.scoring.methods import METHODS, method_of
from bws.scoring.records import Floats, Interval, Method, Utilities

__all__ = ["METHODS", "Method", "Utilities", "anchor", "score", "utilities"]

log = logging.getLogger(__name__)

Scale = Literal["signed", "unit"]
Number = TypeVar("Number", np.float64, np.int64)
ALLOWED = {
    "scale": ("signed", "unit"),
    "interval": ("bootstrap", "model"),
    "cluster": ("annotator", "tuple"),
}
NO_INTERVAL = Interval(None, None)
NAMED = 5


def score(
    judgments: Judgments,
    method: str = "counting",
    *,
    scale: Scale = "signed",
    interval: Source = "bootstrap",
    bootstrap: int = 0,
    cluster: Cluster = "annotator",
    seed: int = 0,
    **options: float,
) -> Scores:
    """Score every item of the judgments.

    `interval="bootstrap"`: 95 % percentile intervals from `bootstrap` resamples of whole annotators
    or tuples (`cluster`); 0 gives none. `interval="model"`: u ± 1.96 standard errors, mapped to
    scores, for methods that have them. The items stand in the order of `judgments.tuples.items`;
    the numbers do not depend on the order of items, rows or annotators. An item that nobody judged
    scores NaN, and `notes` says so.

    Raises ValueError for an unknown method, option or value; InputError where the judgments cannot
    be clustered as asked.

    >>> from bws.records import Judgment, Judgments
    >>> judged = Judgments.from_records([
    ...     Judgment(("a", "b", "c"), best="a", worst="c", annotator="w1"),
    ...     Judgment(("a", "b", "c"), best="a", worst="b", annotator="w2"),
    ... ])
    >>> score(judged).score.tolist()
    [1.0, -0.5, -0.5]
    >>> score(judged, "bradley-terry", scale="unit").score.round(2).tolist()
    [0.87, 0.28, 0.28]
    """
    _check_allowed(scale=scale, interval=interval, cluster=cluster)
    chosen, settings = method_of(method, options)
    source = interval_source(method, interval, bootstrap)
    clustered = source == "bootstrap" or (source == "model" and chosen.formula is None)
    answers = in_order(judgments)
    clusters = clusters_of(judgments, answers, cluster) if clustered else None
    log.debug(
        "scoring by %s %s: %d judgments of %d items",
        method,
        settings,
        len(answers),
        len(answers.items),
    )
    found = chosen.fit(answers, clusters=None if bootstrap else clusters, seed=seed, **settings)
    ends = model_interval(chosen, found) if source == "model" else NO_INTERVAL
    if clusters is not None and bootstrap:
        log.debug(
            "%d resamples of %d clusters (%s)", bootstrap, clusters.max(initial=-1) + 1, cluster
        )
        ends = percentile_interval(chosen, answers, clusters, bootstrap, seed, **settings)
    return _scores(
        judgments,
        answers,
        scale,
        chosen.to_score(found.utility),
        ends,
        [*_missing_notes(judgments, answers), *found.notes, *ends.notes],
        {
            "method": method,
            **settings,
            "scale": scale,
            "seed": seed,
            "interval": source,
            "bootstrap": bootstrap,
            "cluster": cluster if clustered else None,
            "judgments": len(judgments),
            "sha256": answers.digest(),
            "version": version("giccs"),
        },
    )


def utilities(
    judgments: Judgments,
    method: str,
    *,
    cluster: Cluster | None = None,
    seed: int = 0,
    **options: float,
) -> Utilities:
    """Return what a method finds on its own scale, for the items in the judgments' order.

    `cluster`: whose answers hang together, for the standard errors of the choice models; None
    leaves these out. The analytical logit's come from its formula in any case.

    >>> from bws.records import Judgment, Judgments
    >>> judged = Judgments.from_records([Judgment(("a", "b"), best="a", worst="b")] * 4)
    >>> utilities(judged, "bradley-terry").utility.round(3).tolist()
    [1.55, -1.55]
    >>> found = utilities(judged, "analytical")  # p = 1, taken as 1 - 1/16
    >>> found.utility.round(3).tolist(), found.stderr.round(3).tolist()
    ([2.708, -2.708], [1.461, 1.461])
    """
    chosen, settings = method_of(method, options)
    if cluster is not None:
        _check_allowed(cluster=cluster)
    answers = in_order(judgments)
    clusters = None if cluster is None else clusters_of(judgments, answers, cluster)
    found = chosen.fit(answers, clusters=clusters, seed=seed, **settings)
    return replace(
        found,
        utility=_spread(found.utility, answers, judgments),
        stderr=None if found.stderr is None else _spread(found.stderr, answers, judgments),
        notes=[*_missing_notes(judgments, answers), *found.notes],
    )


def _check_allowed(**values: str) -> None:
    for name, value in values.items():
        if value not in ALLOWED[name]:
            raise ValueError(f"{name} is {value!r}; it is one of: {', '.join(ALLOWED[name])}")


def _scores(
    judgments: Judgments,
    answers: Answers,
    scale: Scale,
    signed: Floats,
    ends: Interval,
    notes: list[str],
    signature: dict[str, object],
) -> Scores:
    """Put scores and intervals on their scale, and everything in the judgments' order of items."""

    def placed(values: Floats) -> Floats:
        return _spread(values if scale == "signed" else (values + 1) / 2, answers, judgments)

    tuples, counts = judgments.tuples, answers.counts
    return Scores(
        tuples.items,
        tuples.groups[tuples.group_of_item],
        placed(signed),
        _spread(counts.appearances, answers, judgments),
        _spread(counts.best, answers, judgments),
        _spread(counts.worst, answers, judgments),
        None if ends.low is None else placed(ends.low),
        None if ends.high is None else placed(ends.high),
        notes,
        signature,
    )


def _spread(values: NDArray[Number], answers: Answers, judgments: Judgments) -> NDArray[Number]:
    """Return the answers' items' values for all items; NaN (or a count of 0) where never judged."""
    nothing = np.nan if values.dtype.kind == "f" else 0
    spread = np.full(len(judgments.tuples.items), nothing, dtype=values.dtype)
    spread[answers.origin] = values
    return spread


def _missing_notes(judgments: Judgments, answers: Answers) -> Iterator[str]:
    """Say which items have no score, and how many rows were not used."""
    if judgments.left_out:
        yield f"{len(judgments.left_out)} rows of the judgments were left out"
    tuples = judgments.tuples
    judged = np.zeros(len(tuples.items), dtype=bool)
    judged[answers.origin] = True
    missing = np.flatnonzero(~judged)
    if missing.size:
        first = tuples.items[missing[:NAMED]].tolist()
        shown = ", ".join(map(str, first)) + (", ..." if len(missing) > NAMED else "")
        yield (
            f"{len(missing)} of {len(tuples.items)} items were never judged and have no score: {shown}"
        )
