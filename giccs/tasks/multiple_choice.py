"""Multiple-choice STS (paper section 5.1.2, Table 6): choice of an utterance by a causal model.

The prompt contains a dialogue and its five utterances. The model's answer is the utterance with the highest
likelihood, or that of a generated answer, and the gold option is the one judged most similar to the last
turn.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import ne
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from bws.base.notes import note
from bws.base.options import problem_with
from bws.base.problems import InputError, Problem
from bws.stats.estimates import Estimate
from giccs.benchmark import SAMPLE, Benchmark, read_benchmark
from giccs.benchmark.languages import (
    check_language,
    data_language,
    language_tag,
    record_languages,
)
from giccs.measures.clusters import CLUSTER_COLUMNS
from giccs.measures.metrics import interval_signature
from giccs.measures.results import Group, TaskOutput
from giccs.models.abilities import Response
from giccs.models.vocabulary import count_tokens
from giccs.progress import Progress, silent
from giccs.prompts import (
    LETTERS,
    Template,
    default_template,
    language_warnings,
    open_template,
)
from giccs.tasks import CHOICES, TaskKind, TaskOptions
from giccs.tasks.answer_parsing import PARSER_VERSION, instruction_for, outcome_of
from giccs.tasks.choice_methods import choice_method, fitting_prompts, no_choice_reason
from giccs.tasks.generated_choices import (
    Choice,
    ConditionChoices,
    QuestionChoices,
    choice_differences,
    choice_metrics,
)
from giccs.tasks.pairwise import SUBSET_FIELDS, subset_rows
from giccs.tasks.questions import (
    HISTORIES,
    MEASURES,
    ConditionScores,
    Question,
    QuestionRenderer,
    QuestionScores,
    RenderedQuestion,
    average_metrics,
    history_differences,
    make_questions,
)
from giccs.tasks.refusals import chat_parameters, no_chat_template_reason

if TYPE_CHECKING:
    import polars

    from giccs.models.abilities import OptionScore
    from giccs.models.causal import CausalModel

log = logging.getLogger(__name__)

NO_DIALOGUE = "none"
Key = tuple[str, int, int]
"""History, question, order."""
Condition = ConditionScores | ConditionChoices


@dataclass(frozen=True, slots=True)
class ScoredQuestion:
    """A rendered question and the log-likelihood of each option, in display order."""

    rendered: RenderedQuestion
    prompt: str
    """The scored prompt, which is shorter than the rendered one if that exceeds the model's context."""
    scores: Sequence[OptionScore]


