"""Do two conditions differ? Shares with their intervals, paired differences and the exact McNemar test."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from giccs.metrics import Estimate

__all__ = ["mcnemar", "paired_shares", "share", "wilson"]

Bools = NDArray[np.bool_]

Z = 1.959963984540054
"""The 97.5 percentile of the normal distribution: intervals are at 95 %."""


def share(right: Bools) -> Estimate:
    """Return the share of independent questions answered rightly (n,), with Wilson's interval.

    ``stderr`` is sqrt(p(1-p)/(n-1)), the ± of the paper's Table 6 and of lm-evaluation-harness; NaN for
    one question.

    >>> found = share(np.array([True] * 4 + [False] * 26))
    >>> print(f"{found.value:.3f} ± {found.extra['stderr']:.3f} [{found.low:.3f}, {found.high:.3f}]")
    0.133 ± 0.063 [0.053, 0.297]
    """
    n = len(right)
    if not n:
        return Estimate(math.nan, math.nan, math.nan, 0, "no questions", {"stderr": math.nan})
    p = float(np.mean(right))
    low, high = wilson(int(np.count_nonzero(right)), n)
    stderr = math.sqrt(p * (1 - p) / (n - 1)) if n > 1 else math.nan
    return Estimate(p, low, high, n, extra={"stderr": stderr})


def wilson(right: int, n: int) -> tuple[float, float]:
    """Return Wilson's 95 % interval of a share `right` / n (Wilson 1927, J. Am. Stat. Assoc. 22).

    It keeps inside [0, 1], and has a width also where none or all are right.

    >>> [round(limit, 3) for limit in wilson(0, 10)]
    [0.0, 0.278]
    """
    p, weight = right / n, Z * Z / n
    middle = (p + weight / 2) / (1 + weight)
    half = Z * math.sqrt(p * (1 - p) / n + weight / (4 * n)) / (1 + weight)
    return max(0.0, middle - half), min(1.0, middle + half)


def mcnemar(only_first: int, only_second: int) -> float:
    """Return the two-sided p of the exact McNemar test.

    `only_first` questions are right under the first condition alone, `only_second` under the second
    alone. Where the conditions do not differ, each is a toss of a fair coin: p is twice the smaller
    tail of Binomial(only_first + only_second, 1/2), at most 1; 1 where there is no such question.

    >>> round(mcnemar(1, 5), 5)  # 2 · (1 + 6) / 2⁶
    0.21875
    """
    from scipy.special import bdtr

    smaller, both = min(only_first, only_second), only_first + only_second
    return min(1.0, 2 * float(bdtr(smaller, both, 0.5)))


def paired_shares(first: Bools, second: Bools) -> Estimate:
    """Return the share of `first` less that of `second`, (n,) each, question by question.

    The interval is that of Agresti and Min (2005, Stat. Med. 24): half a question is added to each
    cell of the 2 × 2 table, so that it has a width also where no answer differs. ``stderr`` is that of
    the mean of the n differences (n-1), ``p`` the exact McNemar test's, ``only_first`` and
    ``only_second`` the counts that it rests on.

    >>> found = paired_shares(np.array([True, True, False]), np.array([True, False, False]))
    >>> found.extra["only_first"], found.extra["only_second"], found.extra["p"]
    (1, 0, 1.0)
    """
    n = len(first)
    b, c = int(np.count_nonzero(first & ~second)), int(np.count_nonzero(second & ~first))
    extra = {"stderr": math.nan, "p": mcnemar(b, c), "only_first": b, "only_second": c}
    if not n:
        return Estimate(math.nan, math.nan, math.nan, 0, "no questions", extra)
    if n > 1:
        extra["stderr"] = math.sqrt(((b + c) - (b - c) ** 2 / n) / (n * (n - 1)))
    middle = (b - c) / (n + 2)
    half = Z * math.sqrt((b + c + 1) - (b - c) ** 2 / (n + 2)) / (n + 2)
    return Estimate((b - c) / n, max(-1.0, middle - half), min(1.0, middle + half), n, extra=extra)
