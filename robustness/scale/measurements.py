"""Measured sizes of each part, and growth of the costs with the size."""

from __future__ import annotations

import math
import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from benchmarks.postgresql import NoServerError, cluster
from robustness.scale.annotations import expected_reliability
from robustness.scale.pieces import in_child

__all__ = ["Growth", "Measurements", "growth", "measure"]


@dataclass(frozen=True, slots=True)
class Growth:
    """Cost at the two largest sizes, and the slope over all sizes."""

    exponent: float
    """b of cost = a·n^b, by least squares on logarithms: 0 is constant, 1 is proportional."""
    error: float
    """Standard error of the exponent; NaN for two sizes."""
    size: int
    """Largest size."""
    cost: float
    """Cost at the largest size."""
    rate: float
    """Marginal cost between the two largest sizes."""

    def at(self, size: float) -> float:
        """Extrapolate the cost to a size, linearly from the two largest sizes.

        >>> growth({1: 12.0, 2: 14.0}).at(10)
        30.0
        """
        return self.cost + self.rate * (size - self.size)

    def reaches(self, limit: float) -> float:
        """Return the size at which the cost reaches `limit`; infinity if it does not grow.

        >>> growth({1: 12.0, 2: 14.0}).reaches(30.0)
        10.0
        """
        return self.size + (limit - self.cost) / self.rate if self.rate > 0 else math.inf


def growth(costs: Mapping[int, float]) -> Growth:
    """Fit the growth of costs; requires costs above 0 at two sizes or more."""
    if len(costs) < 2 or min(costs.values()) <= 0:
        raise ValueError(f"costs is {dict(costs)}; expected two sizes or more and costs above 0")
    sizes = sorted(costs)
    x, y = np.log(sizes), np.log([costs[n] for n in sizes])
    off = x - x.mean()
    exponent = float(off @ y / (off @ off))
    left = y - y.mean() - exponent * off
    free = len(sizes) - 2
    error = math.sqrt(float(left @ left) / free / float(off @ off)) if free else math.nan
    below, largest = sizes[-2:]
    rate = (costs[largest] - costs[below]) / (largest - below)
    return Growth(exponent, error, largest, costs[largest], rate)


MAX_CPU_SECONDS = 60.0
"""Sizes expected to take longer are skipped."""
FILES_SIZES = (10_000, 31_600, 100_000, 316_000, 1_000_000)
PLAN_SIZES = (500, 1_500, 5_000)
JUDGED_SIZES = (1_000, 3_000, 10_000)
STUDY_SIZES = (300, 600, 1_200)
REQUESTS_SIZES = (1_000, 10_000, 100_000)
ENCODING_SIZES = (120, 240, 480, 960)
STORE_SIZES = (100, 1_000, 10_000)
REPORT_SIZES = (100, 300, 1_000)
DESIGNS = ((1.5, 2), (1.5, 3), (1.5, 5), (2.0, 2), (2.0, 3), (2.0, 5), (2.0, 10))
"""(Tuples per item, annotations per tuple)."""
Sizes = dict[int, dict[str, float]]
Note = Callable[[str], None]


@dataclass(frozen=True)
class Measurements:
    """Measurements per part: size -> costs."""

    files: Sizes
    """By items."""
    plan: Sizes
    """By HITs."""
    judged: Sizes
    """By assignments."""
    studied: Sizes
    """By submissions."""
    requests: Sizes
    """By assignments in the database, with 1,000 workers."""
    heavy: dict[str, float]
    """At the largest size, with 20 workers."""
    postgresql: Sizes
    """As `requests`; empty without a PostgreSQL server."""
    encoding: Sizes
    """By texts."""
    store: Sizes
    """By results."""
    report: Sizes
    """By results."""
    tokens: dict[str, float]
    reliability: dict[tuple[float, int], float]

    def growth(self, part: str, *names: str) -> Growth:
        """Return the growth of the sum of some costs of a part."""
        sizes: Sizes = getattr(self, part)
        return growth({n: sum(figures[name] for name in names) for n, figures in sizes.items()})


def measure(note: Note) -> Measurements:
    """Measure all parts, which takes minutes; raise RuntimeError if a part fails."""
    files = _measure_sizes("files", FILES_SIZES, note, _annotations)
    requests = _measure_sizes(
        "requests", REQUESTS_SIZES, note, partial(_measure_in_child, "requests", file="hits.db")
    )
    note("requests, 20 workers")
    return Measurements(
        files=files,
        plan=_measure_sizes("plan", PLAN_SIZES, note),
        judged=_measure_sizes("judged", JUDGED_SIZES, note),
        studied=_measure_sizes("studied", STUDY_SIZES, note),
        requests=requests,
        heavy=_measure_in_child("heavy", max(REQUESTS_SIZES), file="hits.db"),
        postgresql=_postgresql(note),
        encoding=_measure_sizes("encoding", ENCODING_SIZES, note),
        store=_measure_sizes("store", STORE_SIZES, note),
        report=_measure_sizes("report", REPORT_SIZES, note),
        tokens=_measure_in_child("tokens", 0),
        reliability={design: expected_reliability(*design) for design in DESIGNS},
    )


def _measure_sizes(
    piece: str, sizes: Sequence[int], note: Note, run: Callable[[int], dict[str, float]] | None = None
) -> Sizes:  # fmt: skip
    """Measure sizes in ascending order until they are expected to take too long."""
    figures: Sizes = {}
    spent = {0: 0.0}
    for n in sizes:
        below = max(spent)
        if below and spent[below] * n / below > MAX_CPU_SECONDS:
            break
        before = _children_cpu_seconds()
        figures[n] = run(n) if run else _measure_in_child(piece, n)
        spent[n] = _children_cpu_seconds() - before
        note(f"{piece} {n:,}: {spent[n]:.1f} CPU s")
    return figures


def _children_cpu_seconds() -> float:
    """Return the CPU seconds of all ended child processes."""
    times = os.times()
    return times.children_user + times.children_system


def _measure_in_child(piece: str, n: int, file: str = "") -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        return in_child(piece, n, os.path.join(folder, file))


def _annotations(items: int) -> dict[str, float]:
    """Write files, and read them in another process, so that its memory is that of reading."""
    with tempfile.TemporaryDirectory() as folder:
        return in_child("files", items, folder) | in_child("scores", items, folder)


def _postgresql(note: Note) -> Sizes:
    try:
        with cluster() as server:
            return {
                n: _measure_on_server(server.create(f"scale{n}"), n, note) for n in REQUESTS_SIZES
            }
    except NoServerError as error:
        note(f"PostgreSQL: not measured, {error}")
        return {}


def _measure_on_server(url: str, n: int, note: Note) -> dict[str, float]:
    note(f"requests on PostgreSQL {n:,}")
    return in_child("requests", n, url)
