"""What a scoring method is and what it finds, and the table of the methods.

The module that defines a method puts it into the table. `bws.scoring` imports those of this package and
the methods that other packages name as entry points of the group ``bws.scoring_methods``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import entry_points
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "METHODS", "Fit", "Floats", "Formula", "Integers", "Interval", "Method", "Utilities", "all_methods",
    "get_method", "logistic",
]  # fmt: skip

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Formula = Callable[[NDArray[Any], NDArray[Any], NDArray[Any]], Floats]
"""(appearances, best, worst), arrays of one shape -> utilities of that shape, NaN where never shown."""


@dataclass(frozen=True, eq=False)
class Utilities:
    """What a method found for each of N items, on the method's own unbounded or bounded scale."""

    utility: Floats
    """(N,) NaN where the item was never judged."""
    stderr: Floats | None = None
    """(N,) standard errors; None where none were asked for or the method has none, NaN where an
    item's cannot be had (the notes say why)."""
    notes: Sequence[str] = ()
    """What a reader must know: no convergence, items that no judgment connects."""
    converged: bool = True
    df: Floats | None = None
    """(N,) degrees of freedom of the standard errors; None where they have none."""
    stderr_method: str | None = None
    """How the standard errors were computed: "inverse Hessian", "sandwich", "clustered counts"."""
    estimated: Mapping[str, float] = field(default_factory=dict)
    """Values of the method's options that were estimated from the judgments."""

    @property
    def has_signal(self) -> bool:
        """Whether the judgments tell items apart: not where the prior's scale is estimated as 0."""
        return self.estimated.get("prior") != 0


@dataclass(frozen=True, eq=False)
class Interval:
    """The 95 % intervals of N scores."""

    low: Floats | None
    """(N,) lower ends; NaN where there is none; None where none were asked for."""
    high: Floats | None
    notes: Sequence[str] = ()
    standard_error: str | None = None
    """`Utilities.stderr_method` of the standard errors that they are made of."""


Fit = Callable[..., Utilities]
"""fit(answers, *, clusters, seed, **own options) -> utilities in the answers' order of items.
`clusters` is the `Clusters` of the answers, or None where no standard errors are wanted."""


@dataclass(frozen=True)
class Method:
    """A way of scoring."""

    summary: str
    """One line for help texts."""
    fit: Fit
    to_score: Callable[[Floats], Floats]
    """Utilities -> scores in [-1, 1]; strictly increasing."""
    options: Mapping[str, float | None] = field(default_factory=dict)
    """The method's own options and their defaults; None where the judgments give the value."""
    formula: Formula | None = None
    """The utilities from the counts alone, where they suffice: then resamples cost next to nothing."""
    has_stderr: bool = False
    stages: Callable[[int], list[Floats]] | None = None
    """Choice models: K -> the stages of a judgment (`choice`); None for other methods."""


METHODS: dict[str, Method] = {}
"""The methods by name, those of other packages once `all_methods` was called."""


@cache
def all_methods() -> Mapping[str, Method]:
    """Return the methods by name, those of other packages included."""
    for entry_point in entry_points(group="bws.scoring_methods"):
        METHODS[entry_point.name] = entry_point.load()
    return METHODS


def logistic(u: Floats) -> Floats:
    """Return 2 / (1 + exp(-u)) - 1: scores in [-1, 1] of utilities that are logits."""
    return np.tanh(u / 2)


def get_method(
    name: str, options: dict[str, float | None]
) -> tuple[Method, dict[str, float | None]]:
    """Return the method and its options, defaults filled in; ValueError where there is none such."""
    methods = all_methods()
    if name not in methods:
        raise ValueError(f"method is {name!r}; it is one of: {', '.join(methods)}")
    method = methods[name]
    for option in options:
        if option not in method.options:
            available = ", ".join(method.options) or "none"
            raise ValueError(f"method {name} has no option {option!r}; its options: {available}")
    return method, {**method.options, **options}
