"""The decision whether an adaptive study can end: three gates, all to be passed after a round.

1. Posterior: the 5 % quantile, over draws from the posterior, of the correlation between the scores and those
   of the draw reaches the target.
2. Audit: the model predicts random tuples as well as it claims. X_t is the share of the 2K-3 pairs implied by
   the answer to audit tuple t that the scores order rightly, computed from the judgments of earlier rounds;
   e_t is the share that the model then expects. If the model is right, X_t - e_t has mean 0 whatever the
   data before. A confidence sequence for the mean difference, valid at any stopping time, contains 0.
3. Coverage: every item has at least 4 judgments, and the judgments connect all items of a group.

The confidence sequence tests all means m by betting (Waudby-Smith and Ramdas 2023): the capital
K_t(m) = Π (1 + λ_i (Z_i - m)) of a bet against m grows if m is wrong. A mean is excluded once the capital of
a bet that it is too low, or too high, reaches 2/α. The accuracy itself rises from round to round, so that its
mean is not a constant; the difference from the expected accuracy is.

Intervals that may be watched after each round are û ± se √(2 (1 + 1/(nρ²)) log(√(nρ² + 1)/α)), with n
judgments of the item and the clustered standard error (Waudby-Smith et al. 2024): about 1.55 times the
interval for a fixed n. For few clusters, the factor is multiplied by the ratio of the quantiles of
Student's t and the normal distribution.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bws.adaptive.model import MODEL, Fit, fit
from bws.adaptive.rounds import (
    FIRST_ROUND,
    in_canonical_order,
    refuse_unknown,
    without_controls,
)
from bws.base.frames import Source, Tabular
from bws.base.notes import note
from bws.base.problems import InputError, Problem
from bws.base.tables import Column, ResultTable
from bws.files import as_judgments, as_tuples
from bws.files.controls import name_list
from bws.files.tuples import ROUND_CELLS
from bws.records import Floats, Judgments, Tuples
from bws.scoring import utilities
from bws.scoring.expected import answer_probabilities
from bws.scoring.posterior import PRIOR_RANGE
from bws.stats.clusters import Z_95, t_quantile

ALPHA = 0.05
N_DRAWS = 400
MIN_APPEARANCES = 4
CORRELATION_QUANTILES = (0.05, 0.5, 0.95)
GRID = np.linspace(-1, 1, 2001)
"""Candidate means of the confidence sequence, 0.001 apart."""
AUDIT_BLOCK_SIZE = 1 << 9
"""Number of audit judgments whose draws are computed together."""
MAX_BET = 0.5
"""Largest share of the capital that a bet can lose in a step."""
RHO_SQUARED = 1.25
"""Tuning of watched intervals: nearly shortest for 4 to 40 judgments of an item."""
ROUNDS = "{rounds:d} rounds, {judgments:d} judgments, {audit:d} of audit tuples; target {target:g}"
ONE_ROUND = (
    "{rounds:d} round, {judgments:d} judgments, {audit:d} of audit tuples; target {target:g}"
)
AUDITED = (
    "{rounds:d} rounds, {judgments:d} judgments, {audit:d} of audit tuples ({share:.1%} of their pairs "
    "ordered rightly); target {target:g}"
)
ONE_AUDITED = (
    "{rounds:d} round, {judgments:d} judgments, {audit:d} of audit tuples ({share:.1%} of their pairs "
    "ordered rightly); target {target:g}"
)
AUDIT_PASSED = (
    "{share:.1%} of the pairs in {tuples:d} random tuples are ordered rightly, {expected:.1%} expected; "
    "difference within [{low:+.3f}, {high:+.3f}]"
)
AUDIT_FAILED = (
    "{share:.1%} of the pairs in {tuples:d} random tuples are ordered rightly, {expected:.1%} expected; "
    "difference within [{low:+.3f}, {high:+.3f}]: the model does not fit"
)


@dataclass(frozen=True)
class Gate:
    """A condition for the end of a study."""

    name: str
    passed: bool
    figure: float
    """The measured value; NaN if undefined."""
    sentence: str


@dataclass(frozen=True, eq=False, repr=False)
class Stopping(Tabular):
    """Evidence for or against ending a study."""

    target: float
    rounds: int
    judgments: int
    prior: float
    """Estimated standard deviation of the utilities in logits; 0 means that there is no signal."""
    claimed: float
    """Median correlation of the scores with those of draws from the posterior: the expected correlation with
    the true scores.
    """
    quantiles: tuple[float, float, float]
    """Quantiles of this correlation, of `CORRELATION_QUANTILES`: 5, 50 and 95 %."""
    gates: tuple[Gate, ...]
    audit: tuple[float, float, float]
    """Mean of X_t - e_t and its 95 % confidence sequence; NaN without audit judgments."""
    audit_accuracy: float
    n_audit: int
    model_fits: bool
    """False if the confidence sequence excludes 0."""

    @property
    def stop(self) -> bool:
        """Whether all gates are passed."""
        return all(gate.passed for gate in self.gates)

    @property
    def verdict(self) -> str:
        """The decision as a sentence."""
        if not self.model_fits:
            return note("continue: audit tuples show that the choice model does not fit")
        if self.stop:
            return note("stop: the scores reach the target of {target:g}", target=self.target)
        failed = ", ".join(gate.name for gate in self.gates if not gate.passed)
        return note("continue: not yet passed: {gates}", gates=failed)

    @property
    def summary(self) -> str:
        """Rounds, judgments and audit accuracy as a sentence."""
        values = {
            "rounds": self.rounds,
            "judgments": self.judgments,
            "audit": self.n_audit,
            "share": self.audit_accuracy,
            "target": self.target,
        }
        if self.rounds == 1:
            return note(ONE_AUDITED, **values) if self.n_audit else note(ONE_ROUND, **values)
        return note(AUDITED, **values) if self.n_audit else note(ROUNDS, **values)

    def document(self) -> dict[str, Any]:
        """Return the evidence as plain dicts."""
        return {
            "stop": self.stop,
            "verdict": self.verdict,
            "target": self.target,
            "rounds": self.rounds,
            "judgments": self.judgments,
            "prior": self.prior,
            "claimed": self.claimed,
            "quantiles": dict(zip(map(str, CORRELATION_QUANTILES), self.quantiles, strict=True)),
            "gates": [
                {"name": g.name, "passed": g.passed, "figure": g.figure, "sentence": g.sentence}
                for g in self.gates
            ],
            "audit": {
                "judgments": self.n_audit,
                "accuracy": self.audit_accuracy,
                "difference": self.audit[0],
                "low": self.audit[1],
                "high": self.audit[2],
                "model_fits": self.model_fits,
            },
        }

    def result_table(self) -> ResultTable:
        """Return a row per gate."""
        columns = [
            Column("gate", "gate"),
            Column("passed", "passed"),
            Column("figure", "figure", ".3f", align="right"),
            Column("sentence", "evidence"),
        ]
        rows = [
            (gate.name, "yes" if gate.passed else "no", gate.figure, gate.sentence)
            for gate in self.gates
        ]
        return ResultTable(
            columns, rows, [self.summary, self.verdict], "End of the study", "undefined"
        )


def stopping(
    judgments: Judgments | Source,
    tuples: Tuples | Source | None = None,
    target: float = 0.95,
    *,
    seed: int = 0,
    control: Iterable[str] = (),
) -> Stopping:
    """Decide from the judgments of all rounds whether a study can end.

    target: required correlation with the true scores, in (0, 1). tuples: those of all rounds, with the
    columns ``round`` and ``purpose``; by default the judged tuples, with these columns of the judgments.
    Equal judgments, tuples and seeds give equal evidence, in any order of rows and of items in a row. Tuples
    with control items do not count (`control`: as in `read_judgments`). Raises ValueError for a target out of
    range, for judgments of items or tuples that are not in `tuples`, and for a column ``round`` that is no
    number.
    """
    if not 0 < target < 1:
        raise ValueError(f"target is {target}; expected a correlation between 0 and 1")
    control = name_list(control)
    judgments = as_judgments(judgments, control)
    tuples = _judged_tuples(judgments) if tuples is None else as_tuples(tuples, control)
    judgments, tuples = without_controls(judgments, tuples)
    tuples = in_canonical_order(tuples)
    rng = np.random.Generator(np.random.PCG64(seed))
    round_of, is_audit = _rounds_of(judgments, tuples)
    fitted = fit(tuples, judgments)
    quantiles = _correlation_quantiles(fitted, rng)
    observed, expected = _audit_shares(judgments, tuples, round_of, is_audit, seed)
    difference = observed - expected
    interval = confidence_sequence(difference) if len(difference) else (math.nan, math.nan)
    mean = float(difference.mean()) if len(difference) else math.nan
    fits = not len(difference) or interval[0] <= 0 <= interval[1]
    accuracy = float(observed.mean()) if len(observed) else math.nan
    gates = (
        _posterior_gate(quantiles, target)
        if fitted.prior
        else _no_signal_gate(fit(tuples, judgments, min_prior=PRIOR_RANGE[0]), seed),
        _audit_gate(accuracy, expected, interval, fits=fits),
        _coverage_gate(fitted),
    )
    return Stopping(
        target=target, rounds=int(round_of.max(initial=0)), judgments=len(judgments),
        prior=fitted.prior, claimed=quantiles[1], quantiles=(quantiles[0], quantiles[1], quantiles[2]),
        gates=gates, audit=(mean, *interval),
        audit_accuracy=accuracy, n_audit=len(observed), model_fits=fits,
    )  # fmt: skip


def _judged_tuples(judgments: Judgments) -> Tuples:
    """Return the tuples of the judgments with their rounds; tuples without rounds are round 1."""
    columns = {}
    for name, default in FIRST_ROUND.items():
        columns[name] = np.full(len(judgments.tuples), default, dtype=object)
        columns[name][judgments.tuple_of] = judgments.columns.get(name, default)
    problems = [
        Problem(judgments.file, line, f"{name} is {text!r}; expected {expected}")
        for name, (pattern, expected) in ROUND_CELLS.items()
        for text, line in _first_lines(judgments, name).items()
        if not re.fullmatch(pattern, text)
    ]
    if problems:
        raise InputError(problems)
    return replace(judgments.tuples, columns=columns)


def _first_lines(judgments: Judgments, name: str) -> dict[str, int | None]:
    """Return the distinct texts of a column with the line of the first judgment that has each."""
    if name not in judgments.columns:
        return {}
    texts = judgments.columns[name]
    lines: list[int | None] = [None] * len(texts)
    if judgments.lines is not None and judgments.files is None:
        lines = judgments.lines.tolist()
    return dict(reversed([*zip(texts, (line or None for line in lines), strict=True)]))


def watched_items(judgments: Judgments | Source) -> ResultTable:
    """Return utilities of the judged items with 95 % intervals that may be watched after each round.

    The standard errors are those of the best–worst logit, clustered by annotator.
    """
    judgments = as_judgments(judgments)
    fitted = utilities(judgments, "best-worst-logit", cluster="annotator")
    tuples, counts, n = judgments.tuples, judgments.canonical.counts, judgments.tuples.n_scored
    appearances = np.zeros(len(tuples.items), dtype=np.int64)
    appearances[judgments.canonical.origin] = counts.appearances
    appearances = appearances[:n]
    stderr = np.full(n, math.nan) if fitted.stderr is None else fitted.stderr
    half_width = stderr * watched_factor(appearances, fitted.df)
    columns = [
        Column("item", "item"), Column("group", "group"), Column("utility", "utility", ".2f"),
        Column("low", "low", ".2f"), Column("high", "high", ".2f"), Column("judgments", "judgments"),
    ]  # fmt: skip
    rows = list(
        zip(
            tuples.items[:n].tolist(), tuples.groups[tuples.group_of_item[:n]].tolist(),
            fitted.utility.tolist(),
            (fitted.utility - half_width).tolist(), (fitted.utility + half_width).tolist(),
            appearances.tolist(), strict=True,
        )
    )  # fmt: skip
    return ResultTable(columns, rows, fitted.notes, "Utilities with intervals valid in all rounds")


def watched_factor(appearances: NDArray[np.int64], df: Floats | None = None) -> Floats:
    """Return the multiple of the standard error that may be watched after each round, per item.

    df: (N,) degrees of freedom of the standard errors; None: many. Items without judgments have NaN.

    >>> watched_factor(np.array([4, 8, 40])).round(2).tolist()
    [3.06, 3.04, 3.18]
    """
    x = np.where(appearances > 0, appearances * RHO_SQUARED, math.nan)
    factor: Floats = np.sqrt(2 * (1 + 1 / x) * np.log(np.sqrt(x + 1) / ALPHA))
    if df is None:
        return factor
    wider: Floats = factor * t_quantile(df) / Z_95
    return wider


def confidence_sequence(values: Floats, alpha: float = ALPHA) -> tuple[float, float]:
    """Return the interval at the last of T values in [-1, 1] with constant conditional mean.

    With probability 1 - alpha the intervals of all t contain the mean. Means are excluded for good, so that
    the interval never grows.

    >>> low, high = confidence_sequence(np.tile([0.1, -0.1], 200))
    >>> low < 0 < high, high - low < 0.1
    (True, True)
    """
    scaled = (np.asarray(values) + 1) / 2
    bets = _bets(scaled, alpha)
    means = (GRID + 1) / 2
    with np.errstate(divide="ignore"):
        up = np.minimum(bets[:, None], MAX_BET / means)
        down = np.minimum(bets[:, None], MAX_BET / (1 - means))
    too_low = np.log1p(up * (scaled[:, None] - means)).cumsum(axis=0).max(axis=0)
    too_high = np.log1p(-down * (scaled[:, None] - means)).cumsum(axis=0).max(axis=0)
    included = GRID[np.maximum(too_low, too_high) < math.log(2 / alpha)]
    if not len(included):
        return math.nan, math.nan
    return float(included[0]), float(included[-1])


def _bets(values: Floats, alpha: float) -> Floats:
    """Return (T,) bets λ_t = √(2 log(2/α) / (σ̂²_{t-1} t log(t + 1))) from the values before each."""
    t = np.arange(1, len(values) + 1)
    mean = (0.5 + values.cumsum()) / (t + 1)
    variance = (0.25 + ((values - mean) ** 2).cumsum()) / (t + 1)
    before = np.concatenate([[0.25], variance[:-1]])
    bets: Floats = np.sqrt(2 * math.log(2 / alpha) / (before * t * np.log(t + 1)))
    return bets


def audit_shares(
    fitted: Fit,
    judgments: Judgments,
    rows: NDArray[np.intp],
    indices: NDArray[np.int64],
    rng: np.random.Generator,
) -> tuple[Floats, Floats]:
    """Return (J,) the shares of rightly ordered pairs, and those expected by the model.

    indices: index in the fit of each item of the judgments.
    """
    members = indices[judgments.tuples.members[judgments.tuple_of[rows]]]
    k = members.shape[1]
    answers = list(_answers(k))
    row = {answer: index for index, answer in enumerate(answers)}
    share = _right_shares(fitted.utility[members], answers)
    given = [
        row[best, worst]
        for best, worst in zip(
            judgments.best[rows].tolist(), judgments.worst[rows].tolist(), strict=True
        )
    ]
    draws = fitted.draw(N_DRAWS // 4, rng)
    expected = np.zeros(len(rows))
    for start in range(0, len(rows), AUDIT_BLOCK_SIZE):
        block = slice(start, start + AUDIT_BLOCK_SIZE)
        merit = np.moveaxis(draws[:, members[block]], -1, 0)  # (K, R, B)
        _, probability = answer_probabilities(MODEL(k), merit.reshape(k, -1))
        mean = probability.reshape(len(answers), *merit.shape[1:]).mean(axis=1)
        expected[block] = (mean * share[:, block]).sum(axis=0)
    return share[given, np.arange(len(rows))], expected


def _answers(k: int) -> Iterator[tuple[int, int]]:
    """Yield (best, worst) in the order of `answer_probabilities`."""
    from itertools import permutations

    yield from permutations(range(k), 2)


def _right_shares(utility: Floats, answers: list[tuple[int, int]]) -> Floats:
    """Return (L, J) the share of implied pairs that (J, K) utilities order rightly; equal ones count half."""
    k = utility.shape[1]
    shares = np.empty((len(answers), len(utility)))
    for index, (best, worst) in enumerate(answers):
        middle = [position for position in range(k) if position not in (best, worst)]
        pairs = [(best, worst), *((best, m) for m in middle), *((m, worst) for m in middle)]
        difference = np.array([utility[:, i] - utility[:, j] for i, j in pairs])
        shares[index] = ((np.sign(difference) + 1) / 2).mean(axis=0)
    return shares


def _rounds_of(judgments: Judgments, tuples: Tuples) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return (J,) the round of each judgment, and whether its tuple is an audit tuple."""
    row_of_id = {identity: row for row, identity in enumerate(tuples.ids)}
    refuse_unknown([identity for identity in judgments.tuples.ids if identity not in row_of_id])
    rows = np.array([row_of_id[i] for i in judgments.tuples.ids], dtype=np.int64)[
        judgments.tuple_of
    ]
    if not tuples.columns:
        return np.ones(len(judgments), dtype=np.int64), np.zeros(len(judgments), dtype=bool)
    rounds = np.array([int(text) for text in tuples.columns["round"]], dtype=np.int64)
    return rounds[rows], (tuples.columns["purpose"] == "audit")[rows]


