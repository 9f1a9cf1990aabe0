"""Item scores from judgments, by counting or by other methods such as choice models.

Each method estimates utilities on its own scale. A strictly increasing function maps them to scores in
[-1, 1], so that methods are comparable. `scale="unit"` is (score + 1) / 2, in [0, 1].

| method | utility u | score |
|---|---|---|
| counting | (best - worst) / appearances | u |
| analytical, abw | logit ln(p / (1 - p)) | 2 / (1 + exp(-u)) - 1 |
| elo | rating; the mean of each group is 1000 | 2 / (1 + 10^((1000 - u) / 400)) - 1 |
| rescorla-wagner, value-learning | learned share of wins, in [0, 1] | 2u - 1 |
| bradley-terry, plackett-luce, best-worst-logit, maxdiff | logit | 2 / (1 + exp(-u)) - 1 |

The logits of the choice models have mean 0 in each set of items connected by judgments.
`scale="counting"` puts the scores of choice models on the scale of counting: the mean probability of being
best minus that of being worst in a random tuple of the item's group (`bws.scoring.expected`).

The unit score of Bradley–Terry, Plackett–Luce and Elo is the probability of beating an item of the group's
average utility. The scores of `analytical` and `abw` equal those of counting except for items that are
always best or always worst; these methods add the logits, which `utilities` returns.

Options of a method are passed by name. `prior` (choice models) is the standard deviation of the Gaussian
prior of the utilities, in logits; by default it is estimated from the judgments (`bws.scoring.posterior`).
`passes` is an option of elo, rescorla-wagner and value-learning.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from dataclasses import replace
from importlib import import_module
from importlib.metadata import version
from typing import Literal, TypeVar, get_args

import numpy as np
from numpy.typing import NDArray

from bws.base.frames import Source, frames_like_source
from bws.base.notes import note
from bws.files import as_judgments
from bws.records import CanonicalJudgments, Counts, Judgments, Scores
from bws.scoring.anchoring import anchor
from bws.scoring.clustering import Cluster, Clusters, cluster_judgments, default_cluster
from bws.scoring.counting import SMOOTHED_COUNTING
from bws.scoring.expected import expected_counting
from bws.scoring.intervals import (
    IntervalSource,
    bootstrap_errors,
    compute_interval,
    resolve_interval_source,
)
from bws.scoring.methods import (
    METHODS,
    Floats,
    Interval,
    Method,
    Utilities,
    all_methods,
    get_method,
)
from bws.scoring.rank_sets import add_rank_sets

__all__ = ["METHODS", "Method", "Scale", "Utilities", "all_methods", "anchor", "score", "utilities"]

log = logging.getLogger(__name__)

Scale = Literal["signed", "unit", "counting"]
Number = TypeVar("Number", np.float64, np.int64)
CHOICES = {
    "scale": ("signed", "unit", "counting"),
    "interval": ("bootstrap", "model"),
    "cluster": get_args(Cluster),
}
NO_INTERVAL = Interval(None, None)
MAX_NAMED_ITEMS = 5
UNIT_DECIMALS = 15


for _module in ("counting", "sequential", "choice"):  # registers its methods, in this order
    import_module(f"bws.scoring.{_module}")


@frames_like_source
def score(
    judgments: Judgments | Source,
    method: str = "counting",
    *,
    scale: Scale = "signed",
    interval: IntervalSource = "bootstrap",
    bootstrap: int = 0,
    cluster: Cluster | None = None,
    ranks: bool = False,
    seed: int = 0,
    control: Iterable[str] = (),
    **options: float | None,
) -> Scores:
    """Score each item of the judgments: `Judgments`, a path, a data frame, or records.

    `scale`: "signed" in [-1, 1], "unit" in [0, 1], or, for choice models, "counting": in [-1, 1], with sum 0
    per group and without intervals. In groups with more than 100,000 possible tuples, tuples are sampled
    with `seed`.

    95 % intervals are utility ± t standard errors, mapped to scores. t is the quantile of Student's t
    distribution, with degrees of freedom from the clusters of the item. `interval="model"` uses the standard
    errors of the method, from counts or from the curvature of the likelihood, if the method has them.
    `interval="bootstrap"` uses `bootstrap` resamples of clusters, for all methods; 0 means no intervals. The
    intervals of counting, analytical and abw, whose scores differ only at the extremes, are computed on the
    logit scale with one pseudo-judgment, half best and half worst (`counting.smoothed_logit`); the end on the
    side of -1 or 1 is at least that of Jeffreys' interval (`counting.extreme_ends`).

    `cluster` is the source of the error of a score (table in `bws.scoring.clustering`). None means ``both``
    if annotators are named and judged several tuples, and ``tuple`` with a note if annotators are missing.
    ``judgment`` assumes independent judgments; choice models then use the inverse Hessian. The
    signature contains both choices (`cluster`, `standard_error`). With fewer than `MIN_CLUSTERS` clusters,
    overall or for an item, the interval is NaN, with a note; fewer than 20 clusters also give a note.

    `ranks`: add the ranks of each item within its group that tests of differences or the intervals permit
    (`bws.scoring.rank_sets`), with a note; needs intervals.

    The items are in the order of `judgments.tuples.items`, without control items; the numbers do not depend
    on the order of items, rows or annotators. Unjudged items score NaN, with a note. `control`: as in
    `read_judgments`.

    The signature contains the value of `prior` and whether it was estimated. Resamples are fitted with the
    same value.

    Raises ValueError for an unknown method, option or value or an invalid combination of them, and
    InputError if the judgments cannot be clustered as requested.

    >>> from bws.files import judgments_from_records
    >>> from bws.records import Judgment
    >>> judged = judgments_from_records([
    ...     Judgment(("a", "b", "c"), best="a", worst="c", annotator="w1"),
    ...     Judgment(("a", "b", "c"), best="a", worst="b", annotator="w2"),
    ... ])
    >>> score(judged).score.tolist()
    [1.0, -0.5, -0.5]
    >>> score(judged, "bradley-terry", scale="unit", prior=3).score.round(2).tolist()
    [0.87, 0.28, 0.28]
    >>> score(judged, "bradley-terry", scale="counting", prior=3).score.round(2).tolist()
    [0.94, -0.47, -0.47]
    """
    judgments = as_judgments(judgments, control)
    _check_choices(scale=scale, interval=interval, cluster=cluster or "both")
    scoring_method, settings = get_method(method, options)
    if scoring_method.stages is None:
        judgments.check_not_adaptive(f"method {method}")
    source = resolve_interval_source(method, interval, bootstrap)
    _check_scale(method, scale, source)
    if ranks and source is None:
        raise ValueError(
            "ranks need intervals; expected interval='model' or a number of bootstrap resamples"
        )
    canonical = judgments.canonical
    clusters: Clusters | None = None
    cluster_note = ""
    if source is not None and len(canonical):
        if cluster is None:
            cluster, cluster_note = default_cluster(canonical)
        clusters = cluster_judgments(judgments, cluster)
    log.debug(
        "scoring by %s %s: %d judgments of %d items",
        method,
        settings,
        len(canonical),
        len(canonical.items),
    )
    fitted = scoring_method.fit(
        canonical, clusters=None if bootstrap else clusters, seed=seed, **settings
    )
    settings |= fitted.estimated
    signed = _signed_scores(scoring_method, fitted, canonical, scale, seed)
    bounds, compared = _compute_interval(
        scoring_method, fitted, signed, canonical, clusters, bootstrap, seed, settings
    )
    if source is not None and not len(canonical):
        bounds = Interval(signed, signed)
    scores = _build_scores(
        judgments,
        scale,
        signed,
        bounds,
        [
            *_missing_notes(judgments),
            *([cluster_note] if cluster_note else []),
            *dict.fromkeys([*fitted.notes, *bounds.notes]),
        ],
        {
            "method": method,
            **settings,
            **_estimation_flags(scoring_method, fitted),
            "scale": scale,
            "seed": seed,
            "interval": source,
            "bootstrap": bootstrap,
            "cluster": clusters.kind if clusters else None,
            "standard_error": bounds.standard_error,
            "judgments": len(judgments),
            "sha256": canonical.digest(),
            "version": version("giccs"),
        },
    )
    return add_rank_sets(scores, judgments, clusters, compared) if ranks else scores


def _compute_interval(
    method: Method,
    fitted: Utilities,
    signed: Floats,
    canonical: CanonicalJudgments,
    clusters: Clusters | None,
    bootstrap: int,
    seed: int,
    settings: dict[str, float | None],
) -> tuple[Interval, Utilities]:
    """Return the intervals of the scores `signed`, and the utilities from whose errors they are computed."""
    if clusters is None:
        return NO_INTERVAL, fitted
    if clusters.no_interval_reason or not fitted.has_signal:
        missing = np.full(len(signed), np.nan)
        reasons = [clusters.no_interval_reason] if clusters.no_interval_reason else []
        return Interval(missing, missing, reasons), fitted
    n, counted = canonical.n_scored, None
    if method.formula is not None:
        method, settings = SMOOTHED_COUNTING, {}
        counted = canonical
        fitted = method.fit(canonical, clusters=None if bootstrap else clusters, seed=seed)
    if bootstrap:
        log.debug("%d resamples clustered by %s", bootstrap, clusters.kind)
        fixed = {name: value for name, value in settings.items() if value is not None}
        fitted = bootstrap_errors(method, fitted, canonical, clusters, bootstrap, seed, **fixed)
    return compute_interval(method, fitted.first(n), signed, clusters, counted), fitted


def utilities(
    judgments: Judgments | Source,
    method: str,
    *,
    cluster: Cluster | None = None,
    seed: int = 0,
    control: Iterable[str] = (),
    **options: float | None,
) -> Utilities:
    """Return the utilities of a method on its own scale, in the item order of the judgments.

    Control items have no utility here. `control`: as in `read_judgments`.

    `cluster`: the source of the standard errors of `analytical` and of the choice models, as in `score`. With
    None there are no standard errors, except those of the analytical formula, for independent judgments.

    >>> from bws.files import judgments_from_records
    >>> from bws.records import Judgment
    >>> judged = judgments_from_records([Judgment(("a", "b"), best="a", worst="b")] * 4)
    >>> utilities(judged, "bradley-terry", prior=3).utility.round(3).tolist()
    [1.55, -1.55]
    >>> found = utilities(judged, "analytical")  # p = 1, taken as 1 - 1/16
    >>> found.utility.round(3).tolist(), found.stderr.round(3).tolist()
    ([2.708, -2.708], [1.461, 1.461])
    """
    judgments = as_judgments(judgments, control)
    scoring_method, settings = get_method(method, options)
    if scoring_method.stages is None:
        judgments.check_not_adaptive(f"method {method}")
    if cluster is not None:
        _check_choices(cluster=cluster)
    clusters = None if cluster is None else cluster_judgments(judgments, cluster)
    fitted = scoring_method.fit(judgments.canonical, clusters=clusters, seed=seed, **settings)
    return replace(
        fitted,
        utility=_expand_to_all_items(fitted.utility, judgments),
        stderr=None if fitted.stderr is None else _expand_to_all_items(fitted.stderr, judgments),
        df=None if fitted.df is None else _expand_to_all_items(fitted.df, judgments),
        notes=[*_missing_notes(judgments), *fitted.notes],
    )


def _check_choices(**values: str) -> None:
    for name, value in values.items():
        if value not in CHOICES[name]:
            raise ValueError(f"{name} is {value!r}; expected one of: {', '.join(CHOICES[name])}")


def _check_scale(method: str, scale: Scale, source: IntervalSource | None) -> None:
    """Raise ValueError for a scale that the method or its intervals do not support."""
    if scale != "counting":
        return
    if METHODS[method].stages is None:
        supported = ", ".join(name for name, entry in METHODS.items() if entry.stages is not None)
        raise ValueError(
            f"scale 'counting' needs the probabilities of a choice model, which method {method} lacks; "
            f"expected one of: {supported}"
        )
    if source:
        raise ValueError(
            "scale 'counting' has no intervals, as a score depends on the utilities of all items of its "
            "group; expected scale 'signed' or 'unit' for intervals"
        )


def _signed_scores(
    method: Method, fitted: Utilities, canonical: CanonicalJudgments, scale: Scale, seed: int
) -> Floats:
    """Return the scores in [-1, 1] of the items that are not control items."""
    n = canonical.n_scored
    utility, group_of = fitted.utility[:n], canonical.group_of[:n]
    if scale != "counting" or method.stages is None:
        return method.to_score(utility)
    sizes = np.bincount(group_of)
    if canonical.n_controls and (sizes[sizes > 0] < canonical.k).any():
        raise ValueError(
            f"scale 'counting' needs tuples of {canonical.k} items, which a group does not have without its "
            "control items; expected scale 'signed' or 'unit'"
        )
    return expected_counting(utility, group_of, canonical.k, method.stages, seed)


def _estimation_flags(method: Method, fitted: Utilities) -> dict[str, bool]:
    """Return, for each option that can be estimated from the judgments, whether it was."""
    return {
        f"{name}_estimated": name in fitted.estimated
        for name, default in method.options.items()
        if default is None
    }


def _unit_scores(signed: Floats, counts: Counts | None) -> Floats:
    """Return (signed + 1) / 2 without rounding errors in the last bits: 0.1 for -0.8.

    A counting score is computed from `counts`, as the nearest number to
    (appearances + best - worst) / (2 appearances). Others, and the ends of intervals, have 15 decimals.
    """
    unit = np.round((signed + 1) / 2, UNIT_DECIMALS)
    if counts is None:
        return unit
    exact = (counts.appearances + counts.best - counts.worst) / (2 * counts.appearances)
    return np.where(np.abs(exact - unit) <= 10.0**-UNIT_DECIMALS, exact, unit)


def _build_scores(
    judgments: Judgments,
    scale: Scale,
    signed: Floats,
    bounds: Interval,
    notes: list[str],
    signature: dict[str, object],
) -> Scores:
    """Convert scores and intervals to the scale, in the item order of the judgments."""

    tuples, counts = (
        judgments.tuples,
        judgments.canonical.counts.first(judgments.canonical.n_scored),
    )
    n = tuples.n_scored

    def scaled_for_all_items(values: Floats, exact: Counts | None = None) -> Floats:
        scaled = _unit_scores(values, exact) if scale == "unit" else values
        return _expand_to_all_items(scaled, judgments)

    return Scores(
        tuples.items[:n],
        tuples.groups[tuples.group_of_item[:n]],
        scaled_for_all_items(signed, counts),
        _expand_to_all_items(counts.appearances, judgments),
        _expand_to_all_items(counts.best, judgments),
        _expand_to_all_items(counts.worst, judgments),
        None if bounds.low is None else scaled_for_all_items(bounds.low),
        None if bounds.high is None else scaled_for_all_items(bounds.high),
        notes,
        signature,
    )


def _expand_to_all_items(values: NDArray[Number], judgments: Judgments) -> NDArray[Number]:
    """Expand values of the judged items to all items, with NaN (or a count of 0) for unjudged ones.

    Values of control items are dropped.
    """
    fill_value = np.nan if values.dtype.kind == "f" else 0
    expanded = np.full(judgments.tuples.n_scored, fill_value, dtype=values.dtype)
    n = judgments.canonical.n_scored
    expanded[judgments.canonical.origin[:n]] = values[:n]
    return expanded


def _missing_notes(judgments: Judgments) -> Iterator[str]:
    """Yield notes on unscored items, skipped rows and control items."""
    if judgments.n_left_out:
        yield note("{n:d} rows of the judgments were skipped", n=judgments.n_left_out)
    yield from judgments.notes
    tuples = judgments.tuples
    is_judged = np.zeros(len(tuples.items), dtype=bool)
    is_judged[judgments.canonical.origin] = True
    missing = np.flatnonzero(~is_judged[: tuples.n_scored])
    if missing.size:
        first = tuples.items[missing[:MAX_NAMED_ITEMS]].tolist()
        item_list = ", ".join(map(str, first)) + (", ..." if len(missing) > MAX_NAMED_ITEMS else "")
        yield note(
            "{n:d} of {m:d} items were never judged and have no score: {items}",
            n=len(missing),
            m=tuples.n_scored,
            items=item_list,
        )
