"""A benchmark as multiple-choice questions: options and prompts, and the accuracies of the answers."""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bws.problems import InputError, Problem
from giccs.benchmark import Benchmark
from giccs.benchmark.items import Item, Turn
from giccs.measures.comparison import clustered_share, paired_shares, share
from giccs.measures.metrics import (
    CORRELATION_BOUNDS,
    Estimate,
    mean_over_dialogues,
    within_dialogue_correlations,
)
from giccs.prompts import LETTERS, Template

__all__ = [
    "HISTORIES",
    "MEASURES",
    "Answers",
    "Asked",
    "Asking",
    "Question",
    "Sheet",
    "averages",
    "differences",
    "questions",
]

Floats = NDArray[np.float64]
Rows = Sequence[int]

NO_RHO = "log-likelihoods or scores are all the same, or not numbers"
HISTORIES = ("with", "without")


@dataclass(frozen=True)
class Question:
    """One dialogue; its candidate utterances are the options."""

    options: tuple[Item, ...]
    """In the order in which they are shown."""

    @property
    def dialogue_id(self) -> str:
        """Return the id of the dialogue."""
        return self.options[0].dialogue_id

    @property
    def source(self) -> str:
        """Return where the dialogue is from."""
        return self.options[0].source

    @property
    def domain(self) -> str:
        """Return what the dialogue is about."""
        return self.options[0].domain

    @property
    def n_turns(self) -> int:
        """Return the length of the dialogue, the last turn included."""
        return self.options[0].n_turns

    @cached_property
    def scores(self) -> NDArray[np.float64]:
        """Similarity to the last turn, (K,)."""
        return np.array([option.score for option in self.options])

    @cached_property
    def gold(self) -> NDArray[np.bool_]:
        """The right options, (K,): all that share the highest score."""
        right: NDArray[np.bool_] = self.scores == self.scores.max()
        return right

    def shown(self, order: int) -> NDArray[np.intp]:
        """Return which option stands at each place (K,) in the cyclic order `order`, from 0."""
        return (np.arange(len(self.options)) + order) % len(self.options)


def questions(benchmark: Benchmark, seed: int) -> tuple[list[Question], int]:
    """Return a question a dialogue, by id, and how many dialogues have one utterance and are left out.

    The order of the options is drawn for each dialogue from its id and the seed: it depends neither on
    the order of the lines nor on the other dialogues. InputError where letters do not suffice.

    >>> from giccs.benchmark import read_benchmark
    >>> asked, left_out = questions(read_benchmark("giccs-sample"), seed=0)
    >>> len(asked), left_out, [option.utterance_id[-1] for option in asked[0].options]
    (60, 0, ['d', 'b', 'e', 'c', 'a'])
    """
    options: dict[str, list[Item]] = {}
    for item in benchmark.items:
        options.setdefault(item.dialogue_id, []).append(item)
    problems = [
        Problem(benchmark.name, None, f"dialogue {name} has {len(own)} utterances; 26 are allowed")
        for name, own in options.items()
        if len(own) > len(LETTERS)
    ]
    if problems:
        raise InputError(problems)
    kept = [_question(options[name], seed) for name in sorted(options) if len(options[name]) > 1]
    return kept, len(options) - len(kept)


def _question(options: Sequence[Item], seed: int) -> Question:
    by_id = sorted(options, key=lambda item: item.utterance_id)
    name = hashlib.blake2b(options[0].dialogue_id.encode("utf-8"), digest_size=8).digest()
    order = np.random.default_rng([seed, int.from_bytes(name)]).permutation(len(by_id))
    return Question(tuple(by_id[place] for place in order))


@dataclass(frozen=True, slots=True)
class Asked:
    """What a model is given: it goes on from `prompt` with each of `answers`, joined as they are."""

    prompt: str
    """Without white space at its end: that stands before the answers."""
    answers: tuple[str, ...]
    """In the order shown."""
    shorter: tuple[str, ...] = ()
    """The prompt with the first turn left out, the first two …, for a model that has no room for more."""


