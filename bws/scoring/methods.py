"""Scoring methods, their results and their registry.

Each module registers the methods that it defines. `bws.scoring` imports the modules of this package and the
methods of other packages, entry points of the group ``bws.scoring_methods``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.metadata import entry_points
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Formula = Callable[[NDArray[Any], NDArray[Any], NDArray[Any]], Floats]
"""(appearances, best, worst), arrays of one shape -> utilities of that shape, NaN for no appearances."""


@dataclass(frozen=True, eq=False)
class ErrorCovariance:
    """Covariance of the errors of N utilities that were estimated from J judgments."""

    between: Callable[[Integers], Any]
    """(J,) cluster labels -> sparse (N, N) sums over clusters of products of influences on two utilities.

    0 for items that are not compared, of different groups or sets connected by judgments.
    """
    known: Any
    """Sparse (N, N) covariance without estimation error."""
    squared: Callable[[Integers, Floats], float] | None = None
    """(J,) cluster labels, (N,) weights of the influences -> sum of the squares of the products of all pairs,
    also of items that are not compared; None if these are independent."""

    def sum_of_squares(self, labels: Integers, weight: Floats) -> float:
        """Return the sum of the squares of all products of influences that are weighted by item."""
        if self.squared:
            return self.squared(labels, weight)
        products = self.between(labels).tocoo()
        return float(((products.data * weight[products.row] * weight[products.col]) ** 2).sum())


@dataclass(frozen=True, eq=False)
class Utilities:
    """Utilities of N items on the scale of a method."""

    utility: Floats
    """(N,) NaN for unjudged items."""
    stderr: Floats | None = None
    """(N,) standard errors; None if not requested or not supported by the method, NaN where undefined
    (see the notes).
    """
    notes: Sequence[str] = ()
    """Warnings for the reader, such as missing convergence or items not connected by judgments."""
    converged: bool = True
    df: Floats | None = None
    """(N,) degrees of freedom of the standard errors, or None."""
    stderr_method: str | None = None
    """Method of the standard errors: "inverse Hessian", "sandwich", "clustered counts"."""
    estimated: Mapping[str, float] = field(default_factory=dict)
    """Values of the method's options that were estimated from the judgments."""
    covariance: ErrorCovariance | None = None
    """Covariance of the errors, if standard errors were requested and differences can be tested."""

    @property
    def has_signal(self) -> bool:
        """Whether the judgments distinguish items; False if `prior` is estimated as 0."""
        return self.estimated.get("prior") != 0

    def first(self, n: int) -> Utilities:
        """Return the utilities of the first n items."""
        stderr, df = (None if a is None else a[:n] for a in (self.stderr, self.df))
        return replace(self, utility=self.utility[:n], stderr=stderr, df=df)


@dataclass(frozen=True, eq=False)
class Interval:
    """95 % intervals of N scores."""

    low: Floats | None
    """(N,) lower ends; NaN where undefined; None if not requested."""
    high: Floats | None
    notes: Sequence[str] = ()
    standard_error: str | None = None
    """`Utilities.stderr_method` of the underlying standard errors."""


Fit = Callable[..., Utilities]
"""fit(judgments, *, clusters, seed, **method options) -> utilities in the item order of the judgments.
`clusters` is the `Clusters` of the judgments, or None to omit standard errors.
"""


@dataclass(frozen=True)
class Method:
    """A scoring method."""

    summary: str
    """One line for help texts."""
    fit: Fit
    to_score: Callable[[Floats], Floats]
    """Utilities -> scores in [-1, 1]; strictly increasing."""
    options: Mapping[str, float | None] = field(default_factory=dict)
    """The options of the method and their defaults; None if the value is estimated from the judgments."""
    formula: Formula | None = None
    """The utilities as a function of the counts, if these suffice; resamples are then inexpensive."""
    has_stderr: bool = False
    stages: Callable[[int], list[Floats]] | None = None
    """Choice models: K -> the stages of a judgment (`bws.scoring.choice`); None for other methods."""


METHODS: dict[str, Method] = {}
"""Methods by name, including those of other packages after a call of `all_methods`."""


@cache
def all_methods() -> Mapping[str, Method]:
    """Return the methods by name, including those of other packages."""
    for entry_point in entry_points(group="bws.scoring_methods"):
        METHODS[entry_point.name] = entry_point.load()
    return METHODS


def logistic(u: Floats) -> Floats:
    """Return 2 / (1 + exp(-u)) - 1: scores in [-1, 1] from utilities that are logits."""
    return np.tanh(u / 2)


def get_method(
    name: str, options: dict[str, float | None]
) -> tuple[Method, dict[str, float | None]]:
    """Return the method and its options with defaults; ValueError for an unknown method or option."""
    methods = all_methods()
    if name not in methods:
        raise ValueError(f"method is {name!r}; expected one of: {', '.join(methods)}")
    method = methods[name]
    for option in options:
        if option not in method.options:
            available = ", ".join(method.options) or "none"
            raise ValueError(
                f"method {name} has no option {option!r}; available options: {available}"
            )
    return method, {**method.options, **options}
