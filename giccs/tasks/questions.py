"""Multiple-choice questions of a benchmark: options, prompts, and accuracies of the answers."""

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

from bws.base.notes import note
from bws.base.problems import InputError, Problem
from bws.stats.estimates import Estimate
from giccs.benchmark import Benchmark
from giccs.benchmark.items import Item, Turn
from giccs.measures.comparison import clustered_share, paired_shares, share
from giccs.measures.metrics import (
    CORRELATION_BOUNDS,
    mean_over_dialogues,
    within_dialogue_correlations,
)
from giccs.prompts import LETTERS, Template

Floats = NDArray[np.float64]
Rows = Sequence[int]

UNDEFINED_RHO_REASON = note("log-likelihoods or scores are constant or NaN")
NAN_EXCLUDED = "{n:d} {unit} excluded: a likelihood is NaN"
SEVERAL_CORRECT = "{n:d} questions have several correct options (tied highest scores)"
HISTORIES = ("with", "without")


@dataclass(frozen=True)
class Question:
    """A dialogue whose candidate utterances are the options."""

    options: tuple[Item, ...]
    """In display order."""

    @property
    def dialogue_id(self) -> str:
        """Return the id of the dialogue."""
        return self.options[0].dialogue_id

    @property
    def source(self) -> str:
        """Return the source of the dialogue."""
        return self.options[0].source

    @property
    def domain(self) -> str:
        """Return the domain of the dialogue."""
        return self.options[0].domain

    @property
    def language(self) -> str | None:
        """Return the language of the dialogue."""
        return self.options[0].language

    @property
    def n_turns(self) -> int:
        """Return the number of turns, including the last one."""
        return self.options[0].n_turns

    @cached_property
    def scores(self) -> NDArray[np.float64]:
        """Similarities to the last turn, (K,)."""
        return np.array([option.score for option in self.options])

    @cached_property
    def gold(self) -> NDArray[np.bool_]:
        """Gold options, (K,): all with the highest score."""
        is_gold: NDArray[np.bool_] = self.scores == self.scores.max()
        return is_gold

    def option_indices(self, order: int) -> NDArray[np.intp]:
        """Return the option index at each position (K,) in the cyclic order `order`, from 0."""
        return (np.arange(len(self.options)) + order) % len(self.options)


def make_questions(benchmark: Benchmark, seed: int) -> tuple[list[Question], int]:
    """Return one question per dialogue, by id, and the number of skipped dialogues (one utterance).

    The random order of the options depends only on the dialogue id and the seed, not on the order of lines or
    on other dialogues. Raises InputError if there are more options than letters.

    >>> from giccs.benchmark import read_benchmark
    >>> questions, n_skipped = make_questions(read_benchmark("giccs-sample"), seed=0)
    >>> len(questions), n_skipped, [option.utterance_id[-1] for option in questions[0].options]
    (60, 0, ['d', 'b', 'e', 'c', 'a'])
    """
    options: dict[str, list[Item]] = {}
    for item in benchmark.items:
        options.setdefault(item.dialogue_id, []).append(item)
    problems = [
        Problem(
            benchmark.name,
            None,
            f"dialogue {name} has {len(candidates)} utterances; expected at most 26",
        )
        for name, candidates in options.items()
        if len(candidates) > len(LETTERS)
    ]
    if problems:
        raise InputError(problems)
    questions = [
        _make_question(options[dialogue_id], seed)
        for dialogue_id in sorted(options)
        if len(options[dialogue_id]) > 1
    ]
    return questions, len(options) - len(questions)


def _make_question(options: Sequence[Item], seed: int) -> Question:
    by_id = sorted(options, key=lambda item: item.utterance_id)
    id_digest = hashlib.blake2b(options[0].dialogue_id.encode("utf-8"), digest_size=8).digest()
    order = np.random.default_rng([seed, int.from_bytes(id_digest)]).permutation(len(by_id))
    return Question(tuple(by_id[index] for index in order))


