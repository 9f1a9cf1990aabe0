"""Alternative annotator test: whether a language model may replace annotators.

Calderon, Reichart and Dror (ACL 2025, The Alternative Annotator Test for LLM-as-a-Judge, section 3;
arXiv 2501.10970), applied to best–worst scaling. Each annotator is left out in turn. On every tuple, the
model's answer and the annotator's answer are compared with the answers of the other annotators. The model
wins against an annotator if it is as good a representative of the others, except for a margin epsilon that
allows for the lower cost of the model. With a margin of 0, a model that is an annotator's equal hardly ever
wins; the power of the test states how often it may replace annotators.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bws.base.notes import note
from bws.base.tables import Column, ResultTable
from bws.common_tuples import CommonTuples
from bws.model_annotators import DEFAULT_EPSILON
from bws.raw_agreement import answer_counts
from bws.stats.clusters import (
    MANY_CLUSTERS,
    MIN_CLUSTERS,
    few_clusters_note,
    t_quantile,
    too_few_clusters_note,
    two_way_variance,
    variance_between,
)
from bws.stats.estimates import Estimate

Floats = NDArray[np.float64]
Longs = NDArray[np.int64]

FALSE_DISCOVERY_RATE = 0.05
MIN_TUPLES = 30
"""Minimum number of tuples of an annotator, for the t-test (section 3)."""
MIN_ANNOTATORS = 3
MIN_WINNING_RATE = 0.5
POWER_DRAWS = 2000
MAY_REPLACE = (
    "may replace annotators: winning rate {rate:.2f} ≥ {least:g}, {won:d} of {n:d} annotators, "
    "epsilon {epsilon:g}"
)
MAY_NOT = (
    "may not replace annotators: winning rate {rate:.2f} < {least:g}, {won:d} of {n:d} annotators, "
    "epsilon {epsilon:g}"
)
NEEDS = (
    "the test needs {n:d} annotators with {tuples:d} tuples each that the model and other annotators judged "
    "too"
)
CLUSTERED_NEEDS = (
    "the test needs {n:d} annotators with {tuples:d} tuples each that the model and other annotators judged "
    "too, of {clusters:d} {unit} or more"
)


@dataclass(frozen=True, eq=False)
class Wins:
    """R comparisons of a model with an annotator, one per annotator and tuple.

    An answer's score is its mean agreement with the answers of the other annotators of the tuple.
    """

    annotators: tuple[str, ...]
    annotator_of: Longs
    """(R,) index into `annotators`."""
    cluster_of: Longs
    """(R,) cluster of dependent tuples; distinct numbers for independent tuples."""
    model: Floats
    """(R,) whether the model's score is at least the annotator's, W^f; a share for several answers."""
    annotator: Floats
    """(R,) whether the annotator's score is at least the model's, W^h. Both are 1 for equal scores."""
    unit: str = "tuples"
    """Plural name of the clusters."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """Comparison of a model with one annotator."""

    annotator: str
    tuples: int
    clusters: int
    model_advantage: float
    """Probability that the model's answer is at least as good as the annotator's, rho^f."""
    annotator_advantage: float
    """Probability that the annotator's answer is at least as good as the model's, rho^h."""
    p: float
    """P-value of rho^f <= rho^h - epsilon, one-sided, not corrected."""
    corrected_p: float
    """P-value, corrected for the number of annotators (Benjamini and Yekutieli 2001)."""

    @property
    def is_won(self) -> bool:
        """Whether the model wins: the hypothesis is rejected at a false discovery rate of 0.05."""
        return self.corrected_p <= FALSE_DISCOVERY_RATE


@dataclass(frozen=True)
class AlternativeAnnotatorTest:
    """Result of the alternative annotator test of one model."""

    epsilon: float
    comparisons: tuple[Comparison, ...]
    """The annotators with enough tuples, sorted by id."""
    advantage: Estimate
    """Mean of the advantage probabilities rho^f over annotators, for comparisons of models; NaN without a
    verdict."""
    no_verdict: str = ""
    """Reason for the missing verdict, and what it needs; empty if there is one."""
    notes: tuple[str, ...] = ()
    """Annotators left out, and notes on test and interval."""
    power: float = math.nan
    """Probability that a model that is an annotator's equal may replace annotators; NaN without a verdict."""

    @property
    def winning_rate(self) -> float:
        """Share of the annotators against whom the model wins; NaN without a verdict."""
        if self.no_verdict:
            return math.nan
        return sum(each.is_won for each in self.comparisons) / len(self.comparisons)

    @property
    def may_replace(self) -> bool | None:
        """Whether the model may replace annotators: a winning rate of 0.5 or more; None without a verdict."""
        return None if self.no_verdict else self.winning_rate >= MIN_WINNING_RATE

    @property
    def verdict(self) -> str:
        """The verdict as a sentence without the name of the model."""
        if self.no_verdict:
            return f"no verdict: {self.no_verdict}"
        won = sum(each.is_won for each in self.comparisons)
        values = {
            "rate": self.winning_rate,
            "least": MIN_WINNING_RATE,
            "won": won,
            "n": len(self.comparisons),
            "epsilon": self.epsilon,
        }
        return note(MAY_REPLACE, **values) if self.may_replace else note(MAY_NOT, **values)

    def document(self) -> dict[str, Any]:
        """Return the result as a JSON-serialisable dict."""
        return {
            "verdict": self.verdict,
            "may_replace": self.may_replace,
            "winning_rate": self.winning_rate,
            "advantage": self.advantage.document(),
            "epsilon": self.epsilon,
            "power": self.power,
            "false_discovery_rate": FALSE_DISCOVERY_RATE,
            "annotators": [
                {**asdict(each), "is_won": each.is_won and not self.no_verdict}
                for each in self.comparisons
            ],
            "notes": list(self.notes),
        }

    def result_table(self) -> ResultTable:
        """Return a row per annotator."""
        columns = [
            Column("annotator", "annotator left out"),
            Column("tuples", "tuples", align="right"),
            Column("model_advantage", "model as good", ".3f", align="right"),
            Column("annotator_advantage", "annotator as good", ".3f", align="right"),
            Column("p", "p", ".3g", align="right"),
            Column("corrected_p", "corrected p", ".3g", align="right"),
            Column("wins", "model wins"),
        ]
        rows = [
            [
                *(each.annotator, each.tuples, each.model_advantage, each.annotator_advantage),
                *(each.p, each.corrected_p),
                "–" if self.no_verdict else "yes" if each.is_won else "no",
            ]
            for each in self.comparisons
        ]
        title = "Alternative annotator test (Calderon et al. 2025)"
        return ResultTable(columns, rows, self.notes, title)


