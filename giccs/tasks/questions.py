"""A benchmark as multiple-choice questions: which options in which order, and the text that asks."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from bws.problems import InputError, Problem
from giccs.benchmark import Benchmark
from giccs.benchmark.items import Item, Turn
from giccs.prompts import LETTERS, Template

__all__ = ["HISTORIES", "Asked", "Asking", "Question", "questions"]

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
