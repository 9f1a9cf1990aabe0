"""Regression of the means of groups on what is known of the dialogues: length, turns, domain.

A threshold that moves with the dialogue for everybody, such as with its length, looks like a difference
between dialogues; the regression shows both, and cannot distinguish them.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np

from bws.absolute.model import Floats
from bws.base.ids import normal_id
from bws.base.notes import note
from bws.base.problems import InputError, Problem
from bws.base.tables import Column, ResultTable
from bws.base.text import display_name
from bws.files.columns import quoted
from bws.files.schema import json_objects
from bws.stats.clusters import t_quantile
from bws.stats.estimates import Estimate

DOMAIN = "domain"


def dialogue_properties(path: str | os.PathLike[str]) -> dict[str, dict[str, Any]]:
    """Read the number of words and turns and the domain of each dialogue, from dialogues or a benchmark.

    Raises InputError for rows without ``dialogue_id`` and ``turns``.
    """
    name, found, problems = display_name(path), {}, []
    for line, value in json_objects(path):
        turns = value.get("turns")
        if not isinstance(value.get("dialogue_id"), str) or not isinstance(turns, list):
            problems.append(
                Problem(
                    name,
                    line,
                    "no dialogue_id with turns; expected a row of dialogues or of a benchmark",
                )
            )
            continue
        texts = [
            str(turn.get("text", "")) if isinstance(turn, dict) else str(turn) for turn in turns
        ]
        found[normal_id(value["dialogue_id"])] = {
            "words": float(sum(len(text.split()) for text in texts)),
            "turns": float(len(turns)),
            DOMAIN: str(value.get(DOMAIN) or ""),
        }
    if problems:
        raise InputError(problems)
    return found


def mean_regression(groups: Mapping[str, Estimate], path: str | os.PathLike[str]) -> ResultTable:
    """Return the coefficients of a linear regression of the means of groups.

    Those of words and turns are for one standard deviation; those of domains are differences from the most
    frequent one. Properties that do not vary are left out. Intervals are from Student's t distribution.
    Raises InputError for groups that are no dialogues of the file.
    """
    known = dialogue_properties(path)
    if missing := [group for group in groups if group not in known]:
        message = (
            f"no dialogue {quoted(missing[0])} ({len(missing)} of {len(groups)} groups); expected all "
            "groups of the judgments"
        )
        raise InputError(Problem(display_name(path), None, message))
    names, columns = _predictors([known[group] for group in groups])
    y = np.array([mean.value for mean in groups.values()])
    rows = list(
        zip(names, _coefficients(np.column_stack([np.ones(len(y)), *columns]), y), strict=True)
    )
    titles = [
        Column("term", "property"),
        Column("coefficient", "difference in absolute score", ".3f"),
    ]
    remark = note(
        "a difference is a property of the dialogues or of the threshold for such dialogues, which anchors "
        "cannot distinguish"
    )
    return ResultTable(titles, rows, [remark], "Regression of the means of groups")


def _predictors(properties: list[dict[str, Any]]) -> tuple[list[str], list[Floats]]:
    names, columns = [], []
    for name, title in (("words", "words (1 SD)"), ("turns", "turns (1 SD)")):
        values = np.array([each[name] for each in properties])
        if np.ptp(values) > 0:
            names.append(title)
            columns.append((values - values.mean()) / values.std())
    domains = [each[DOMAIN] for each in properties]
    _, *others = [domain for domain, _ in Counter(domains).most_common()]
    names += [f"domain {domain}" for domain in others]
    columns += [np.array([float(domain == other) for domain in domains]) for other in others]
    return names, columns


def _coefficients(x: Floats, y: Floats) -> list[Estimate]:
    """Return the coefficients of all columns but the first; NaN if they are not determined."""
    n, p = x.shape
    if n - p < 1 or np.linalg.matrix_rank(x) < p:
        reason = note("{n:d} groups do not determine {m:d} coefficients", n=n, m=p)
        return [Estimate(np.nan, reason=reason)] * (p - 1)
    coefficients, *_ = np.linalg.lstsq(x, y)
    residual = y - x @ coefficients
    errors = np.sqrt(residual @ residual / (n - p) * np.diagonal(np.linalg.inv(x.T @ x)))
    margins = t_quantile(np.array(float(n - p))) * errors
    pairs = zip(coefficients[1:].tolist(), margins[1:].tolist(), strict=True)
    return [Estimate(value, value - margin, value + margin, n) for value, margin in pairs]