@dataclass(frozen=True, slots=True)
class RenderedQuestion:
    """Input of a model: a prompt and its possible answers, concatenated without a separator."""

    prompt: str
    """Without trailing white space, which is part of the answers."""
    answers: tuple[str, ...]
    """In display order."""
    shortened_prompts: tuple[str, ...] = ()
    """The prompt without the first turn, the first two …, for models with a smaller context."""

    @property
    def prompts(self) -> tuple[str, ...]:
        """The prompt and its shorter forms, from longest to shortest."""
        return self.prompt, *self.shortened_prompts


@dataclass(frozen=True, slots=True)
class QuestionRenderer:
    """Renders questions as text."""

    template: Template
    answer: str = "sentence"
    chat: Callable[[str], str] | None = None
    """Function that applies a chat template; None without one."""
    instruction: str = ""
    """Text before the template, for generated answers."""

    def render(self, question: Question, order: int, history: str) -> RenderedQuestion:
        """Return the text for a history: ``with``, ``without`` (last turn only), or ``none`` (no dialogue).

        >>> from giccs.benchmark import read_benchmark
        >>> from giccs.prompts import open_template
        >>> (question, *_), _ = make_questions(read_benchmark("giccs-sample"), seed=0)
        >>> rendered = QuestionRenderer(open_template("figure2-de-1")).render(question, 0, "without")
        >>> rendered.prompt.splitlines()[-1], rendered.answers[0][:30], len(rendered.shortened_prompts)
        ('Antwort:', ' Im Urlaub wollen wir ein Schl', 0)
        """
        turns = question.options[0].turns
        context = {"with": turns, "without": turns[-1:], "none": ()}[history]
        indices = question.option_indices(order)
        return self.render_texts(context, [question.options[n].utterance.strip() for n in indices])

    def render_texts(self, turns: Sequence[Turn], options: Sequence[str]) -> RenderedQuestion:
        """Return the text for turns and options, in display order."""
        full, *shortened = [
            self._render_text(turns[start:], options) for start in range(max(1, len(turns)))
        ]
        prompt = full.rstrip()
        separator = full[len(prompt) :] or ("" if self.chat else " ")
        texts = LETTERS[: len(options)] if self.answer == "letter" else options
        answers = tuple(f"{separator}{text}" for text in texts)
        return RenderedQuestion(prompt, answers, tuple(text.rstrip() for text in shortened))

    def _render_text(self, turns: Sequence[Turn], options: Sequence[str]) -> str:
        text = self.template.render(turns, options)
        if self.instruction:
            text = f"{self.instruction}\n\n{text}"
        return self.chat(text) if self.chat else text


@dataclass(frozen=True, eq=False)
class Likelihoods:
    """Log-likelihoods of a question's options; arrays are (R, K).

    R are the cyclic orders of the options, from 0; K the options, always in the order of the question itself.
    """

    logprob: Floats
    tokens: Floats
    bytes: Floats
    unconditional_logprob: Floats
    """Log-likelihoods of the same answers after the same prompt without a dialogue."""


@dataclass(frozen=True, eq=False)
class QuestionScores(Likelihoods):
    """A question and the log-likelihoods of its options."""

    question: Question
    truncated: bool = False
    """Whether turns were removed in any order, because the prompt exceeded the model's context."""


def _pmi(scores: Likelihoods) -> Floats:
    """Return the pointwise mutual information of answer and dialogue, given the rest of the prompt.

    The prompt without a dialogue contains the question and the options. It is not the short premise of
    Holtzman et al. (2021, Surface Form Competition), so this is not their PMI_DC.
    """
    with np.errstate(invalid="ignore"):  # Two impossible answers: NaN, with a reason.
        return scores.logprob - scores.unconditional_logprob


Measure = Callable[[Likelihoods], Floats]
MEASURES: Mapping[str, Measure] = {
    "accuracy": lambda answers: answers.logprob,
    "accuracy_tokens": lambda answers: answers.logprob / answers.tokens,
    "accuracy_bytes": lambda answers: answers.logprob / answers.bytes,
    "accuracy_pmi": _pmi,
}
"""Name of an accuracy -> normalised log-likelihood of each answer, (R, K)."""


