"""Task of inspect_ai: ``inspect eval giccs/multiple_choice_sts --model MODEL``.

inspect_ai finds this module by its entry point and evaluates chat models of any provider. The questions,
their prompts and gold options are those of the task multiple-choice-sts.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.scorer import (
    Metric,
    SampleScore,
    Score,
    Scorer,
    Target,
    accuracy,
    metric,
    scorer,
    stderr,
)
from inspect_ai.solver import TaskState, generate, system_message

from giccs.benchmark import SAMPLE, read_benchmark
from giccs.benchmark.languages import base_language
from giccs.prompts import LETTERS, Template, open_template
from giccs.tasks.multiple_choice import MultipleChoice
from giccs.tasks.questions import HISTORIES, Question, QuestionRenderer

__all__ = ["chosen_letter", "letter_of_most_similar", "multiple_choice_sts", "no_letter"]

INSTRUCTIONS = {
    "de": "Antworten Sie nur mit dem Buchstaben der gewählten Äußerung.",
    "en": "Answer with the letter of the chosen utterance only.",
}
"""Language of the prompt template -> system message."""
LETTER = re.compile(r"(?:(?:antwort|answer)\s*:)?[\s*(]*([A-Z])[\s*).:]*", re.IGNORECASE)
LETTER_AND_TEXT = re.compile(r"[\s*(]*([A-Z])[*]*[).:]\s*(.+)", re.DOTALL)


@task
def multiple_choice_sts(
    data: str = SAMPLE,
    history: str = "with",
    template: str | None = None,
    language: str | None = None,
    seed: int = 0,
) -> Task:
    """Choose the utterance that is most similar to the last one of a dialogue, by its letter.

    data: a benchmark as in ``giccs-eval --data``. history: ``with`` or ``without`` the turns before the last.
    template, language, seed: prompt template, language of items that state none, and seed of the order of
    options, as in giccs-eval. There is one sample per dialogue. Metrics are the accuracy, its standard error,
    and the share of answers without a letter, which are wrong. Raises InputError for invalid data, and
    ValueError for an unknown history.
    """
    if history not in HISTORIES:
        raise ValueError(f"history is {history!r}; expected {' or '.join(HISTORIES)}")
    benchmark = read_benchmark(data)
    choice = MultipleChoice(
        open_template(template) if template else None,
        (history,),
        "letter",
        seed=seed,
        language=language,
    )
    prompt_template = choice.template_for(benchmark)
    renderer = QuestionRenderer(prompt_template, "letter")
    questions, _ = choice.questions_for(benchmark)
    return Task(
        dataset=MemoryDataset(
            [_sample(question, renderer, history) for question in questions], name=benchmark.name
        ),
        solver=[system_message(_instruction(prompt_template)), generate()],
        scorer=letter_of_most_similar(),
        metadata={"data": benchmark.fingerprint, "template": prompt_template.name, "seed": seed},
    )


def _sample(question: Question, renderer: QuestionRenderer, history: str) -> Sample:
    return Sample(
        id=question.dialogue_id,
        input=renderer.render(question, 0, history).prompt,
        target=[LETTERS[n] for n, is_gold in enumerate(question.gold) if is_gold],
        metadata={
            "utterances": [option.utterance.strip() for option in question.options],
            "scores": question.scores.tolist(),
            "n_turns": question.n_turns,
            "source": question.source,
            "domain": question.domain,
        },
    )


def _instruction(template: Template) -> str:
    return INSTRUCTIONS.get(base_language(template.language or "en"), INSTRUCTIONS["en"])


def chosen_letter(answer: str, utterances: Sequence[str]) -> str:
    """Return the letter that an answer chooses, or an empty string.

    An answer is a letter ("B", "(B)", "Answer: B."), a letter with the text of its option ("B. Two of us."),
    or the text of an option. Anything else chooses none.

    >>> texts = ["A table for two?", "No."]
    >>> [chosen_letter(answer, texts) for answer in ("**b**", "Answer: B", "B) No.", "No.", "A table", "C")]
    ['B', 'B', 'B', 'B', '', '']
    """
    text = answer.strip()
    if match := LETTER.fullmatch(text):
        letter = match[1].upper()
    elif (match := LETTER_AND_TEXT.fullmatch(text)) and match[2].strip() in utterances:
        letter = match[1]
    elif utterances.count(text) == 1:
        letter = LETTERS[utterances.index(text)]
    else:
        return ""
    return letter if letter in LETTERS[: len(utterances)] else ""


@metric
def no_letter() -> Metric:
    """Share of answers that choose no option."""

    def share(scores: list[SampleScore]) -> float:
        return sum(not score.score.answer for score in scores) / len(scores)

    return share


@scorer(metrics=[accuracy(), stderr(), no_letter()])
def letter_of_most_similar() -> Scorer:
    """Score 1 for the letter of an utterance with the highest similarity, else 0."""

    async def score(state: TaskState, target: Target) -> Score:
        utterances: list[str] = state.metadata["utterances"]
        letter = chosen_letter(state.output.completion, utterances)
        chosen: dict[str, Any] = {}
        if letter:
            index = LETTERS.index(letter)
            chosen = {"utterance": utterances[index], "score": state.metadata["scores"][index]}
        return Score(
            value=float(letter in list(target)),
            answer=letter,
            explanation=state.output.completion,
            metadata=chosen,
        )

    return score