def wins(common: CommonTuples) -> Wins:
    """Return the comparisons of a model with every named annotator who shares tuples with others.

    The agreement of two answers to a tuple is (same best + same worst) / 2. If the model answered a tuple
    several times, each of its answers is compared, and the comparison is the share of its answers: the
    probabilities are those of a single answer, for any number of runs. Judgments without annotator count
    only among the others.
    """
    people, model = common.people.canonical, common.model.canonical
    annotator_of = people.distinct_annotator_of
    pairs, pair_of = np.unique(
        np.column_stack([annotator_of, people.tuple_of]), axis=0, return_inverse=True
    )
    pair_of = pair_of.ravel()
    best, worst = (
        answer_counts(people.tuple_of, answers, people.k)[people.tuple_of]
        - answer_counts(pair_of, answers, people.k)[pair_of]
        for answers in (people.best, people.worst)
    )
    is_tested = (people.annotator_of >= 0) & (best.sum(axis=1) > 0)
    judgment, answer = _meetings(people.tuple_of, model.tuple_of)
    judgment, answer = judgment[is_tested[judgment]], answer[is_tested[judgment]]
    # Agreeing answers of the others, an integer: the number of the others is the same on both sides.
    score_of_annotator = (
        best[judgment, people.best[judgment]] + worst[judgment, people.worst[judgment]]
    )
    score_of_model = best[judgment, model.best[answer]] + worst[judgment, model.worst[answer]]
    pair_of = pair_of[judgment]
    n = np.bincount(pair_of, minlength=len(pairs))
    is_compared = n > 0
    model_wins, annotator_wins = (
        np.bincount(pair_of, is_as_good, len(pairs))[is_compared] / n[is_compared]
        for is_as_good in (
            score_of_model >= score_of_annotator,
            score_of_annotator >= score_of_model,
        )
    )
    annotators, tuples = pairs[is_compared].T
    cluster_of = common.cluster_of[tuples]
    names = tuple(people.annotators)
    return Wins(names, annotators, cluster_of, model_wins, annotator_wins, common.unit)