@dataclass(frozen=True, eq=False)
class ConditionScores:
    """The answers to all questions under one history.

    Likelihoods of the options are averaged over the orders, and the highest is chosen; ties are resolved in
    display order. Any option with the highest score is correct.
    """

    answers: tuple[QuestionScores, ...]
    resamples: int = 1000
    seed: int = 0

    def metrics(self, accuracies: Iterable[str], rows: Rows) -> dict[str, Estimate]:
        """Return accuracies and the rank correlation of log-likelihood and score, over some questions."""
        rho = mean_over_dialogues(
            self.rho[list(rows)],
            bounds=CORRELATION_BOUNDS,
            resamples=self.resamples,
            seed=self.seed,
            missing_reason=UNDEFINED_RHO_REASON,
        )
        return {name: self._accuracy(name, rows) for name in accuracies} | {"rank_spearman": rho}

    @cached_property
    def correct(self) -> dict[str, Floats]:
        """By measure (Q,): 1 for correct and 0 for wrong choices; NaN if a likelihood is NaN."""
        return {
            name: np.array(
                [
                    _correctness(measure(scored).mean(axis=0), scored.question)
                    for scored in self.answers
                ]
            )
            for name, measure in MEASURES.items()
        }

    @cached_property
    def rho(self) -> Floats:
        """Spearman's rho between log-likelihood and score in each dialogue, (Q,)."""
        means = [scored.logprob.mean(axis=0) for scored in self.answers]
        dialogue = np.repeat(np.arange(len(means)), [len(mean) for mean in means])
        logprob = np.concatenate(means)
        correlations = within_dialogue_correlations(
            logprob, np.concatenate([a.question.scores for a in self.answers]), dialogue
        )
        correlations[dialogue[np.isnan(logprob)]] = math.nan
        return correlations

    def _accuracy(self, name: str, rows: Rows) -> Estimate:
        subset = [self.answers[row] for row in rows]
        correct = self.correct[name][list(rows)]
        details = _accuracy_details(MEASURES[name], subset)
        if n_invalid := int(np.count_nonzero(np.isnan(correct))):
            reason = note("{n:d} questions have a likelihood of NaN", n=n_invalid)
            return Estimate(math.nan, math.nan, math.nan, len(correct), reason, details)
        accuracy = share(correct == 1)
        return replace(accuracy, reason=_remarks(details), extra={**accuracy.extra, **details})


def average_metrics(
    first: ConditionScores, second: ConditionScores, accuracies: Iterable[str], rows: Rows
) -> dict[str, Estimate]:
    """Return the metrics averaged over two histories; the two answers of a dialogue count as one unit."""

    estimates = {
        name: _mean_accuracy((first.correct[name] + second.correct[name])[list(rows)])
        for name in accuracies
    }
    rho = (first.rho + second.rho)[list(rows)] / 2
    chance = {"chance": _chance_accuracy([first.answers[row] for row in rows])}
    return {
        name: replace(estimate, extra={**estimate.extra, **chance})
        for name, estimate in estimates.items()
    } | {
        "rank_spearman": mean_over_dialogues(
            rho,
            bounds=CORRELATION_BOUNDS,
            resamples=first.resamples,
            seed=first.seed,
            missing_reason=UNDEFINED_RHO_REASON,
        )
    }


def _mean_accuracy(n_correct: Floats) -> Estimate:
    """Return the share of correct answers, from (Q,) 0, 1 or 2 of the two answers; NaN is excluded."""
    valid = n_correct[~np.isnan(n_correct)]
    n_invalid = len(n_correct) - len(valid)
    remark = note(NAN_EXCLUDED, n=n_invalid, unit="dialogues") if n_invalid else ""
    return clustered_share(valid, np.full(len(valid), 2), remark)