def _audit_shares(
    judgments: Judgments,
    tuples: Tuples,
    round_of: NDArray[np.int64],
    is_audit: NDArray[np.bool_],
    seed: int,
) -> tuple[Floats, Floats]:
    """Return the observed and expected shares of all audit judgments, by round, in random order within it."""
    index = {key: number for number, key in enumerate(tuples.item_keys)}
    indices = np.array([index[key] for key in judgments.tuples.item_keys], dtype=np.int64)
    parts = []
    for number in np.unique(round_of[is_audit]):
        rng = np.random.Generator(np.random.PCG64([seed, number]))
        rows = np.flatnonzero(is_audit & (round_of == number))
        rows = rng.permutation(rows[_order_by_content(judgments, rows, indices)])
        earlier = fit(tuples, judgments.select(round_of < number))
        parts.append(audit_shares(earlier, judgments, rows, indices, rng))
    if not parts:
        return np.empty(0), np.empty(0)
    observed, expected = (np.concatenate(part) for part in zip(*parts, strict=True))
    return observed, expected


def _order_by_content(
    judgments: Judgments, rows: NDArray[np.intp], indices: NDArray[np.int64]
) -> NDArray[np.intp]:
    """Return the order of rows by the indices of their items, and of the best and the worst one."""
    members = np.sort(indices[judgments.tuples.members[judgments.tuple_of[rows]]], axis=1)
    answers = indices[judgments.best_item[rows]], indices[judgments.worst_item[rows]]
    return np.lexsort((*answers, *members.T))