@dataclass(frozen=True, slots=True)
class MultipleChoice:
    """Accuracy with and without the dialogue's history, and their difference.

    `permutations`: number of cyclic orders of the options over which likelihoods, or accuracies of generated
    answers, are averaged. `answer`: continuation of the prompt, the ``sentence`` or its ``letter``; by
    default the sentence, or the letter of generated answers. `template`: prompt template, by default that of
    each item's language; `language` is the language of items that state none. `choose_by`:
    ``likelihood``, ``logprobs`` (of letters) or ``generation``, by default the first that the model supports.
    `max_tokens`: maximum length of a generated answer with its reasoning.
    """

    template: Template | None = None
    histories: tuple[str, ...] = HISTORIES
    answer: str | None = None
    permutations: int = 1
    chat_template: bool = False
    seed: int = 0
    resamples: int = 1000
    language: str | None = None
    choose_by: str | None = None
    max_tokens: int = 1024
    name: str = field(default="multiple-choice-sts", init=False)
    default_data: ClassVar[str] = SAMPLE
    read: ClassVar = staticmethod(read_benchmark)

    def __post_init__(self) -> None:
        for name in ("answer", "permutations", "choose_by", "max_tokens"):
            if problem := problem_with(TaskOptions, name, getattr(self, name)):
                raise ValueError(problem)
        if not self.histories or set(self.histories) - set(HISTORIES):
            raise ValueError(f"histories is {self.histories}; expected {HISTORIES} or one of them")
        if self.answer == "letter" and self.template and not self.template.lists_options:
            message = (
                "has no options, which answers by letter require; expected a line with {option}"
            )
            raise InputError(Problem(self.template.name, None, message))

    def refuses(self, model: Any) -> str:
        """Return why the model is unsuitable, with a remedy, or an empty string."""
        return no_choice_reason(
            model, self.name, self.choose_by, self.answer
        ) or no_chat_template_reason(model, chat_template=self.chat_template)

    def choice_method(self, model: Any) -> str:
        """Return the method of choice, see `giccs.tasks.choice_methods.choice_method`."""
        return choice_method(model, self.choose_by, self.answer)

    def answer_kind(self, method: str) -> str:
        """Return ``sentence`` or ``letter``, by default depending on the method of choice."""
        return self.answer or ("sentence" if method == "likelihood" else "letter")

    def template_for(self, benchmark: Benchmark) -> Template:
        """Return the prompt template of a benchmark in one language; errors as in `templates_for`."""
        template, *_ = self.templates_for(benchmark).values()
        if not self.template:
            data_language(benchmark.items, benchmark.name, self.language)
        return template

    def templates_for(self, benchmark: Benchmark) -> dict[str | None, Template]:
        """Return the prompt template of each language tag: the given one, or that of the language.

        Raises InputError if a language is unknown, has no template, or contradicts `language`.
        """
        items, name = benchmark.items, benchmark.name
        if self.template:
            return dict.fromkeys(check_language(items, name, self.language), self.template)
        languages = record_languages(items, name, self.language, "prompts")
        try:
            return {tag: default_template(language) for tag, language in languages.items()}
        except ValueError as error:
            raise InputError(Problem(name, None, str(error))) from None

    def warnings_for(self, benchmark: Benchmark) -> list[Problem]:
        """Return a warning if the language of the given template is not that of the items."""
        if not self.template:
            return []
        return language_warnings(self.template, benchmark.items, benchmark.name, self.language)

    def parameters(self, model: CausalModel, benchmark: Benchmark) -> dict[str, Any]:
        """Return the settings that determine the metrics besides model, data and version."""
        templates = _by_language(self.templates_for(benchmark))
        method = self.choice_method(model)
        return {
            "history": "both" if len(self.histories) > 1 else self.histories[0],
            "template": _template_signature(templates),
            "answer": self.answer_kind(method),
            "permutations": self.permutations,
            **chat_parameters(model, chat_template=self.chat_template),
            **self._generation_parameters(model, method, templates),
            "option_order": {"seed": self.seed},
            "interval": interval_signature("dialogue", self.resamples, self.seed),
            **benchmark.language_parameters(self.language),
        }

    def _generation_parameters(
        self, model: Any, method: str, templates: Mapping[str, Template]
    ) -> dict[str, Any]:
        if method == "likelihood":
            return {}
        instructions = {
            language: instruction_for(self.answer_kind(method), template.language)
            for language, template in templates.items()
        }
        first, *others = instructions.values()
        return {
            "choice": method,
            "instruction": instructions if others else first,
            **(
                {"max_tokens": self.max_tokens, "parser": PARSER_VERSION}
                if method == "generation"
                else {}
            ),
            **model.response_settings(),
        }

    def measure(self, model: Any, benchmark: Benchmark, progress: Progress = silent) -> TaskOutput:
        """Ask every question in every order, with and without history, and compute the metrics."""
        benchmark = benchmark.in_language(self.language)
        templates = self.templates_for(benchmark)
        questions, n_excluded = self.questions_for(benchmark)
        log.debug("%d questions, %d dialogues skipped", len(questions), n_excluded)
        method = self.choice_method(model)
        if method != "likelihood":
            return self._measure_choices(
                model, benchmark, templates, questions, n_excluded, method, progress
            )
        scored = self._score_questions(model, templates, questions, progress)
        log.debug("%d prompts scored; measuring, %d resamples", len(scored), self.resamples)
        conditions = {
            history: self._condition_scores(questions, scored, history)
            for history in self.histories
        }
        names = self._accuracy_names(scored)
        return TaskOutput(
            metrics=_add_exclusion_remark(
                _metrics(conditions, names, range(len(questions))), n_excluded
            ),
            groups=tuple(_groups(questions, conditions, names)),
            environment=benchmark.provenance(),
            predictions=_predictions_table(questions, scored),
        )

    def _accuracy_names(self, scored: Mapping[Key, ScoredQuestion]) -> list[str]:
        """Return the applicable accuracies.

        Letters have equal lengths, and the numbers of tokens may be unknown.
        """
        names = [*MEASURES] if self.answer != "letter" else ["accuracy", "accuracy_pmi"]
        if any(score.tokens is None for question in scored.values() for score in question.scores):
            names = [name for name in names if name != "accuracy_tokens"]
        return names

    def questions_for(self, benchmark: Benchmark) -> tuple[list[Question], int]:
        """Return the questions, and the number of skipped dialogues; raise InputError without questions."""
        questions, n_excluded = make_questions(benchmark, self.seed)
        max_options = max((len(question.options) for question in questions), default=0)
        if not questions:
            message = "no questions: no dialogue has two or more utterances"
            raise InputError(Problem(benchmark.name, None, message))
        if self.permutations > max_options:
            message = (
                f"has up to {max_options} utterances per dialogue, so permutations must be at most that, "
                f"not {self.permutations}"
            )
            raise InputError(Problem(benchmark.name, None, message))
        return questions, n_excluded

    def _score_questions(
        self,
        model: CausalModel,
        templates: Mapping[str | None, Template],
        questions: Sequence[Question],
        progress: Progress,
    ) -> dict[Key, ScoredQuestion]:
        """Score all prompts with the model in one pass."""
        from giccs.models.abilities import Prompt

        chat = model.render_chat if self.chat_template else None
        renderers = {
            language: QuestionRenderer(template, self.answer_kind("likelihood"), chat)
            for language, template in templates.items()
        }
        prompts = {
            (history, index, order): renderers[question.language].render(question, order, history)
            for history in (*self.histories, NO_DIALOGUE)
            for index, question in enumerate(questions)
            for order in self._orders(question)
        }
        batch = model.score(
            [
                Prompt(prompt.prompt, prompt.answers, prompt.shortened_prompts)
                for prompt in prompts.values()
            ],
            progress,
        )
        return {
            key: ScoredQuestion(rendered, prompt, scores)
            for (key, rendered), prompt, scores in zip(
                prompts.items(), batch.prompts, batch.options, strict=True
            )
        }

    def _condition_scores(
        self, questions: Sequence[Question], scored: Mapping[Key, ScoredQuestion], history: str
    ) -> ConditionScores:
        def question_scores(index: int, question: Question) -> QuestionScores:
            orders = self._orders(question)
            with_dialogue, without_dialogue = (
                [scored[key, index, order] for order in orders] for key in (history, NO_DIALOGUE)
            )
            return _question_scores(question, with_dialogue, without_dialogue)

        scores = tuple(question_scores(index, question) for index, question in enumerate(questions))
        return ConditionScores(scores, self.resamples, self.seed)

    def _measure_choices(
        self,
        model: Any,
        benchmark: Benchmark,
        templates: Mapping[str | None, Template],
        questions: Sequence[Question],
        n_excluded: int,
        method: str,
        progress: Progress,
    ) -> TaskOutput:
        """Generate an answer to every question in every order, and compute the metrics."""
        if self.template and not self.template.lists_options:
            message = (
                "has no options, which generated answers require; expected a line with {option}"
            )
            raise InputError(Problem(self.template.name, None, message))
        kind = self.answer_kind(method)
        renderers = {
            language: QuestionRenderer(
                template, kind, instruction=instruction_for(kind, template.language)
            )
            for language, template in templates.items()
        }
        rendered = {
            (history, index, order): renderers[question.language]
            .render(question, order, history)
            .prompts
            for history in self.histories
            for index, question in enumerate(questions)
            for order in self._orders(question)
        }
        chat = model.render_chat if self.chat_template else None
        texts = fitting_prompts(model, [*rendered.values()], self.max_tokens, chat)
        complete = (chat(forms[0]) if chat else forms[0] for forms in rendered.values())
        count_tokens(shortened=sum(map(ne, texts, complete)))
        responses = (
            model.letter_responses(texts, progress)
            if method == "logprobs"
            else model.respond(texts, self.max_tokens, progress)
        )
        choices = {
            key: _choice(questions[key[1]], key[2], prompt, response, method)
            for key, prompt, response in zip(rendered, texts, responses, strict=True)
        }
        conditions = {
            history: ConditionChoices(
                tuple(
                    QuestionChoices(
                        question,
                        tuple(choices[history, index, order] for order in self._orders(question)),
                    )
                    for index, question in enumerate(questions)
                ),
                self.resamples,
                self.seed,
            )
            for history in self.histories
        }
        return TaskOutput(
            metrics=_add_exclusion_remark(
                _metrics(conditions, (), range(len(questions))), n_excluded
            ),
            groups=tuple(_groups(questions, conditions, ())),
            environment=benchmark.provenance(),
            predictions=_choices_table(questions, choices, kind),
        )

    def _orders(self, question: Question) -> range:
        return range(min(self.permutations, len(question.options)))