def history_differences(
    with_history: ConditionScores,
    without_history: ConditionScores,
    accuracies: Iterable[str],
    rows: Rows,
) -> dict[str, Estimate]:
    """Return the differences between two histories over dialogues: ``accuracy_difference`` and so on.

    Positive if the history helps. Accuracies include ``p`` of the exact McNemar test and the numbers of
    questions that are answered correctly only with or only without history.
    """
    estimates = {
        f"{name}_difference": _accuracy_difference(
            with_history.correct[name], without_history.correct[name], rows
        )
        for name in accuracies
    }
    rho = (with_history.rho - without_history.rho)[list(rows)]
    estimates["rank_spearman_difference"] = mean_over_dialogues(
        rho,
        resamples=with_history.resamples,
        seed=with_history.seed,
        missing_reason=UNDEFINED_RHO_REASON,
    )
    return estimates


def _accuracy_difference(first: Floats, second: Floats, rows: Rows) -> Estimate:
    first, second = first[list(rows)], second[list(rows)]
    valid = ~np.isnan(first + second)
    estimate = paired_shares(first[valid] == 1, second[valid] == 1)
    extra = dict(estimate.extra)
    extra["only_with"], extra["only_without"] = extra.pop("only_first"), extra.pop("only_second")
    n_invalid = int(np.count_nonzero(~valid))
    if n_invalid:
        remark = note(NAN_EXCLUDED, n=n_invalid, unit="questions")
        return replace(estimate, extra=extra, reason=remark)
    return replace(estimate, extra=extra)


def _correctness(likelihoods: Floats, question: Question) -> float:
    return math.nan if np.isnan(likelihoods).any() else float(question.gold[np.argmax(likelihoods)])


def _accuracy_details(measure: Measure, questions: Sequence[QuestionScores]) -> dict[str, Any]:
    """Return further numbers for an accuracy: chance level, ties, and choices per letter."""
    letters: Counter[str] = Counter()
    ties = n_consistent = 0
    order_accuracies: list[float] = []
    for scored in questions:
        likelihoods = measure(scored)
        mean = likelihoods.mean(axis=0)
        ties += int(np.count_nonzero(mean == mean.max()) > 1)
        positions = [
            _choice_position(likelihoods[order], scored.question, order)
            for order in range(len(likelihoods))
        ]
        letters.update(LETTERS[position] for position in positions)
        choices = [
            scored.question.option_indices(order)[index] for order, index in enumerate(positions)
        ]
        n_consistent += int(len(set(choices)) == 1)
        order_accuracies.append(float(np.mean(scored.question.gold[choices])))
    max_options = max((len(question.question.options) for question in questions), default=0)
    has_orders = max((len(answers.logprob) for answers in questions), default=1) > 1
    return {
        "chance": _chance_accuracy(questions),
        "gold_ties": sum(int(answers.question.gold.sum() > 1) for answers in questions),
        "ties": ties,
        "cut": sum(answers.truncated for answers in questions),
        "chosen": {letter: letters[letter] for letter in LETTERS[:max_options]},
    } | (
        {"single_order": float(np.mean(order_accuracies)), "same_choice": n_consistent}
        if has_orders
        else {}
    )


def _choice_position(likelihoods: Floats, question: Question, order: int) -> int:
    """Return the position of the option with the highest likelihood, the first of several."""
    return int(np.argmax(likelihoods[question.option_indices(order)]))


def _chance_accuracy(questions: Sequence[QuestionScores]) -> float:
    """Return the accuracy of guessing: the mean share of correct options."""
    return (
        float(np.mean([scored.question.gold.mean() for scored in questions]))
        if questions
        else math.nan
    )


def _remarks(details: Mapping[str, Any]) -> str:
    remarks = []
    if n := details["gold_ties"]:
        remarks.append(note(SEVERAL_CORRECT, n=n))
    if n := details["ties"]:
        remarks.append(
            note(
                "{n:d} questions have several options with the highest likelihood; the first one was chosen",
                n=n,
            )
        )
    if n := details["cut"]:
        remarks.append(
            note(
                "{n:d} questions have prompts longer than the model's context, truncated at a turn from the "
                "left",
                n=n,
            )
        )
    return "; ".join(remarks)
