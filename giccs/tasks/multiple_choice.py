"""Multiple-choice STS (paper section 5.1.2, Table 6): which utterance does a causal model find likeliest?

The model reads a dialogue and its five utterances; its answer is the one that it finds likeliest to
follow, the right answer the one that people judged most similar to the last turn.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from bws.options import problem_with
from bws.problems import InputError, Problem
from giccs.benchmark import SAMPLE, Benchmark, read_benchmark
from giccs.benchmark.languages import base_language, language_tag, required_language
from giccs.measures.metrics import Estimate, interval_signature
from giccs.measures.results import Group, TaskOutput
from giccs.models.abilities import LikelihoodModel
from giccs.progress import Progress, silent
from giccs.prompts import LETTERS, Template, default_template, open_template
from giccs.tasks import CHOICES, TaskKind, TaskOptions
from giccs.tasks.pairwise import DIVISIONS, divided
from giccs.tasks.questions import (
    HISTORIES,
    MEASURES,
    Answers,
    Asked,
    Asking,
    Question,
    Sheet,
    averages,
    differences,
    questions,
)
from giccs.tasks.refusals import lacking, without_template

if TYPE_CHECKING:
    import polars

    from giccs.models.abilities import OptionScore
    from giccs.models.causal import CausalModel

__all__ = ["TASK", "MultipleChoice", "open_tasks"]

log = logging.getLogger(__name__)

NO_DIALOGUE = "none"
Key = tuple[str, int, int]
"""History, question, order."""


@dataclass(frozen=True, slots=True)
class Said:
    """What was asked in the end, and how likely the model finds each answer, in the order shown."""

    asked: Asked
    prompt: str
    """As it was scored: a shorter one where the model has no room for the whole."""
    scores: Sequence[OptionScore]


@dataclass(frozen=True, slots=True)
class MultipleChoice:
    """Accuracy with and without the dialogue's history, and what the history changes.

    `permutations`: over how many cyclic orders of the options the likelihoods are averaged before one is
    chosen. `answer`: what is to follow the prompt, the ``sentence`` or its ``letter``. `template`: prompt,
    by default that of the benchmark's language, which `language` states for items that state none.
    """

    template: Template | None = None
    histories: tuple[str, ...] = HISTORIES
    answer: str = "sentence"
    permutations: int = 1
    chat_template: bool = False
    seed: int = 0
    resamples: int = 1000
    language: str | None = None
    name: str = field(default="multiple-choice-sts", init=False)
    default_data: ClassVar[str] = SAMPLE
    read: ClassVar = staticmethod(read_benchmark)

    def __post_init__(self) -> None:
        for name in ("answer", "permutations"):
            if problem := problem_with(TaskOptions, name, getattr(self, name)):
                raise ValueError(problem)
        if not self.histories or set(self.histories) - set(HISTORIES):
            raise ValueError(
                f"histories is {self.histories}; {HISTORIES} or one of them is allowed"
            )
        if self.answer == "letter" and self.template and not self.template.lists_options:
            message = "shows no options, so no letter can be answered; one line must have {option}"
            raise InputError(Problem(self.template.name, None, message))

    def refuses(self, model: Any) -> str:
        """Return why the model cannot do it and what could be done; empty where it can."""
        return lacking(model, LikelihoodModel, self.name) or without_template(
            model, chat_template=self.chat_template
        )

    def template_for(self, benchmark: Benchmark) -> Template:
        """Return the prompt template: the given one, else the one of the benchmark's language.

        Raises InputError where the language is not known, has no template, or is contradicted by `language`.
        """
        if self.template:
            return self.template
        purpose = "prompts"
        language = required_language(benchmark.items, benchmark.name, self.language, purpose)
        try:
            return default_template(language)
        except ValueError as error:
            raise InputError(Problem(benchmark.name, None, str(error))) from None

    def warnings_for(self, benchmark: Benchmark) -> list[Problem]:
        """Return a warning where the given template is in another language than the items."""
        template = self.template
        if not template or not template.language:
            return []
        stated = {item.language or self.language for item in benchmark.items} - {None}
        others = sorted(
            tag for tag in stated if tag and base_language(tag) != base_language(template.language)
        )
        if not others:
            return []
        message = f"the template is in {template.language}, the data of {benchmark.name} in"
        return [Problem(template.name, None, f"{message} {', '.join(others)}")]

    def parameters(self, model: CausalModel, benchmark: Benchmark) -> dict[str, Any]:
        """Return what the metrics depend on besides model, data and version."""
        template = self.template_for(benchmark)
        return {
            "history": "both" if len(self.histories) > 1 else self.histories[0],
            "template": {"name": template.name, "sha256": template.digest},
            "answer": self.answer,
            "permutations": self.permutations,
            "chat_template": self.chat_template,
            "option_order": {"seed": self.seed},
            "interval": interval_signature("dialogue", self.resamples, self.seed),
        }

    def measure(
        self, model: CausalModel, benchmark: Benchmark, progress: Progress = silent
    ) -> TaskOutput:
        """Ask every question in every order, with and without history, and count the right answers."""
        asked, left_out = self.questions(benchmark)
        log.debug("%d questions, %d dialogues left out", len(asked), left_out)
        said = self._said(model, self.template_for(benchmark), asked, progress)
        log.debug("%d prompts answered; measuring, %d resamples", len(said), self.resamples)
        sheets = {history: self._sheet(asked, said, history) for history in self.histories}
        return TaskOutput(
            metrics=_remark(self._metrics(sheets, range(len(asked))), left_out),
            groups=tuple(self._groups(asked, sheets)),
            environment=benchmark.provenance(),
            predictions=_table(asked, said),
        )

    @property
    def _names(self) -> list[str]:
        """Return the accuracies that mean something: letters all have one length."""
        return [*MEASURES] if self.answer == "sentence" else ["accuracy", "accuracy_pmi"]

    def questions(self, benchmark: Benchmark) -> tuple[list[Question], int]:
        """Return the questions, and how many dialogues are none; InputError where nothing can be asked."""
        asked, left_out = questions(benchmark, self.seed)
        most = max((len(question.options) for question in asked), default=0)
        if not asked:
            message = "asks nothing: no dialogue has two utterances to choose from"
            raise InputError(Problem(benchmark.name, None, message))
        if self.permutations > most:
            message = (
                f"has {most} utterances a dialogue, so as many orders; not {self.permutations}"
            )
            raise InputError(Problem(benchmark.name, None, message))
        return asked, left_out

    def _said(
        self,
        model: CausalModel,
        template: Template,
        asked: Sequence[Question],
        progress: Progress,
    ) -> dict[Key, Said]:
        """Put every prompt to the model in one pass."""
        from giccs.models.abilities import Prompt

        chat = model.render_chat if self.chat_template else None
        asking = Asking(template, self.answer, chat)
        prompts = {
            (history, place, order): asking.ask(question, order, history)
            for history in (*self.histories, NO_DIALOGUE)
            for place, question in enumerate(asked)
            for order in self._orders(question)
        }
        scored = model.score(
            [Prompt(one.prompt, one.answers, one.shorter) for one in prompts.values()], progress
        )
        return {
            key: Said(one, prompt, scores)
            for (key, one), prompt, scores in zip(
                prompts.items(), scored.prompts, scored.options, strict=True
            )
        }

    def _sheet(self, asked: Sequence[Question], said: Mapping[Key, Said], history: str) -> Sheet:
        def answers(place: int, question: Question) -> Answers:
            orders = self._orders(question)
            shown, alone = (
                [said[key, place, order] for order in orders] for key in (history, NO_DIALOGUE)
            )
            return _answers(question, shown, alone)

        found = tuple(answers(place, question) for place, question in enumerate(asked))
        return Sheet(found, self.resamples, self.seed)

    def _orders(self, question: Question) -> range:
        return range(min(self.permutations, len(question.options)))

    def _metrics(self, sheets: Mapping[str, Sheet], rows: Sequence[int]) -> dict[str, Estimate]:
        if len(sheets) == 1:
            (sheet,) = sheets.values()
            return sheet.metrics(self._names, rows)
        pair = sheets["with"], sheets["without"]
        return averages(*pair, self._names, rows) | differences(*pair, self._names, rows)

    def _groups(self, asked: Sequence[Question], sheets: Mapping[str, Sheet]) -> Iterator[Group]:
        parts = [
            ({division: value}, rows)
            for division in DIVISIONS
            for value, rows in divided(asked, division, alone=division == "n_turns")
        ]
        for history, sheet in sheets.items():
            for by, rows in [({}, range(len(asked))), *parts]:
                yield Group({"history": history, **by}, sheet.metrics(self._names, rows))
        if len(sheets) > 1:
            for by, rows in parts:
                yield Group(by, self._metrics(sheets, rows))


def open_tasks(options: TaskOptions) -> list[MultipleChoice]:
    """Return the task; both histories where nothing is said."""
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
        )
    ]


TASK = TaskKind(
    open_tasks,
    takes=("history", "template", "language", "answer", "permutations", "chat_template"),
    results=CHOICES,
)


def _answers(question: Question, said: Sequence[Said], alone: Sequence[Said]) -> Answers:
    """Return the scores of a question (an element an order), put back in the order of its options."""
    shape = (len(said), len(question.options))

    def of(name: str, answered: Sequence[Said]) -> np.ndarray:
        found = np.empty(shape)
        for order, one in enumerate(answered):
            found[order, question.shown(order)] = [getattr(score, name) for score in one.scores]
        return found

    return Answers(
        question,
        of("logprob", said),
        of("tokens", said),
        of("bytes", said),
        of("logprob", alone),
        cut=any(one.prompt != one.asked.prompt for one in said),
    )


def _remark(metrics: Mapping[str, Estimate], left_out: int) -> dict[str, Estimate]:
    """Say with the accuracies how many dialogues are no question."""
    remark = f"{left_out} dialogues left out: one utterance leaves no choice" if left_out else ""
    return {
        name: replace(found, reason="; ".join(filter(None, [found.reason, remark])))
        for name, found in metrics.items()
    }


def _table(asked: Sequence[Question], said: Mapping[Key, Said]) -> polars.DataFrame:
    """Return a row an answer: what was asked, and what the model finds of it."""
    import polars

    rows = [
        row
        for (history, place, order), one in said.items()
        if history != NO_DIALOGUE
        for row in _rows(asked[place], history, order, one, said[NO_DIALOGUE, place, order])
    ]
    return polars.DataFrame(rows)


def _rows(
    question: Question, history: str, order: int, said: Said, alone: Said
) -> Iterator[dict[str, Any]]:
    chosen = int(np.argmax([score.logprob for score in said.scores]))
    for place, option in enumerate(question.shown(order)):
        score = said.scores[place]
        yield {
            "dialogue_id": question.dialogue_id,
            "utterance_id": question.options[option].utterance_id,
            "history": history,
            "order": order,
            "letter": LETTERS[place],
            "prompt": said.prompt,
            "answer": said.asked.answers[place],
            "logprob": score.logprob,
            "tokens": score.tokens,
            "bytes": score.bytes,
            "chosen": place == chosen,
            "gold": bool(question.gold[option]),
            "score": question.options[option].score,
            "prompt_alone": alone.prompt,
            "logprob_alone": alone.scores[place].logprob,
        }