def _meetings(people: Longs, model: Longs) -> tuple[Longs, Longs]:
    """Return the indices of all pairs of a judgment of people and one of the model of the same tuple.

    people, model: tuple of each judgment, ascending.
    """
    first = np.searchsorted(model, people, "left")
    count = np.searchsorted(model, people, "right") - first
    judgment = np.repeat(np.arange(len(people)), count)
    within = np.arange(len(judgment)) - np.repeat(np.cumsum(count) - count, count)
    return judgment, np.repeat(first, count) + within


def alternative_annotator_test(
    compared: Wins, *, epsilon: float = DEFAULT_EPSILON
) -> AlternativeAnnotatorTest:
    """Return the alternative annotator test of a model.

    For each annotator j with at least 30 tuples, the null hypothesis rho_j^f <= rho_j^h - epsilon is tested
    by a one-sided t-test of the differences d = W^h - W^f against epsilon (section 3.2). The standard error
    of the mean difference is that of clusters c of dependent tuples, with G clusters and G - 1 degrees of
    freedom: V = G / (G - 1) sum_c (sum_{i in c} (d_i - mean d))^2 / n^2. For clusters of one tuple each,
    this is the t-test of the paper. Without variance (all differences are equal), p is its limit: 0 for a
    mean difference below epsilon, otherwise 1.

    Rejections are those of Benjamini and Yekutieli (2001) with a false discovery rate of 0.05. Annotators
    with fewer tuples or fewer than `MIN_CLUSTERS` clusters are left out, with a note. There is no verdict
    for fewer than three annotators.

    The interval of the mean advantage probability generalises to other annotators and clusters
    (`two_way_variance`); to other clusters alone with fewer than `MIN_CLUSTERS` annotators.

    Raises ValueError unless 0 <= epsilon < 1.

    >>> always = np.ones(30)
    >>> rows = Wins(("a", "b", "c"), np.repeat([0, 1, 2], 30), np.tile(np.arange(30), 3),
    ...             np.tile(always, 3), np.tile(always - np.arange(30) % 2, 3))
    >>> print(alternative_annotator_test(rows).verdict)
    may replace annotators: winning rate 1.00 ≥ 0.5, 3 of 3 annotators, epsilon 0.1
    """
    if not 0 <= epsilon < 1:
        raise ValueError(f"epsilon is {epsilon}; expected a number of at least 0 and below 1")
    rows_of = [np.flatnonzero(compared.annotator_of == j) for j in range(len(compared.annotators))]
    clusters = [len(np.unique(compared.cluster_of[rows])) for rows in rows_of]
    tested = [
        j
        for j, rows in enumerate(rows_of)
        if len(rows) >= MIN_TUPLES and clusters[j] >= MIN_CLUSTERS
    ]
    p = np.array([_p_value(compared, rows_of[j], epsilon) for j in tested])
    comparisons = [
        Comparison(
            compared.annotators[j],
            len(rows_of[j]),
            clusters[j],
            float(compared.model[rows_of[j]].mean()),
            float(compared.annotator[rows_of[j]].mean()),
            float(p_value),
            float(corrected),
        )
        for j, p_value, corrected in zip(tested, p, _corrected(p), strict=True)
    ]
    notes = [
        *_left_out_notes(rows_of, clusters, compared.unit),
        *_test_notes(compared.unit, rows_of, clusters, tested),
    ]
    if len(tested) < MIN_ANNOTATORS:
        return AlternativeAnnotatorTest(
            epsilon,
            tuple(comparisons),
            Estimate(math.nan),
            _needs(rows_of, compared.unit),
            tuple(notes),
        )
    tested_rows = [rows_of[j] for j in tested]
    advantage, interval_notes = _mean_advantage(compared, tested_rows)
    power = _power_of_equal(compared, tested_rows, epsilon)
    notes.append(
        note(
            "power: with epsilon {epsilon:g}, the margin by which a model may be worse, a model that is "
            "exactly as good as the annotators may replace them with a probability of {power:.0%}",
            epsilon=epsilon,
            power=power,
        )
    )
    return AlternativeAnnotatorTest(
        epsilon, tuple(comparisons), advantage, "", (*notes, *interval_notes), power
    )