def _correlation_quantiles(fitted: Fit, rng: np.random.Generator) -> list[float]:
    """Return quantiles of the correlation of the scores with those of draws; 0 without signal."""
    if not fitted.prior:
        return [0.0] * len(CORRELATION_QUANTILES)
    draws = fitted.scores_of(np.concatenate([fitted.utility[None], fitted.draw(N_DRAWS, rng)]))
    centred = draws - draws.mean(axis=1, keepdims=True)
    scale = np.linalg.norm(centred, axis=1)
    correlation = centred[1:] @ centred[0] / (scale[1:] * scale[0])
    quantiles: list[float] = np.quantile(correlation, CORRELATION_QUANTILES).tolist()
    return quantiles


def _posterior_gate(quantiles: list[float], target: float) -> Gate:
    low, texts = quantiles[0], _format_quantiles(quantiles)
    sentence = (
        note(
            "no signal: the quantiles of the correlation with the true scores are {quantiles}",
            quantiles=texts,
        )
        if low <= 0
        else note(
            "the quantiles of the correlation with the true scores are {quantiles}", quantiles=texts
        )
    )
    return Gate("posterior", low >= target, low, sentence)


def _no_signal_gate(fitted: Fit, seed: int) -> Gate:
    """Return the gate if the estimated prior is 0, with the quantiles under the smallest other one."""
    sentence = note("the judgments contain no signal")
    if fitted.prior:
        quantiles = _correlation_quantiles(fitted, np.random.Generator(np.random.PCG64(seed)))
        sentence = note(
            "the judgments contain no signal: the estimated standard deviation of the utilities is 0; with "
            "{prior:g}, the quantiles of the correlation with the true scores are {quantiles}",
            prior=fitted.prior,
            quantiles=_format_quantiles(quantiles),
        )
    return Gate("posterior", False, math.nan, sentence)


