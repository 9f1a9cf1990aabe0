"""Task of inspect_ai: the questions of the task multiple-choice-sts, asked in a chat."""

from __future__ import annotations

from typing import Any

from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.scorer import Score, Scorer, Target, accuracy, mean, scorer, stderr
from inspect_ai.solver import TaskState, generate, system_message

from giccs.benchmark import SAMPLE, read_benchmark
from giccs.prompts import LETTERS, open_template
from giccs.tasks.answer_parsing import chosen_letter, instruction_for, without_reasoning
from giccs.tasks.multiple_choice import MultipleChoice
from giccs.tasks.questions import HISTORIES, Question, QuestionRenderer


@task
def multiple_choice_sts(
    data: str = SAMPLE,
    history: str = "with",
    template: str | None = None,
    language: str | None = None,
    seed: int = 0,
) -> Task:
    """Choose the utterance that is most similar to the last one of a dialogue, by its letter.

    data: a benchmark as in ``giccs eval --data``. history: ``with`` or ``without`` the turns before the last.
    template, language, seed: prompt template, language of items that state none, and seed of the order of
    options, as in giccs eval. There is one sample per dialogue. The scores are `letter_of_most_similar`, with
    accuracy and standard error, and `no_letter`, with the share of answers without a letter, which are wrong.
    Raises InputError for invalid data, and ValueError for an unknown history.
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
        solver=[
            system_message(instruction_for("letter", prompt_template.language)),
            generate(),
        ],
        scorer=[letter_of_most_similar(), no_letter()],
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


@scorer(metrics=[accuracy(), stderr()])
def letter_of_most_similar() -> Scorer:
    """Score 1 for the letter of an utterance with the highest similarity, else 0."""

    async def score(state: TaskState, target: Target) -> Score:
        letter = _letter(state)
        chosen: dict[str, Any] = {}
        if letter:
            index = LETTERS.index(letter)
            chosen = {
                "utterance": state.metadata["utterances"][index],
                "score": state.metadata["scores"][index],
            }
        return Score(
            value=float(letter in list(target)),
            answer=letter,
            explanation=state.output.completion,
            metadata=chosen,
        )

    return score


@scorer(metrics=[mean()])
def no_letter() -> Scorer:
    """Score 1 for an answer that chooses no option, else 0."""

    async def score(state: TaskState, target: Target) -> Score:
        return Score(value=float(not _letter(state)))

    return score


def _letter(state: TaskState) -> str:
    """Return the letter of the chosen option, or an empty string."""
    return chosen_letter(without_reasoning(state.output.completion), state.metadata["utterances"])
