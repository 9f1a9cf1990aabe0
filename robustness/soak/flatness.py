"""Growth of a time series: slope with an interval adjusted for autocorrelation."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t as student

MAX_MIB_PER_HOUR = 8.0
"""Slope in MiB per hour that counts as growth. At this rate a service of 150 MiB reaches 1 GiB after 4.5
days. It corresponds to a leak of half a KiB per submission at 4.5 submissions per second."""
MINUTE = 60.0
MIN_BLOCKS = 10
"""Minimum number of blocks in the second half, or of values in a quarter, for a verdict."""
LEVEL = 0.95
Verdict = Literal["flat", "growing", "not decided"]
Series = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Trend:
    """Trend of a series in its second half; NaN with a reason if there are too few values."""

    slope: float
    """Units per hour."""
    low: float
    high: float
    """Ends of the 95 % interval of the slope."""
    step: float
    """Median of the last quarter minus the median of the second quarter."""
    reason: str = ""


def trend(seconds: Series, values: Series, *, block: float = MINUTE) -> Trend:
    """Return the least-squares slope of the second half of a series, and the increase of its median.

    seconds, values: (N,) in temporal order. The line is fitted to the means of blocks of `block` seconds. For
    B blocks whose residuals have the lag-one autocorrelation r, the effective sample size is
    n = B (1 - r) / (1 + r), at least three (Santer et al. 2000, J. Geophys. Res. 105, 7337, equations 3
    to 6); Student's t has n - 2 degrees of freedom.

    >>> hour = np.arange(0.0, 3600.0, 10.0)
    >>> round(trend(hour, 100 + hour / 3600 * 12).slope, 6)
    12.0
    >>> trend(hour[:20], hour[:20]).reason
    'the second half has 2 blocks of 60 s; expected at least 10'
    """
    nan = float("nan")
    if len(seconds) == 0:
        return Trend(nan, nan, nan, nan, "there are no values")
    step = _step(values)
    late = seconds >= seconds[0] + (seconds[-1] - seconds[0]) / 2
    hours, means = _blocks(seconds[late], values[late], block)
    if len(means) < MIN_BLOCKS:
        reason = f"the second half has {len(means)} blocks of {block:g} s; expected at least {MIN_BLOCKS}"
        return Trend(nan, nan, nan, step, reason)
    slope, level = np.polyfit(hours, means, 1)
    left = means - (level + slope * hours)
    independent = _effective_size(left)
    spread = math.sqrt((left @ left) / (independent - 2) / np.square(hours - hours.mean()).sum())
    half = float(student.ppf((1 + LEVEL) / 2, independent - 2)) * spread
    return Trend(float(slope), float(slope - half), float(slope + half), step)


def _step(values: Series) -> float:
    if len(values) < 4:
        return float("nan")
    _, second, _, last = np.array_split(values, 4)
    return float(np.median(last) - np.median(second))


def _blocks(seconds: Series, values: Series, block: float) -> tuple[Series, Series]:
    """Return the mean time (hours) and the mean value per block."""
    number = ((seconds - seconds[0]) // block).astype(int)
    size = np.bincount(number)
    filled = size > 0
    means = [np.bincount(number, series)[filled] / size[filled] for series in (seconds, values)]
    return means[0] / 3600, means[1]


def _effective_size(left: Series) -> float:
    """Return the effective sample size of autocorrelated residuals, at least three."""
    square = float(left @ left)
    alike = max(0.0, float(left[1:] @ left[:-1]) / square) if square else 0.0
    return max(3.0, len(left) * (1 - alike) / (1 + alike))


def verdict(result: Trend, limit: float = MAX_MIB_PER_HOUR) -> Verdict:
    """Classify a trend: flat if the interval is below the limit, growing if it is above 0 and reaches the
    limit, else not decided.

    >>> verdict(Trend(1, -1, 3, 0.1), 8), verdict(Trend(9, 7, 11, 4), 8), verdict(Trend(1, -9, 11, 0), 8)
    ('flat', 'growing', 'not decided')
    """
    if result.high < limit:
        return "flat"
    return "growing" if result.low > 0 else "not decided"


def count_verdict(values: Series) -> Verdict:
    """Classify a count, such as that of open files: growing if its median increases between the second and
    the last quarter by more than a tenth and more than three; not decided for fewer than 40 values.

    >>> count_verdict(np.arange(40)), count_verdict(np.arange(40) % 4), count_verdict(np.arange(39))
    ('growing', 'flat', 'not decided')
    """
    if len(values) < 4 * MIN_BLOCKS:
        return "not decided"
    second = float(np.median(np.array_split(values, 4)[1]))
    return "growing" if _step(values) > max(3.0, second / 10) else "flat"
