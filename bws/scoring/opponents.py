"""How evenly items met the opponents of their group, and what that leaves of the design's variance."""

from __future__ import annotations

import numpy as np

from bws.scoring.answers import Answers
from bws.scoring.methods import Floats

__all__ = ["design_left_out", "design_share"]

ROUNDING = 1e-9


def design_share(answers: Answers, weight: Floats) -> Floats:
    """Return (N,) the variance of an item's mean value for every unit of the design's variance.

    weight: (T,) how often each tuple counts.

    Let a value be a sum of parts of the K-1 opponents, which a group has n-1 of, with variance v. The item
    met opponent o in a share f_o of its values, p = (K-1)/(n-1) in the mean. Its mean value then has the
    variance sum((f_o - p)^2) v, and half the expected squared difference of two values, from which the
    design's variance is estimated, is v by the mean number of opponents that only one of the tuples has. On
    simulated logit choices the root of the reliability is then within 0.005 of the scores' correlation
    with true scores (docs/coverage.md); tuples drawn at random, which do not regard how evenly opponents met,
    give up to 0.07 less in small groups. 0 where all opponents were met equally often.
    """
    n, k = len(answers.items), answers.k
    total = np.bincount(answers.members.ravel(), np.repeat(weight, k), n)
    met = [(i, o) for i in range(k) for o in range(k) if i != o]
    key = np.concatenate([answers.members[:, i] * n + answers.members[:, o] for i, o in met])
    pair, number = np.unique(key, return_inverse=True)
    share = np.bincount(number, np.tile(weight, len(met))) / total[pair // n]
    squares = np.bincount(pair // n, share**2, n)
    others = np.bincount(answers.group_of)[answers.group_of] - 1.0
    uneven = squares - (k - 1) ** 2 / others
    same_tuple = np.bincount(answers.members.ravel(), np.repeat(weight**2, k), n) / total**2
    different = np.maximum(1 - same_tuple, ROUNDING)  # 0 where the design's variance is not known
    distinct = k - 1 - (squares - (k - 1) * same_tuple) / different
    return np.where(uneven > ROUNDING, uneven / np.maximum(distinct, ROUNDING), 0.0)


def design_left_out(answers: Answers) -> Floats:
    """Return (N,) the finite population correction of each item's tuples, all counted once.

    The variance of an item's score over designs as uneven as this one, divided by what the variance between
    its tuples suggests, where opponents have additive effects. 0 where it met all opponents equally
    often, as in a complete design; 1 where opponents are few of many; above 1 where the design is more
    uneven than random tuples.
    """
    tuples = np.bincount(answers.members.ravel(), minlength=len(answers.items))
    left_out: Floats = tuples * design_share(answers, np.ones(len(answers.members)))
    return left_out