@dataclass(frozen=True, slots=True)
class Asking:
    """How a question becomes text."""

    template: Template
    answer: str = "sentence"
    chat: Callable[[str], str] | None = None
    """Puts a prompt into a chat template; None where there is none."""

    def ask(self, question: Question, order: int, history: str) -> Asked:
        """Return the text for a history: ``with``, ``without`` (the last turn alone), or ``none`` at all.

        >>> from giccs.benchmark import read_benchmark
        >>> from giccs.prompts import open_template
        >>> (question, *_), _ = questions(read_benchmark("giccs-sample"), seed=0)
        >>> asked = Asking(open_template("figure2-de-1")).ask(question, 0, "without")
        >>> asked.prompt.splitlines()[-1], asked.answers[0][:30], len(asked.shorter)
        ('Antwort:', ' Im Urlaub wollen wir ein Schl', 0)
        """
        turns = question.options[0].turns
        kept = {"with": turns, "without": turns[-1:], "none": ()}[history]
        options = [question.options[place].utterance.strip() for place in question.shown(order)]
        full, *shorter = [self._text(kept[first:], options) for first in range(max(1, len(kept)))]
        prompt = full.rstrip()
        separator = full[len(prompt) :] or ("" if self.chat else " ")
        said = LETTERS[: len(options)] if self.answer == "letter" else options
        answers = tuple(f"{separator}{text}" for text in said)
        return Asked(prompt, answers, tuple(text.rstrip() for text in shorter))

    def _text(self, turns: Sequence[Turn], options: Sequence[str]) -> str:
        text = self.template.render(turns, options)
        return self.chat(text) if self.chat else text


@dataclass(frozen=True, eq=False)
class Answers:
    """What a model finds of one question's options; arrays are (R, K).

    R are the cyclic orders in which the options were shown, from 0; K the options, always in the order
    of the question itself.
    """

    question: Question
    logprob: Floats
    tokens: Floats
    bytes: Floats
    alone: Floats
    """Log-likelihood of the same answers after the same prompt without any dialogue."""
    cut: bool = False
    """Whether turns were left out, in any of the orders, since the model has no room for them."""


def _pmi(answers: Answers) -> Floats:
    with np.errstate(invalid="ignore"):  # two impossible answers: not a number, and said to be so
        return answers.logprob - answers.alone


Measure = Callable[[Answers], Floats]
MEASURES: Mapping[str, Measure] = {
    "accuracy": lambda answers: answers.logprob,
    "accuracy_tokens": lambda answers: answers.logprob / answers.tokens,
    "accuracy_bytes": lambda answers: answers.logprob / answers.bytes,
    "accuracy_pmi": _pmi,
}
"""Name of an accuracy -> how likely each answer is by it, (R, K); higher is likelier."""


@dataclass(frozen=True, eq=False)
class Sheet:
    """The answers to all questions under one history.

    The options' likelihoods are averaged over the orders, and the likeliest is chosen; of several that
    are exactly as likely, the one shown first. Of several with the highest score any is right.
    """

    answers: tuple[Answers, ...]
    resamples: int = 1000
    seed: int = 0

    def metrics(self, names: Iterable[str], rows: Rows) -> dict[str, Estimate]:
        """Return accuracies, and the rank correlation of log-likelihood and score, over some questions."""
        rho = mean_over_dialogues(
            self.rho[list(rows)],
            bounds=CORRELATION_BOUNDS,
            resamples=self.resamples,
            seed=self.seed,
            missing_reason=NO_RHO,
        )
        return {name: self._accuracy(name, rows) for name in names} | {"rank_spearman": rho}

    @cached_property
    def right(self) -> dict[str, Floats]:
        """By each measure (Q,): 1 a right and 0 a wrong choice; NaN where a likelihood is not a number."""
        return {
            name: np.array([_right(measure(a).mean(axis=0), a.question) for a in self.answers])
            for name, measure in MEASURES.items()
        }

    @cached_property
    def rho(self) -> Floats:
        """Spearman's rho between log-likelihood and score in each dialogue, (Q,)."""
        means = [answers.logprob.mean(axis=0) for answers in self.answers]
        dialogue = np.repeat(np.arange(len(means)), [len(mean) for mean in means])
        logprob = np.concatenate(means)
        found = within_dialogue_correlations(
            logprob, np.concatenate([a.question.scores for a in self.answers]), dialogue
        )
        found[dialogue[~np.isfinite(logprob)]] = math.nan
        return found

    def _accuracy(self, name: str, rows: Rows) -> Estimate:
        asked = [self.answers[row] for row in rows]
        right = self.right[name][list(rows)]
        extra = _circumstances(MEASURES[name], asked)
        if lost := int(np.count_nonzero(np.isnan(right))):
            reason = f"{lost} questions have a likelihood that is not a number"
            return Estimate(math.nan, math.nan, math.nan, len(right), reason, extra)
        found = share(right == 1)
        return replace(found, reason=_remarks(extra), extra={**found.extra, **extra})


