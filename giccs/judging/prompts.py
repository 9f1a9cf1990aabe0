"""Prompts for best-worst judgments: a template with the questions for the best and for the worst item.

The template has the syntax of `giccs.prompts` and the field ``{question}``. Its first lines state the
language (optional) and both questions::

    # language: en
    # best: Which utterance is most similar to the last utterance?
    # worst: Which utterance is least similar to the last utterance?

The built-in wordings with number 1 consist of the sentences that people read on the annotation page; those
with number 2 are a paraphrase, for measuring the sensitivity to the prompt. Released templates never change.

The prompt for plain items consists of the texts of the study's page only, so it can be in any language.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from bws.base.problems import InputError, Problem
from giccs.benchmark.items import Dialogue
from giccs.benchmark.languages import base_language, required_language
from giccs.prompts import LETTERS, Template, stated_language, template_problems, template_text
from giccs.tasks.answer_parsing import INSTRUCTIONS

TUPLE_PROMPTS = {"bws-de-1": "de", "bws-de-2": "de", "bws-en-1": "en", "bws-en-2": "en"}
"""The built-in wordings with their languages; the first of each language is its default."""
QUESTIONS = ("best", "worst")
HEADER_LINE = re.compile(r"# *(language|best|worst): *(.*?) *\n")
QUESTION_FIELD = "{question}"
ITEM_INSTRUCTIONS = {
    "letter": {"de": "Antworten Sie nur mit dem Buchstaben.", "en": "Answer with the letter only."},
    "sentence": {
        "de": "Antworten Sie nur mit dem Wortlaut der gewählten Option.",
        "en": "Answer with the exact text of the chosen option only.",
    },
}
"""As `giccs.tasks.answer_parsing.INSTRUCTIONS`, for options that are not utterances."""


@dataclass(frozen=True)
class TuplePrompt:
    """A wording of the two questions about a tuple."""

    name: str
    """Value of the column ``prompt``: a built-in name, or that of the file without its folder and ending."""
    best: Template
    worst: Template
    instructions: Mapping[str, Mapping[str, str]] = field(default_factory=lambda: INSTRUCTIONS)
    """Instructions for generated answers, see `giccs.tasks.answer_parsing.instruction_for`."""

    @property
    def language(self) -> str | None:
        """BCP 47 tag; None if the file states none."""
        return self.best.language

    @cached_property
    def digests(self) -> dict[str, str]:
        """SHA-256 of the template of each question."""
        return {"best": self.best.digest, "worst": self.worst.digest}


def open_tuple_prompt(name: str | os.PathLike[str]) -> TuplePrompt:
    """Return the built-in wording with this name, or the one in a file; InputError with every problem.

    >>> prompt = open_tuple_prompt("bws-en-1")
    >>> prompt.language, prompt.best.text.splitlines()[-2]
    ('en', 'Question: Which utterance is most similar to the last utterance?')
    """
    name = os.fspath(name)
    text = template_text(name, TUPLE_PROMPTS)
    header: dict[str, tuple[int, str]] = {}
    first_line = 1
    while line := HEADER_LINE.match(text):
        header[line[1]] = first_line, line[2]
        text, first_line = text[line.end() :], first_line + 1
    language = stated_language(name, *header["language"]) if "language" in header else None
    texts = {key: text.replace(QUESTION_FIELD, header.get(key, (0, ""))[1]) for key in QUESTIONS}
    problems = dict.fromkeys(
        [
            *_question_problems(name, text, header),
            *(p for key in QUESTIONS for p in template_problems(name, texts[key], first_line)),
        ]
    )
    if problems:
        raise InputError(problems)
    short_name = name if name in TUPLE_PROMPTS else Path(name).stem
    best, worst = (Template(name, texts[key], language) for key in QUESTIONS)
    return TuplePrompt(short_name, best, worst)


@dataclass(frozen=True, slots=True)
class AnsweredTuple:
    """The example of a page, with its answers."""

    options: Sequence[str]
    best: int
    worst: int
    """Index of the best and of the worst option."""
    explanation: str

    def lines(self, best_question: str, worst_question: str, answer: str) -> list[str]:
        """Return the lines of a prompt; answer: ``letter`` or ``sentence``."""
        answers = LETTERS if answer == "letter" else self.options
        return [
            *(f"{letter}. {text}" for letter, text in zip(LETTERS, self.options, strict=False)),
            f"{best_question} {answers[self.best]}",
            f"{worst_question} {answers[self.worst]}",
            self.explanation,
        ]


def item_prompt(
    name: str,
    language: str,
    paragraphs: Sequence[str],
    headings: tuple[str, str],
    questions: tuple[str, str],
    example: AnsweredTuple,
    answer: str = "letter",
) -> TuplePrompt:
    """Return the prompt for plain items: instructions, an example, the items, and a question.

    paragraphs: the instructions. headings: of the example and of the items. questions: for the best and for
    the worst item.

    >>> example = AnsweredTuple(["joy", "{war}"], 0, 1, "Joy is good.")
    >>> prompt = item_prompt("hits", "en", ["Choose."], ("Example", "Question"), ("Best?", "Worst?"), example)
    >>> print(prompt.worst.render([], ["chair", "grief"]))
    Choose.
    <BLANKLINE>
    Example
    A. joy
    B. {war}
    Best? A
    Worst? B
    Joy is good.
    <BLANKLINE>
    Question
    A. chair
    B. grief
    Worst?
    """
    example_heading, item_heading = headings
    lines = [*paragraphs, "", example_heading, *example.lines(*questions, answer), "", item_heading]
    best, worst = (
        Template(
            name,
            "\n".join([*map(_literal, lines), "{letter}. {option}", _literal(question)]),
            language,
        )
        for question in questions
    )
    return TuplePrompt(name, best, worst, ITEM_INSTRUCTIONS)


def _literal(text: str) -> str:
    """Return text as a line of a template, without fields."""
    return text.strip().replace("{", "{{").replace("}", "}}")


def _question_problems(
    name: str, text: str, header: dict[str, tuple[int, str]]
) -> Iterator[Problem]:
    for key in QUESTIONS:
        if not header.get(key, (0, ""))[1]:
            expected = f"expected a line '# {key}: QUESTION' before the prompt"
            yield Problem(name, None, f"has no question for the {key} item; {expected}")
    if QUESTION_FIELD not in text:
        yield Problem(name, None, "has no question; expected a line with {question}")
    if "{option}" not in text:
        yield Problem(name, None, "has no options; expected a line with {option}")


def default_prompt(dialogues: Sequence[Dialogue], data: str, language: str | None) -> TuplePrompt:
    """Return the default wording in the language of the dialogues.

    data: its name in messages. language: that of dialogues that state none. Raises InputError if it is
    unknown, contradicts the dialogues, or has no built-in wording.
    """
    tag = required_language(dialogues, data, language, "prompts")
    names = [name for name, known in TUPLE_PROMPTS.items() if known == base_language(tag)]
    if not names:
        built_in = ", ".join(dict.fromkeys(TUPLE_PROMPTS.values()))
        message = f"there is no prompt in {tag} (built in: {built_in}); expected --template FILE"
        raise InputError(Problem(data, None, message))
    return open_tuple_prompt(names[0])