def _power_of_equal(compared: Wins, rows_of: list[Longs], epsilon: float) -> float:
    """Return the probability of a winning rate of `MIN_WINNING_RATE` if all mean differences are 0.

    The mean differences W^h - W^f of the annotators are normal with the covariances between clusters of this
    study, because the model and the clusters are the same for all annotators; the standard errors are those
    of this study. The probability is that in `POWER_DRAWS` draws.
    """
    from scipy.special import stdtr

    clusters = np.unique(compared.cluster_of)
    sums, counts = np.zeros((len(rows_of), len(clusters))), np.zeros(len(rows_of))
    for j, rows in enumerate(rows_of):
        difference = compared.annotator[rows] - compared.model[rows]
        cluster_of = np.searchsorted(clusters, compared.cluster_of[rows])
        influence = (difference - difference.mean()) / len(rows)
        sums[j] = np.bincount(cluster_of, influence, len(clusters))
        counts[j] = len(np.unique(cluster_of))
    corrected = sums * np.sqrt(counts / (counts - 1))[:, None]
    normal = np.random.default_rng(0).standard_normal((POWER_DRAWS, len(clusters)))
    stderr = np.sqrt(np.sum(corrected**2, axis=1))
    with np.errstate(divide="ignore", invalid="ignore"):
        t = (normal @ corrected.T - epsilon) / stderr
    p = np.where(stderr > 0, stdtr(counts - 1, t), 0.0 if epsilon > 0 else 1.0)
    rank = np.arange(1, len(counts) + 1)
    limits = (
        FALSE_DISCOVERY_RATE * rank / (len(counts) * np.sum(1 / rank))
    )  # Benjamini and Yekutieli.
    n_won = np.max(np.where(np.sort(p, axis=1) <= limits, rank, 0), axis=1)
    return float(np.mean(n_won / len(counts) >= MIN_WINNING_RATE))


def _p_value(compared: Wins, rows: Longs, epsilon: float) -> float:
    """Return the p-value of a mean difference W^h - W^f of at least epsilon."""
    from scipy.special import stdtr

    difference = compared.annotator[rows] - compared.model[rows]
    mean = float(difference.mean())
    between = variance_between((difference - mean) / len(rows), compared.cluster_of[rows])
    (variance,), (count,) = between.corrected, between.clusters
    if variance == 0:
        return 0.0 if mean < epsilon else 1.0
    return float(stdtr(count - 1, (mean - epsilon) / math.sqrt(variance)))


def _corrected(p: Floats) -> Floats:
    """Return p-values corrected for dependent tests (Benjamini and Yekutieli 2001, theorem 1.3)."""
    from scipy.stats import false_discovery_control

    corrected: Floats = false_discovery_control(p, method="by")
    return corrected