def averages(one: Sheet, other: Sheet, names: Iterable[str], rows: Rows) -> dict[str, Estimate]:
    """Return the metrics averaged over two histories; a dialogue's two answers count as one unit."""

    found = {
        name: _mean_accuracy((one.right[name] + other.right[name])[list(rows)]) for name in names
    }
    rho = (one.rho + other.rho)[list(rows)] / 2
    chance = {"chance": _chance([one.answers[row] for row in rows])}
    return {
        name: replace(estimate, extra={**estimate.extra, **chance})
        for name, estimate in found.items()
    } | {
        "rank_spearman": mean_over_dialogues(
            rho,
            bounds=CORRELATION_BOUNDS,
            resamples=one.resamples,
            seed=one.seed,
            missing_reason=NO_RHO,
        )
    }


def _mean_accuracy(right: Floats) -> Estimate:
    """Return the share of right answers, of `right` (Q,) 0, 1 or 2 of the two answers; NaN is left out."""
    known = right[~np.isnan(right)]
    lost = len(right) - len(known)
    remark = f"{lost} dialogues left out: a likelihood is not a number" if lost else ""
    return clustered_share(known, np.full(len(known), 2), remark)


def differences(
    with_it: Sheet, without: Sheet, names: Iterable[str], rows: Rows
) -> dict[str, Estimate]:
    """Return what the history changes, dialogue by dialogue: ``accuracy_difference`` and so on.

    Positive where the history helps. Accuracies carry the exact McNemar test's ``p`` and the numbers of
    questions that are answered rightly only with it or only without.
    """
    found = {
        f"{name}_difference": _difference(with_it.right[name], without.right[name], rows)
        for name in names
    }
    rho = (with_it.rho - without.rho)[list(rows)]
    found["rank_spearman_difference"] = mean_over_dialogues(
        rho, resamples=with_it.resamples, seed=with_it.seed, missing_reason=NO_RHO
    )
    return found


def _difference(first: Floats, second: Floats, rows: Rows) -> Estimate:
    first, second = first[list(rows)], second[list(rows)]
    known = ~np.isnan(first + second)
    found = paired_shares(first[known] == 1, second[known] == 1)
    extra = dict(found.extra)
    extra["only_with"], extra["only_without"] = extra.pop("only_first"), extra.pop("only_second")
    lost = int(np.count_nonzero(~known))
    remark = f"{lost} questions left out: a likelihood is not a number" if lost else found.reason
    return replace(found, extra=extra, reason=remark)


def _right(likely: Floats, question: Question) -> float:
    return math.nan if np.isnan(likely).any() else float(question.gold[np.argmax(likely)])


def _circumstances(measure: Measure, asked: Sequence[Answers]) -> dict[str, Any]:
    """Return what an accuracy is to be seen beside: chance, ties, how often each letter was chosen."""
    letters: Counter[str] = Counter()
    ties = same = 0
    by_order: list[float] = []
    for answers in asked:
        likely = measure(answers)
        mean = likely.mean(axis=0)
        ties += int(np.count_nonzero(mean == mean.max()) > 1)
        places = [_place(likely[order], answers.question, order) for order in range(len(likely))]
        letters.update(LETTERS[place] for place in places)
        chosen = [answers.question.shown(order)[place] for order, place in enumerate(places)]
        same += int(len(set(chosen)) == 1)
        by_order.append(float(np.mean(answers.question.gold[chosen])))
    longest = max((len(answers.question.options) for answers in asked), default=0)
    several = max((len(answers.logprob) for answers in asked), default=1) > 1
    return {
        "chance": _chance(asked),
        "gold_ties": sum(int(answers.question.gold.sum() > 1) for answers in asked),
        "ties": ties,
        "cut": sum(answers.cut for answers in asked),
        "chosen": {letter: letters[letter] for letter in LETTERS[:longest]},
    } | ({"single_order": float(np.mean(by_order)), "same_choice": same} if several else {})


def _place(likely: Floats, question: Question, order: int) -> int:
    """Return the place at which the likeliest option was shown, the first of several."""
    return int(np.argmax(likely[question.shown(order)]))


def _chance(asked: Sequence[Answers]) -> float:
    """Return the accuracy of guessing: the mean share of right options."""
    return (
        float(np.mean([answers.question.gold.mean() for answers in asked])) if asked else math.nan
    )


def _remarks(extra: Mapping[str, Any]) -> str:
    said = {
        "gold_ties": "questions have several right options (a shared highest score)",
        "ties": "questions have several likeliest options, of which the first was taken",
        "cut": "questions have prompts longer than the model's context, cut at a turn from the left",
    }
    return "; ".join(f"{extra[name]} {what}" for name, what in said.items() if extra[name])
