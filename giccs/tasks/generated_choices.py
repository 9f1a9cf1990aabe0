"""Multiple choice by generated answers: accuracy, answers without a choice, and effects of the order.

Every order of the options is asked separately, and an answer without a choice is wrong. The accuracy is the
mean over orders, so that a preference for positions cancels if all cyclic orders are asked. The share of
equal choices in two orders (consistency) and the distribution of the chosen positions show it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bws.base.notes import note
from bws.stats.estimates import Estimate
from giccs.measures.comparison import clustered_share, paired_accuracies, share
from giccs.models.abilities import Response
from giccs.prompts import LETTERS
from giccs.tasks.answer_parsing import OUTCOMES
from giccs.tasks.questions import SEVERAL_CORRECT, Question

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Choice:
    """A prompt, its answer, and the choice found in it."""

    prompt: str
    response: Response
    letter: str
    """Empty without a choice."""
    outcome: str
    """Key of `OUTCOMES`."""


@dataclass(frozen=True, eq=False)
class QuestionChoices:
    """The answers to a question, one per order of its options, from order 0."""

    question: Question
    choices: tuple[Choice, ...]

    @cached_property
    def positions(self) -> list[int]:
        """Position of the chosen option in each order; -1 without a choice."""
        return [LETTERS.index(c.letter) if c.letter else -1 for c in self.choices]

    @cached_property
    def options(self) -> list[int]:
        """Index of the chosen option in each order; -1 without a choice."""
        return [
            int(self.question.option_indices(order)[position]) if position >= 0 else -1
            for order, position in enumerate(self.positions)
        ]

    @property
    def n_correct(self) -> int:
        """Number of orders with a gold option."""
        return sum(bool(self.question.gold[option]) for option in self.options if option >= 0)

    @property
    def n_without(self) -> int:
        """Number of orders without a choice."""
        return self.options.count(-1)

    @property
    def n_pairs(self) -> int:
        """Number of pairs of orders."""
        return math.comb(len(self.options), 2)

    @property
    def n_equal_pairs(self) -> int:
        """Number of pairs of orders with the same choice."""
        return sum(a == b >= 0 for a, b in combinations(self.options, 2))


@dataclass(frozen=True, eq=False)
class ConditionChoices:
    """The answers to all questions under one history."""

    answers: tuple[QuestionChoices, ...]
    resamples: int = 1000
    seed: int = 0

    def metrics(self, accuracies: Sequence[str], rows: Sequence[int]) -> dict[str, Estimate]:
        """Return the metrics over some questions; `accuracies` is ignored, there is one."""
        return choice_metrics([self], rows)


def choice_metrics(
    conditions: Sequence[ConditionChoices], rows: Sequence[int]
) -> dict[str, Estimate]:
    """Return ``accuracy``, ``invalid`` and, for several orders, ``consistency``, over all answers.

    ``invalid`` is the share of answers without a choice, ``consistency`` that of pairs of orders with the
    same choice. Intervals are those of `share` for one answer per dialogue, else of `clustered_share` over
    dialogues.
    """
    questions = [[condition.answers[row] for condition in conditions] for row in rows]
    n_answers = _sums([[len(q.choices) for q in several] for several in questions])
    accuracy = _share(_sums([[q.n_correct for q in several] for several in questions]), n_answers)
    invalid = _share(_sums([[q.n_without for q in several] for several in questions]), n_answers)
    details = _details([q for several in questions for q in several])
    metrics = {
        "accuracy": replace(
            accuracy.with_notes(_remark(details)), extra={**accuracy.extra, **details}
        ),
        "invalid": replace(invalid, extra={**invalid.extra, **details["answers"]}),
    }
    n_pairs = _sums([[q.n_pairs for q in several] for several in questions])
    if n_pairs.any():
        n_equal = _sums([[q.n_equal_pairs for q in several] for several in questions])
        metrics["consistency"] = clustered_share(
            n_equal[n_pairs > 0].astype(np.float64), n_pairs[n_pairs > 0]
        )
    return metrics


def choice_differences(
    with_history: ConditionChoices, without_history: ConditionChoices, rows: Sequence[int]
) -> dict[str, Estimate]:
    """Return ``accuracy_difference`` between two histories, over dialogues; positive if the history helps.

    The estimate is that of `paired_accuracies`, whose ``test`` is t if a question has several orders.
    ``only_with`` and ``only_without`` are the numbers of questions that are answered correctly in more orders
    with or without history.
    """
    first, second = (
        np.array([q.n_correct / len(q.choices) for q in (c.answers[row] for row in rows)])
        for c in (with_history, without_history)
    )
    estimate = paired_accuracies(first, second, resamples=with_history.resamples)
    extra = dict(estimate.extra)
    extra["only_with"], extra["only_without"] = extra.pop("only_first"), extra.pop("only_second")
    return {"accuracy_difference": replace(estimate, extra=extra)}


def _sums(counts: Sequence[Sequence[int]]) -> NDArray[np.intp]:
    return np.array([sum(several) for several in counts], dtype=np.intp)


def _share(counts: NDArray[np.intp], n_answers: NDArray[np.intp]) -> Estimate:
    if (n_answers == 1).all():
        return share(counts == 1)
    return clustered_share(counts.astype(np.float64), n_answers)


def _details(questions: Sequence[QuestionChoices]) -> dict[str, Any]:
    """Return further numbers for an accuracy: chance level, outcomes, and chosen positions."""
    outcomes = Counter(c.outcome for q in questions for c in q.choices)
    letters = Counter(c.letter for q in questions for c in q.choices)
    n_letters = max((len(q.question.options) for q in questions), default=0)
    details = {
        "chance": float(np.mean([q.question.gold.mean() for q in questions]))
        if questions
        else math.nan,
        "gold_ties": sum(int(q.question.gold.sum() > 1) for q in questions),
        "answers": {outcome: outcomes[outcome] for outcome in OUTCOMES},
        "chosen": {letter: letters[letter] for letter in LETTERS[:n_letters]},
        **position_bias(questions),
    }
    if any(q.n_pairs for q in questions):
        details["same_choice"] = sum(q.n_equal_pairs == q.n_pairs for q in questions)
    return details


def position_bias(questions: Sequence[QuestionChoices]) -> dict[str, float]:
    """Return ``position_bias`` and its ``position_p``; NaN if undefined.

    The bias is the total variation distance, from 0 to 1, between the distribution of the chosen positions
    and the uniform one. Orders begin at random, so a choice by content alone has no preferred position. This
    is tested by Hotelling's T² over dialogues, because the answers of a dialogue depend on one another.
    """
    with_choice = [q for q in questions if q.n_without < len(q.choices)]
    if not with_choice:
        return {"position_bias": math.nan, "position_p": math.nan}
    n_positions = max(len(q.question.options) for q in with_choice)
    deviations = np.zeros((len(with_choice), n_positions))
    for row, q in enumerate(with_choice):
        for position in (position for position in q.positions if position >= 0):
            deviations[row, position] += 1
            deviations[row, : len(q.question.options)] -= 1 / len(q.question.options)
    n_choices = sum(len(q.choices) - q.n_without for q in with_choice)
    bias = float(np.abs(deviations.sum(axis=0)).sum()) / (2 * n_choices)
    return {"position_bias": bias, "position_p": _hotelling(deviations[:, :-1])}


def _hotelling(deviations: Floats) -> float:
    """Return p of Hotelling's T² for the mean 0 of (n, d) rows; 1 if all are 0, NaN if n is too small."""
    from scipy.special import fdtrc

    n = len(deviations)
    if not deviations.any():
        return 1.0
    covariance = np.atleast_2d(np.cov(deviations, rowvar=False)) if n > 1 else np.zeros((1, 1))
    rank = int(np.linalg.matrix_rank(covariance))
    if not 0 < rank < n:
        return math.nan
    mean = deviations.mean(axis=0)
    squared = n * float(mean @ np.linalg.pinv(covariance, hermitian=True) @ mean)
    return float(fdtrc(rank, n - rank, squared * (n - rank) / (rank * (n - 1))))


def _remark(details: Mapping[str, Any]) -> str:
    remarks = []
    if n_tied := details["gold_ties"]:
        remarks.append(note(SEVERAL_CORRECT, n=n_tied))
    counts, total = details["answers"], sum(details["answers"].values())
    without = []
    if n := counts["refused"]:
        without.append(note("{n:d} of {total:d} answers are refusals", n=n, total=total))
    if n := counts["cut"]:
        without.append(
            note("{n:d} of {total:d} answers were cut at the limit of tokens", n=n, total=total)
        )
    if n := counts["unparsable"]:
        without.append(
            note("{n:d} of {total:d} answers name no option, or several", n=n, total=total)
        )
    if without:
        remarks.append(f"{', '.join(without)}: {note('they count as wrong')}")
    return "; ".join(remarks)