def _format_quantiles(quantiles: list[float]) -> str:
    return ", ".join(
        f"{value:.3f} ({100 * level:g} %)"
        for value, level in zip(quantiles, CORRELATION_QUANTILES, strict=True)
    )


def _audit_gate(
    accuracy: float, expected: Floats, interval: tuple[float, float], *, fits: bool
) -> Gate:
    if not len(expected):
        return Gate("audit", False, accuracy, note("no audit judgments yet"))
    values = {
        "share": accuracy,
        "tuples": len(expected),
        "expected": expected.mean(),
        "low": interval[0],
        "high": interval[1],
    }
    sentence = note(AUDIT_PASSED, **values) if fits else note(AUDIT_FAILED, **values)
    return Gate("audit", fits, accuracy, sentence)


def _coverage_gate(fitted: Fit) -> Gate:
    fewest = int(fitted.appearances.min())
    pairs = np.unique(np.column_stack((fitted.group_of, fitted.label)), axis=0)
    connected = len(pairs) == len(np.unique(fitted.group_of)) and fitted.label.min() >= 0
    notes = [
        note(
            "every item has at least {n:d} judgments; {required:d} are required",
            n=fewest,
            required=MIN_APPEARANCES,
        )
    ]
    if not connected:
        notes.append(note("the judgments do not connect all items of a group"))
    passed = connected and fewest >= MIN_APPEARANCES
    return Gate("coverage", passed, float(fewest), "; ".join(notes))
