"""Power analysis: detectable differences between two models, and required numbers of dialogues.

Power is the probability that the test detects a difference of this size and direction; `alpha` is the
two-sided level of one test.
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np

from bws.stats.clusters import MIN_CLUSTERS

ALPHA = 0.05
POWER = 0.8
MAX_QUESTIONS = 1_000_000
PRECISION = 0.001
"""Relative precision of large numbers of questions."""
TAIL = 6.0
"""Number of standard deviations of a binomial beyond which its probability is neglected."""


def t_detectable(
    stderr: float, dialogues: float, *, alpha: float = ALPHA, power: float = POWER
) -> float:
    """Return the minimum detectable difference of a paired t-test over dialogues.

    It is `stderr` times the noncentrality of t, with ``dialogues - 1`` degrees of freedom, at which the
    quantile 1 - `power` equals the critical value (Cohen 1988, Statistical Power Analysis, section 2.4).

    >>> round(t_detectable(0.02, 60), 3)
    0.057
    """
    from scipy.special import nctdtrinc, stdtrit

    df = dialogues - 1
    return float(nctdtrinc(df, 1 - power, stdtrit(df, 1 - alpha / 2))) * stderr


def dialogues_needed(
    stderr: float,
    dialogues: int,
    difference: float,
    *,
    alpha: float = ALPHA,
    power: float = POWER,
) -> int:
    """Return the minimum number of dialogues with which a paired t-test detects a difference.

    stderr: that of the difference over `dialogues`; it decreases with the square root of their number.

    >>> dialogues_needed(0.02, 60, 0.057), dialogues_needed(0.02, 60, 0.02)
    (60, 473)
    """
    from scipy.special import ndtri

    per_dialogue = stderr * math.sqrt(dialogues)
    critical = float(ndtri(1 - alpha / 2))
    normal = ((critical + float(ndtri(power))) * per_dialogue / difference) ** 2
    needed = max(MIN_CLUSTERS, math.floor(normal + critical**2 / 2) - 1)  # Guenther 1981, minus 1.
    while _detectable_with(per_dialogue, needed, alpha, power) > difference:
        needed += 1
    return needed


def _detectable_with(per_dialogue: float, dialogues: int, alpha: float, power: float) -> float:
    stderr = per_dialogue / math.sqrt(dialogues)
    return t_detectable(stderr, dialogues, alpha=alpha, power=power)


@cache
def mcnemar_power(
    questions: int, discordant: float, difference: float, alpha: float = ALPHA
) -> float:
    """Return the power of the exact McNemar test.

    discordant: expected share of the questions that only one of the two models answers correctly; at least
    `difference`, the expected difference of the accuracies. Of k such questions, the better model's are
    Binomial(k, (1 + difference / discordant) / 2), and k is Binomial(questions, discordant).

    >>> round(mcnemar_power(100, 0.3, 0.15), 3)
    0.747
    """
    from scipy.special import bdtr, gammaln

    k = _likely_counts(questions, discordant)
    log_choose = gammaln(questions + 1) - gammaln(k + 1) - gammaln(questions - k + 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        log_misses = np.where(k < questions, (questions - k) * np.log1p(-discordant), 0.0)
    weight = np.exp(log_choose + k * math.log(discordant) + log_misses)
    critical = _critical(1 << int(k[-1]).bit_length(), alpha)[k]
    worse = (1 - difference / discordant) / 2
    rejects = np.where(critical >= 0, bdtr(np.maximum(critical, 0), k, worse), 0.0)
    return float(np.sum(weight * rejects))


def _likely_counts(n: int, p: float) -> np.ndarray:
    """Return the values of Binomial(n, p) with non-negligible probability."""
    spread = TAIL * math.sqrt(n * p * (1 - p)) + TAIL
    return np.arange(max(0, math.floor(n * p - spread)), min(n, math.ceil(n * p + spread)) + 1)


@cache
def _critical(size: int, alpha: float) -> np.ndarray:
    """Return (size,) the largest count of the rarer outcome at which k coin tosses reject a fair coin, or
    -1."""
    from scipy.special import bdtr, ndtri

    k = np.arange(size)
    normal = np.floor(k / 2 + ndtri(alpha / 2) * np.sqrt(k) / 2)
    critical = np.full(size, -1)
    for count in (
        normal - 2,
        normal - 1,
        normal,
        normal + 1,
    ):  # The approximation is off by at most one.
        rejects = (count >= 0) & (bdtr(np.maximum(count, 0), k, 0.5) <= alpha / 2)
        critical = np.where(rejects, count, critical)
    return critical


@cache
def mcnemar_detectable(
    questions: int, discordant: float, *, alpha: float = ALPHA, power: float = POWER
) -> float:
    """Return the minimum detectable difference of two accuracies; NaN if even 1 is not detected.

    discordant: as in `mcnemar_power`; it is increased to a larger difference.
    """
    if _mcnemar_power(questions, discordant, 1.0, alpha) < power:
        return math.nan
    low, high = 0.0, 1.0
    while high - low > 1e-6:
        middle = (low + high) / 2
        if _mcnemar_power(questions, discordant, middle, alpha) < power:
            low = middle
        else:
            high = middle
    return high


@cache
def questions_needed(
    discordant: float, difference: float, *, alpha: float = ALPHA, power: float = POWER
) -> float:
    """Return the number of questions with which the exact McNemar test detects a difference.

    It is the minimum, or within `PRECISION` of it; NaN for more than about `MAX_QUESTIONS`. discordant: as in
    `mcnemar_detectable`.
    """
    low, high = _normal_bracket(max(discordant, difference), difference, alpha, power)
    if high > MAX_QUESTIONS:
        return math.nan
    while _mcnemar_power(high, discordant, difference, alpha) < power:
        low, high = high, 2 * high
    while low > MIN_CLUSTERS and _mcnemar_power(low, discordant, difference, alpha) >= power:
        low, high = low // 2, low
    while high - low > max(1, PRECISION * high):
        middle = (low + high) // 2
        if _mcnemar_power(middle, discordant, difference, alpha) < power:
            low = middle
        else:
            high = middle
    return high


def _normal_bracket(
    discordant: float, difference: float, alpha: float, power: float
) -> tuple[int, int]:
    """Return numbers of questions that bracket that of Connor (1987, Biometrics 43) with a margin."""
    from scipy.special import ndtri

    null, alternative = math.sqrt(discordant), math.sqrt(discordant - difference**2)
    questions = ((ndtri(1 - alpha / 2) * null + ndtri(power) * alternative) / difference) ** 2
    return int(0.95 * questions), max(MIN_CLUSTERS, math.ceil(1.1 * questions))


def _mcnemar_power(questions: int, discordant: float, difference: float, alpha: float) -> float:
    return mcnemar_power(questions, max(discordant, difference), difference, alpha)
