"""The methods by name: how each fits, and how its utilities become scores in [-1, 1]."""

from __future__ import annotations

import numpy as np

from bws.scoring import choice, counting, sequential
from bws.scoring.records import Floats, Method

__all__ = ["METHODS", "SMOOTHED", "method_of"]


def _same(u: Floats) -> Floats:
    return u


def _logistic(u: Floats) -> Floats:
    return np.tanh(u / 2)  # = 2 / (1 + exp(-u)) - 1


def _from_share(u: Floats) -> Floats:
    return np.clip(2 * u - 1, -1, 1)  # the end of an interval may be outside of [0, 1]


def _from_rating(u: Floats) -> Floats:
    return _logistic((u - sequential.ELO_START) * np.log(10) / 400)


def _choice(summary: str, stages: choice.Model) -> Method:
    fit = choice.fit_with(stages)
    return Method(summary, fit, _logistic, {"prior": None}, has_stderr=True, stages=stages)


METHODS: dict[str, Method] = {
    "counting": Method(
        "(best - worst) / appearances",
        counting.from_formula(counting.counting), _same, formula=counting.counting,
        has_stderr=True,
    ),
    "analytical": Method(
        "analytical estimate of a logit model, with standard errors",
        counting.fit_analytical, _logistic, formula=counting.analytical, has_stderr=True,
    ),
    "abw": Method(
        "analytic best-worst score",
        counting.from_formula(counting.abw), _logistic, formula=counting.abw, has_stderr=True,
    ),
    "elo": Method(
        "Elo ratings from shuffled passes",
        sequential.fit_elo, _from_rating, {"passes": sequential.PASSES},
    ),
    "rescorla-wagner": Method(
        "associations with winning and losing from shuffled passes",
        sequential.fit_rescorla_wagner, _from_share, {"passes": sequential.PASSES},
    ),
    "value-learning": Method(
        "values learned from shuffled passes",
        sequential.fit_value_learning, _from_share, {"passes": sequential.PASSES},
    ),
    "bradley-terry": _choice("logit model of the implied comparisons", choice.bradley_terry),
    "plackett-luce": _choice("best of all, and all beat the worst", choice.plackett_luce),
    "best-worst-logit": _choice(
        "best of all, then worst of the rest", choice.best_worst_logit
    ),
    "maxdiff": _choice("the pair of best and worst among all pairs", choice.maxdiff),
}  # fmt: skip


SMOOTHED = Method(
    "logit of the counting score with a pseudo-judgment",
    counting.fit_smoothed, _logistic, formula=counting.smoothed_logit, has_stderr=True,
)  # fmt: skip
"""The basis of the intervals of all methods with a formula; their scores differ only at the ends."""


def method_of(
    name: str, options: dict[str, float | None]
) -> tuple[Method, dict[str, float | None]]:
    """Return the method and its options, defaults filled in; ValueError where there is none such."""
    if name not in METHODS:
        raise ValueError(f"method is {name!r}; it is one of: {', '.join(METHODS)}")
    method = METHODS[name]
    for option in options:
        if option not in method.options:
            own = ", ".join(method.options) or "none"
            raise ValueError(f"method {name} has no option {option!r}; its options: {own}")
    return method, {**method.options, **options}