def _by_language(templates: Mapping[str | None, Template]) -> dict[str, Template]:
    """Return the distinct templates by their own language."""
    return {
        template.language or "": template
        for template in sorted(templates.values(), key=lambda template: template.name)
    }


def _template_signature(templates: Mapping[str, Template]) -> dict[str, Any]:
    """Return name and digest of the template, or of those of several languages."""
    signatures = {
        language: {"name": template.name, "sha256": template.digest}
        for language, template in templates.items()
    }
    first, *others = signatures.values()
    if not others:
        return first
    return {"name": "+".join(each["name"] for each in (first, *others)), "languages": signatures}


def _metrics(
    conditions: Mapping[str, Condition], accuracies: Sequence[str], rows: Sequence[int]
) -> dict[str, Estimate]:
    if len(conditions) == 1:
        (condition,) = conditions.values()
        return condition.metrics(accuracies, rows)
    first, second = conditions["with"], conditions["without"]
    if isinstance(first, ConditionChoices) and isinstance(second, ConditionChoices):
        return choice_metrics([first, second], rows) | choice_differences(first, second, rows)
    assert isinstance(first, ConditionScores)
    assert isinstance(second, ConditionScores)
    return average_metrics(first, second, accuracies, rows) | history_differences(
        first, second, accuracies, rows
    )


