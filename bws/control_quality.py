"""Answers to control items: how often each annotator gives the expected one."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bws.record_columns import controls_of_judgments
from bws.records import Judgments

Integers = NDArray[np.int64]


def control_answers(judgments: Judgments) -> tuple[Integers, Integers]:
    """Return (A,) numbers of answers about control items per annotator, and of those as expected.

    An answer counts for each control item of its tuple with an expectation (``ID=best`` or ``ID=worst``): as
    expected if the best, or the worst, item is this one. Judgments without annotator do not count.

    >>> from bws.records import Judgment
    >>> from bws.files import judgments_from_records
    >>> rows = [Judgment(("a", "b", "gold"), best, "b", "w") for best in ("gold", "a")]
    >>> control_answers(judgments_from_records([rows[0]], control=["gold=best"]))
    (array([1]), array([1]))
    """
    n_answers, n_expected = np.zeros((2, len(judgments.annotators)), np.int64)
    if not judgments.tuples.controls:
        return n_answers, n_expected
    items = judgments.tuples.items
    answers = {"best": items[judgments.best_item], "worst": items[judgments.worst_item]}
    for row, controls in enumerate(controls_of_judgments(judgments)):
        annotator = judgments.annotator_of[row]
        for item, answer in controls.items():
            if answer and annotator >= 0:
                n_answers[annotator] += 1
                n_expected[annotator] += answers[answer][row] == item
    return n_answers, n_expected