def _mean_advantage(compared: Wins, rows_of: list[Longs]) -> tuple[Estimate, list[str]]:
    """Return the mean over annotators of rho^f, with its interval and notes on it."""
    rho = np.array([compared.model[rows].mean() for rows in rows_of])
    value, rows = float(rho.mean()), np.concatenate(rows_of)
    sizes = np.array([len(rows) for rows in rows_of])
    own = np.repeat(np.arange(len(rho)), sizes)
    influence = (compared.model[rows] - rho[own]) / (len(rho) * sizes[own])
    cluster_of = compared.cluster_of[rows]
    n_clusters = len(np.unique(cluster_of))
    if reason := too_few_clusters_note(n_clusters, compared.unit):
        return Estimate(value), [f"mean advantage probability: {reason}"]
    between = [variance_between(influence, cluster_of)]
    remarks = [few_clusters_note(n_clusters, compared.unit)]
    if len(rho) >= MIN_CLUSTERS:
        between += [
            variance_between((rho - value) / len(rho), np.arange(len(rho))),
            variance_between(influence, own * (cluster_of.max() + 1) + cluster_of),
        ]
        remarks.append(few_clusters_note(len(rho), "annotators"))
    else:
        remarks.insert(
            0,
            note(
                "fewer than {n:d} annotators: the interval does not generalise to others",
                n=MIN_CLUSTERS,
            ),
        )
    error = two_way_variance(*between)
    margin = float((t_quantile(error.df) * np.sqrt(error.variance))[0])
    estimate = Estimate(value, max(value - margin, 0.0), min(value + margin, 1.0))
    text = "; ".join(filter(None, remarks))
    return estimate, [f"mean advantage probability: {text}"] if text else []


def _left_out_notes(rows_of: list[Longs], clusters: list[int], unit: str) -> Iterator[str]:
    n_few = sum(len(rows) < MIN_TUPLES for rows in rows_of)
    if n_few:
        yield note(
            "{n:d} of {m:d} annotators are left out: fewer than {tuples:d} tuples that the model and others "
            "judged too",
            n=n_few,
            m=len(rows_of),
            tuples=MIN_TUPLES,
        )
    n_clustered = sum(
        len(rows) >= MIN_TUPLES and count < MIN_CLUSTERS
        for rows, count in zip(rows_of, clusters, strict=True)
    )
    if n_clustered:
        yield note(
            "{n:d} of {m:d} annotators are left out: tuples of fewer than {least:d} {unit}",
            n=n_clustered,
            m=len(rows_of),
            least=MIN_CLUSTERS,
            unit=unit,
        )


def _test_notes(
    unit: str, rows_of: list[Longs], clusters: list[int], tested: list[int]
) -> Iterator[str]:
    if not tested:
        return
    n_tuples, n_clusters = (
        [counts[j] for j in tested] for counts in ([*map(len, rows_of)], clusters)
    )
    if n_clusters == n_tuples:
        yield note("t-test of independent tuples")
        return
    fewest = min(n_clusters)
    text = note(
        "t-test with standard errors clustered by {unit}, whose tuples are dependent", unit=unit
    )
    if fewest < MANY_CLUSTERS:
        text += "; " + note(
            "approximate below {enough:d}, the fewest of an annotator are {fewest:d}",
            enough=MANY_CLUSTERS,
            fewest=fewest,
        )
    yield text


def _needs(rows_of: list[Longs], unit: str) -> str:
    """Return why there is no verdict, and what it needs."""
    most = sorted((len(rows) for rows in rows_of), reverse=True)[:MIN_ANNOTATORS]
    have = ", ".join(map(str, most)) or "none"
    values = {"n": MIN_ANNOTATORS, "tuples": MIN_TUPLES, "clusters": MIN_CLUSTERS, "unit": unit}
    needs = note(NEEDS, **values) if unit == "tuples" else note(CLUSTERED_NEEDS, **values)
    return f"{needs}; " + note("the annotators with the most have {tuples}", tuples=have)