def _groups(
    questions: Sequence[Question],
    conditions: Mapping[str, Condition],
    accuracies: Sequence[str],
) -> Iterator[Group]:
    subsets = [
        ({attribute: value}, rows)
        for attribute in SUBSET_FIELDS
        for value, rows in subset_rows(questions, attribute, keep_single=attribute == "n_turns")
    ]
    for history, condition in conditions.items():
        for by, rows in [({}, range(len(questions))), *subsets]:
            yield Group({"history": history, **by}, condition.metrics(accuracies, rows))
    if len(conditions) > 1:
        for by, rows in subsets:
            yield Group(by, _metrics(conditions, accuracies, rows))


def open_tasks(options: TaskOptions) -> list[MultipleChoice]:
    """Return the task, by default with both histories."""
    histories = HISTORIES if options.history in ("both", None) else (str(options.history),)
    return [
        MultipleChoice(
            open_template(options.template) if options.template else None,
            histories,
            options.answer,
            options.permutations,
            options.chat_template,
            options.seed,
            language=language_tag(options.language) if options.language else None,
            choose_by=options.choose_by,
            max_tokens=options.max_tokens,
        )
    ]


TASK = TaskKind(
    open_tasks,
    option_names=(
        "history",
        "template",
        "language",
        "answer",
        "permutations",
        "chat_template",
        "choose_by",
        "max_tokens",
    ),
    results=CHOICES,
)


def _question_scores(
    question: Question, scored: Sequence[ScoredQuestion], without_dialogue: Sequence[ScoredQuestion]
) -> QuestionScores:
    """Return the scores of a question (one element per order), rearranged to the order of its options."""
    shape = (len(scored), len(question.options))

    def option_values(name: str, orders: Sequence[ScoredQuestion]) -> np.ndarray:
        values = np.empty(shape)
        for order, scored_question in enumerate(orders):
            values[order, question.option_indices(order)] = [
                getattr(score, name) for score in scored_question.scores
            ]
        return values

    return QuestionScores(
        option_values("logprob", scored),
        option_values("tokens", scored),
        option_values("bytes", scored),
        option_values("logprob", without_dialogue),
        question,
        truncated=any(item.prompt != item.rendered.prompt for item in scored),
    )


