"""Judgments of tuples by a language model, and the number of its invalid answers."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from bws.base.problems import InputError, Problem
from bws.base.text import display_name
from bws.records import Judgments, Tuples
from giccs.benchmark.languages import check_language
from giccs.journal import Journal
from giccs.judging.answers import INVALID_OUTCOMES, AnswerPair, Choice, choice_of
from giccs.judging.judge import Judge, JudgeInput, Presentation
from giccs.judging.prompts import TuplePrompt, default_prompt, open_tuple_prompt
from giccs.judging.questions import (
    TupleQuestion,
    digest_of,
    read_judged_dialogues,
    tuple_questions,
)
from giccs.progress import Progress, silent
from giccs.prompts import LETTERS, language_warnings


@dataclass(frozen=True, eq=False)
class JudgingStudy:
    """Tuples that a model judges in several orders, by repeated calls, and with several prompts."""

    tuples: Tuples
    questions: Sequence[TupleQuestion]
    """(T,) one per tuple."""
    prompts: Sequence[TuplePrompt]
    judge: Judge
    orders: int
    """Number of cyclic orders of the items, at most the number of items."""
    seed: int = 0

    @cached_property
    def presentations(self) -> list[Presentation]:
        """By tuple, prompt, order and repeated call."""
        return [
            Presentation(question, prompt, order, repeat)
            for question in self.questions
            for prompt in self.prompts
            for order in range(self.orders)
            for repeat in range(self.judge.repeats)
        ]

    @cached_property
    def inputs(self) -> list[JudgeInput]:
        """The rendered questions of each presentation."""
        return self.judge.inputs(self.presentations)

    def n_answered(self, journal: Journal[AnswerPair]) -> int:
        """Return the number of presentations with answers in the journal."""
        return sum(each.key in journal.answers for each in self.inputs)

    def run_of(self, presentation: Presentation) -> int:
        """Return the number of an order and a repeated call, from 0, that of the order first."""
        return presentation.order * self.judge.repeats + presentation.repeat

    def signature(self) -> dict[str, Any]:
        """Return all settings that determine the judgments."""
        return {
            **self.judge.signature(),
            **digest_of(self.questions),
            "prompts": {prompt.name: prompt.digests for prompt in self.prompts},
            "orders": self.orders,
            "repeats": self.judge.repeats,
            "seed": self.seed,
        }

    def run(
        self, journal: Journal[AnswerPair] | None = None, progress: Progress = silent
    ) -> JudgedTuples:
        """Ask the model, except for answers in the journal."""
        answers = self.judge.answers(self.inputs, journal, progress)
        choices = [
            choice_of(answer, self.judge.method, presentation.utterances)
            for answer, presentation in zip(answers, self.presentations, strict=True)
        ]
        n_shortened = sum(answer.shortened for answer in answers)
        return JudgedTuples(self, choices, n_shortened, self.judge.annotator)


@dataclass(frozen=True, eq=False)
class JudgedTuples:
    """The choices of a model."""

    study: JudgingStudy
    choices: Sequence[Choice]
    """One per presentation."""
    n_shortened: int
    """Number of presentations from which turns were removed, because they exceeded the model's context."""
    annotator: str

    def counts(self) -> dict[str, dict[str, int]]:
        """Return the number of presentations per prompt and outcome."""
        counts = Counter(
            (presentation.prompt.name, choice.outcome)
            for presentation, choice in zip(self.study.presentations, self.choices, strict=True)
        )
        outcomes = ("answered", *INVALID_OUTCOMES)
        return {
            prompt.name: {outcome: counts[prompt.name, outcome] for outcome in outcomes}
            for prompt in self.study.prompts
        }

    def judgments(self) -> Judgments:
        """Return a judgment per presentation with valid answers; raise InputError without any.

        The columns ``prompt`` and ``run`` are the name of the prompt and `JudgingStudy.run_of`. Invalid
        answers are listed in ``left_out``.
        """
        study = self.study
        valid = [index for index, choice in enumerate(self.choices) if choice.outcome == "answered"]
        if not valid:
            message = f"none of the {len(self.choices)} answers is valid: {self.invalid()}"
            raise InputError(Problem(study.judge.model.name, None, message))
        presentations = [study.presentations[index] for index in valid]
        choices = [self.choices[index] for index in valid]
        index_of = {id(question): index for index, question in enumerate(study.questions)}
        shown = np.array([each.shown for each in presentations], dtype=np.int8)
        rows = np.arange(len(valid))
        return Judgments(
            tuples=study.tuples,
            tuple_of=np.array([index_of[id(p.question)] for p in presentations], dtype=np.int32),
            best=shown[rows, [choice.best for choice in choices]],
            worst=shown[rows, [choice.worst for choice in choices]],
            annotator_of=np.zeros(len(valid), dtype=np.int32),
            annotators=np.array([self.annotator], dtype=object),
            shown=shown,
            columns={
                "prompt": np.array([p.prompt.name for p in presentations], dtype=object),
                "run": np.array([str(study.run_of(p)) for p in presentations], dtype=object),
            },
            source=study.judge.model.name,
            left_out=tuple(self._left_out()),
        )

    def _left_out(self) -> Iterator[Problem]:
        for presentation, choice in zip(self.study.presentations, self.choices, strict=True):
            if choice.outcome != "answered":
                where = f"tuple {presentation.question.tuple_id}, prompt {presentation.prompt.name}"
                message = f"{where}, run {self.study.run_of(presentation)}: {choice.outcome}"
                yield Problem(self.study.judge.model.name, None, message)

    def invalid(self) -> str:
        """Return the numbers of invalid answers by kind as text; empty without any."""
        counts = Counter(choice.outcome for choice in self.choices)
        return ", ".join(
            f"{counts[outcome]} {description}"
            for outcome, description in INVALID_OUTCOMES.items()
            if counts[outcome]
        )


