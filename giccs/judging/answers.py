"""Best and worst item in a model's answers about a tuple. Nothing is guessed.

Likelihoods choose the pair of different items with the highest sum of the log-likelihood of the first as the
answer to the question for the best, and of the second as that to the question for the worst. Generated
answers are read by `giccs.tasks.answer_parsing`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from giccs.judging.prompts import QUESTIONS
from giccs.models.abilities import Response
from giccs.prompts import LETTERS
from giccs.tasks.answer_parsing import OUTCOMES, outcome_of

INVALID_OUTCOMES = {
    **{outcome: text for outcome, text in OUTCOMES.items() if outcome != "answered"},
    "same": "name the same item as best and as worst",
    "tied": "have equal or undefined likelihoods",
}
"""Outcome of invalid answers -> its description."""


class Choice(NamedTuple):
    """Places of the best and the worst item on display, from 0; -1 if the answers are invalid."""

    best: int
    worst: int
    outcome: str
    """``answered``, or a key of `INVALID_OUTCOMES`."""


@dataclass(frozen=True, slots=True)
class AnswerPair:
    """The answers to the questions for the best and for the worst item of a tuple."""

    best: Response | tuple[float | None, ...]
    """A generated answer, or the log-likelihood of each item on display; None if it is not finite."""
    worst: Response | tuple[float | None, ...]
    shortened: bool = False
    """Whether turns were removed because a prompt exceeded the model's context."""

    def document(self) -> dict[str, Any]:
        """Return the answers as JSON, for a journal."""
        best, worst = (
            asdict(answer) if isinstance(answer, Response) else list(answer)
            for answer in (self.best, self.worst)
        )
        return {"best": best, "worst": worst, "shortened": self.shortened}

    @classmethod
    def parse(cls, document: Mapping[str, Any]) -> AnswerPair:
        """Return the answers in JSON; raise KeyError, TypeError or ValueError if it is invalid."""
        best, worst = (
            Response(**answer) if isinstance(answer, dict) else tuple(answer)
            for answer in (document[name] for name in QUESTIONS)
        )
        return cls(best, worst, bool(document["shortened"]))


def choice_of(answers: AnswerPair, method: str, utterances: Sequence[str]) -> Choice:
    """Return the choice in two answers.

    method: ``likelihood``, ``logprobs`` or ``generation``. utterances: texts in display order.

    >>> choice_of(AnswerPair(Response("B"), Response("A. Yes.")), "generation", ["Yes.", "No."])
    Choice(best=1, worst=0, outcome='answered')
    >>> choice_of(AnswerPair(Response("A"), Response("Yes.")), "generation", ["Yes.", "No."]).outcome
    'same'
    >>> choice_of(AnswerPair((-1.0, -2.0), (-1.0, -9.0)), "likelihood", ["Yes.", "No."])
    Choice(best=1, worst=0, outcome='answered')
    """
    if isinstance(answers.best, Response) and isinstance(answers.worst, Response):
        if method == "generation":
            return _generated_choice(answers.best, answers.worst, utterances)
        letters = LETTERS[: len(utterances)]
        best, worst = (
            [answer.letters.get(letter, -np.inf) for letter in letters]
            for answer in (answers.best, answers.worst)
        )
        return likeliest_pair(np.array(best), np.array(worst))
    best_values, worst_values = (
        np.array([np.nan if value is None else value for value in answer], dtype=np.float64)
        for answer in (answers.best, answers.worst)
        if not isinstance(answer, Response)
    )
    return likeliest_pair(best_values, worst_values)


def _generated_choice(best: Response, worst: Response, utterances: Sequence[str]) -> Choice:
    (best_letter, best_outcome), (worst_letter, worst_outcome) = (
        outcome_of(answer, utterances) for answer in (best, worst)
    )
    if not best_letter or not worst_letter:
        return Choice(-1, -1, worst_outcome if best_letter else best_outcome)
    if best_letter == worst_letter:
        return Choice(-1, -1, "same")
    return Choice(LETTERS.index(best_letter), LETTERS.index(worst_letter), "answered")


def likeliest_pair(best: NDArray[np.float64], worst: NDArray[np.float64]) -> Choice:
    """Return the different places b and w with the highest best[b] + worst[w].

    best, worst: (K,) log-likelihoods; -inf for an item that cannot be chosen. The choice is ``tied`` if
    several pairs have the highest sum, if it is -inf, or if a likelihood is NaN.
    """
    sums = best[:, np.newaxis] + worst
    np.fill_diagonal(sums, -np.inf)
    pairs = np.argwhere(sums == sums.max())
    if len(pairs) != 1 or not np.isfinite(sums.max()):
        return Choice(-1, -1, "tied")
    return Choice(int(pairs[0, 0]), int(pairs[0, 1]), "answered")