def _add_exclusion_remark(metrics: Mapping[str, Estimate], n_excluded: int) -> dict[str, Estimate]:
    """Add the number of skipped dialogues to the accuracies."""
    if not n_excluded:
        return {**metrics}
    remark = note("{n:d} dialogues skipped: they have only one utterance", n=n_excluded)
    return {name: estimate.with_notes(remark) for name, estimate in metrics.items()}


def _predictions_table(
    questions: Sequence[Question], scored: Mapping[Key, ScoredQuestion]
) -> polars.DataFrame:
    """Return a table with one row per answer: prompt, answer and log-likelihood."""
    import polars

    rows = [
        row
        for (history, index, order), scored_question in scored.items()
        if history != NO_DIALOGUE
        for row in _prediction_rows(
            questions[index], history, order, scored_question, scored[NO_DIALOGUE, index, order]
        )
    ]
    return polars.DataFrame(rows)


def _prediction_rows(
    question: Question,
    history: str,
    order: int,
    scored: ScoredQuestion,
    without_dialogue: ScoredQuestion,
) -> Iterator[dict[str, Any]]:
    choice = int(np.argmax([score.logprob for score in scored.scores]))
    for position, option in enumerate(question.option_indices(order)):
        score = scored.scores[position]
        yield {
            "dialogue_id": question.dialogue_id,
            "utterance_id": question.options[option].utterance_id,
            "history": history,
            "order": order,
            "letter": LETTERS[position],
            "prompt": scored.prompt,
            "answer": scored.rendered.answers[position],
            "logprob": score.logprob,
            "tokens": score.tokens,
            "bytes": score.bytes,
            "chosen": position == choice,
            "gold": bool(question.gold[option]),
            "score": question.options[option].score,
            "prompt_alone": without_dialogue.prompt,
            "logprob_alone": without_dialogue.scores[position].logprob,
            **_cluster_cells(question),
        }


def _cluster_cells(question: Question) -> dict[str, str]:
    return {name: getattr(question.options[0], name) or "" for name in CLUSTER_COLUMNS}


def _choice(question: Question, order: int, prompt: str, response: Response, method: str) -> Choice:
    """Return the choice in a response: the most likely letter, or that of the text."""
    utterances = [
        question.options[index].utterance.strip() for index in question.option_indices(order)
    ]
    if method == "generation":
        return Choice(prompt, response, *outcome_of(response, utterances))
    letters = {
        letter: response.letters[letter]
        for letter in LETTERS[: len(utterances)]
        if letter in response.letters
    }
    best = [letter for letter in letters if letters[letter] == max(letters.values())]
    is_unique = len(best) == 1
    return Choice(
        prompt, response, best[0] if is_unique else "", "answered" if is_unique else "unparsable"
    )


def _choices_table(
    questions: Sequence[Question], choices: Mapping[Key, Choice], kind: str
) -> polars.DataFrame:
    """Return a table with one row per option: prompt, response and whether the option was chosen."""
    import polars

    rows = [
        {
            "dialogue_id": questions[index].dialogue_id,
            "utterance_id": item.utterance_id,
            "history": history,
            "order": order,
            "letter": LETTERS[position],
            "prompt": choice.prompt,
            "answer": LETTERS[position] if kind == "letter" else item.utterance.strip(),
            "logprob": choice.response.letters.get(LETTERS[position]),
            "tokens": None,
            "bytes": None,
            "chosen": choice.letter == LETTERS[position],
            "gold": bool(questions[index].gold[option]),
            "score": item.score,
            "prompt_alone": None,
            "logprob_alone": None,
            "response": choice.response.text,
            "reasoning": choice.response.reasoning,
            "end": choice.response.end,
            "outcome": choice.outcome,
            **_cluster_cells(questions[index]),
        }
        for (history, index, order), choice in choices.items()
        for position, option in enumerate(questions[index].option_indices(order))
        for item in [questions[index].options[option]]
    ]
    types: dict[str, Any] = {
        "logprob": polars.Float64,
        "tokens": polars.Int64,
        "bytes": polars.Int64,
        "prompt_alone": polars.String,
        "logprob_alone": polars.Float64,
    }
    return polars.DataFrame(rows, schema_overrides=types)