def open_study(
    tuples: Tuples,
    data: str | os.PathLike[str],
    judge: Judge,
    *,
    templates: Sequence[str | os.PathLike[str]] = (),
    language: str | None = None,
    orders: int | None = None,
    seed: int = 0,
    limit: int | None = None,
    file: str | os.PathLike[str] = "tuples",
) -> tuple[JudgingStudy, list[Problem]]:
    """Return the study of the first tuples (by default all), and warnings.

    data: a dialogues file or a benchmark. templates: prompts, see `giccs.judging.prompts`; by default that of
    the language of the data, or `language` if they state none. orders: by default the number of items per
    tuple. file: the tuples file in messages. Raises InputError with every problem of the input.
    """
    name = os.fspath(data)
    check_design(tuples, orders, file)
    dialogues = read_judged_dialogues(data)
    check_language(dialogues, name, language)
    prompts = (
        [open_tuple_prompt(template) for template in dict.fromkeys(templates)]
        if templates
        else [default_prompt(dialogues, name, language)]
    )
    for prompt_name, count in Counter(prompt.name for prompt in prompts).items():
        if count > 1:
            message = f"{count} templates with this name; expected files of different names"
            raise InputError(Problem(prompt_name, None, message))
    warnings = [
        warning
        for prompt in prompts
        for warning in language_warnings(prompt.best, dialogues, name, language)
    ]
    used = first_tuples(tuples, limit)
    questions = tuple_questions(used, dialogues, seed, file)
    study = JudgingStudy(used, questions, prompts, judge, orders or tuples.k, seed)
    return study, warnings


def check_design(tuples: Tuples, orders: int | None, file: str | os.PathLike[str]) -> None:
    """Raise InputError for tuples with more items than letters, and for more orders than items."""
    problems = []
    if tuples.k > len(LETTERS):
        problems.append(f"tuples of {tuples.k} items; expected at most {len(LETTERS)}")
    if orders is not None and not 1 <= orders <= tuples.k:
        problems.append(
            f"tuples of {tuples.k} items; expected --orders from 1 to {tuples.k}, not {orders}"
        )
    if problems:
        raise InputError(Problem(display_name(file), None, message) for message in problems)


def first_tuples(tuples: Tuples, n: int | None) -> Tuples:
    """Return the first n tuples; by default all."""
    columns = {name: column[:n] for name, column in tuples.columns.items()}
    control = tuples.control_column
    return replace(
        tuples,
        ids=tuples.ids[:n],
        members=tuples.members[:n],
        columns=columns,
        control_column=None if control is None else control[:n],
    )
