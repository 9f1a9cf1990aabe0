"""A language model that judges tuples: its prompts, its answers, and its name as an annotator."""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import ne
from typing import Any

from bws.base.frames import is_path
from bws.base.problems import InputError, Problem
from bws.model_annotators import model_annotator
from giccs.journal import Journal
from giccs.judging.answers import AnswerPair
from giccs.judging.prompts import TuplePrompt
from giccs.judging.questions import TupleQuestion
from giccs.models import ModelOptions, check_server_options, open_model
from giccs.models.abilities import OptionScore, Prompt, Scored, ServedModel
from giccs.models.objects import model_of_object
from giccs.progress import Progress, silent
from giccs.tasks.answer_parsing import instruction_for
from giccs.tasks.choice_methods import choice_method, fitting_prompts, no_choice_reason
from giccs.tasks.questions import QuestionRenderer, RenderedQuestion
from giccs.tasks.refusals import chat_parameters, no_chat_template_reason

AT_ONCE = 16
"""Number of tuples per write to the journal, the maximum loss if a call is interrupted."""


@dataclass(frozen=True, slots=True)
class Presentation:
    """A tuple as a model is asked about it: with a prompt, in an order, in a repeated call."""

    question: TupleQuestion
    prompt: TuplePrompt
    order: int
    repeat: int = 0

    @property
    def shown(self) -> tuple[int, ...]:
        """The position of the item at each place."""
        return self.question.order(self.order)

    @property
    def utterances(self) -> list[str]:
        """Texts in display order."""
        return [self.question.utterances[position] for position in self.shown]


@dataclass(frozen=True)
class Judge:
    """A model with the settings of its answers."""

    models: Sequence[Any]
    """The model for the first call, for the first repeated call, and so on: equal except for their seed."""
    method: str
    """``likelihood``, ``logprobs`` or ``generation``."""
    answer: str
    """``letter`` or ``sentence``."""
    chat_template: bool = False
    max_tokens: int = 1024

    @property
    def model(self) -> Any:
        """The model of the first call."""
        return self.models[0]

    @property
    def repeats(self) -> int:
        """Number of calls per prompt."""
        return len(self.models)

    def signature(self) -> dict[str, Any]:
        """Return the settings that determine an answer besides its prompts."""
        settings = {
            "model": self.model.name,
            **self.model.identity,
            "choice": self.method,
            "answer": self.answer,
            **chat_parameters(self.model, chat_template=self.chat_template),
        }
        if self.method != "likelihood":
            settings |= self.model.response_settings()
        if self.method == "generation":
            settings["max_tokens"] = self.max_tokens
        return settings

    @property
    def annotator(self) -> str:
        """The annotator of the judgments; of a model on a server, known after its answers.

        The revision is the commit or the digest of the weights, or what the server calls the model, if that
        is more specific than the name.
        """
        if isinstance(self.model, ServedModel):
            names = {n for model in self.models for n in model.environment().get("answered_by", [])}
            served = self.model.identity.get("served_model")
            return model_annotator(self.model.name, "+".join(sorted(names - {served, ""})))
        return model_annotator(self.model.name, self.model.identity.get("revision") or "")

    def answers(
        self,
        inputs: Sequence[JudgeInput],
        journal: Journal[AnswerPair] | None = None,
        progress: Progress = silent,
    ) -> list[AnswerPair]:
        """Return the answers to all inputs; those in the journal are reused, others stored there.

        A model on a server stores its answers itself, so that no request is paid for twice.
        """
        answers = dict(journal.answers) if journal else {}

        def store(part: Mapping[str, AnswerPair]) -> None:
            new = {key: answer for key, answer in part.items() if key not in answers}
            if journal:
                journal.add(new.items())
            answers.update(new)

        if isinstance(self.model, ServedModel):
            for repeat, model in enumerate(self.models):  # Also known answers: who gave them?
                store(self._ask(model, [i for i in inputs if i.repeat == repeat], progress))
        else:
            missing = [each for each in inputs if each.key not in answers]
            for _ in progress(self._in_parts(missing, store), "judging", len(missing)):
                pass
        return [answers[each.key] for each in inputs]

    def inputs(self, presentations: Sequence[Presentation]) -> list[JudgeInput]:
        """Return the rendered questions of each presentation."""
        return [
            JudgeInput(each, best, worst, _key(each, best, worst))
            for each in presentations
            for best, worst in [self._render(each)]
        ]

    def usage(self) -> str:
        """Return requests, tokens and cost of a model on a server, one line per repeated call."""
        lines = [m.usage() for m in self.models if isinstance(m, ServedModel)]
        if len(lines) > 1:
            lines = [f"call {n}: {line}" for n, line in enumerate(lines, start=1)]
        return "\n".join(lines)

    def _in_parts(
        self, inputs: Sequence[JudgeInput], store: Callable[[Mapping[str, AnswerPair]], None]
    ) -> Iterator[JudgeInput]:
        for start in range(0, len(inputs), AT_ONCE):
            part = inputs[start : start + AT_ONCE]
            store(self._ask(self.model, part, silent))
            yield from part

    def _render(self, presentation: Presentation) -> tuple[RenderedQuestion, RenderedQuestion]:
        """Return the inputs for the two questions."""
        prompt, turns = presentation.prompt, presentation.question.turns
        utterances = presentation.utterances
        chat = self.model.render_chat if self.chat_template else None
        if self.method == "likelihood":
            best, worst = (
                QuestionRenderer(template, self.answer, chat).render_texts(turns, utterances)
                for template in (prompt.best, prompt.worst)
            )
            return best, worst
        instruction = instruction_for(self.answer, prompt.language, prompt.instructions)
        renderers = (
            QuestionRenderer(template, self.answer, instruction=instruction)
            for template in (prompt.best, prompt.worst)
        )
        forms = (renderer.render_texts(turns, utterances).prompts for renderer in renderers)
        best, worst = (
            RenderedQuestion(text, (), tuple(shorter))
            for text, *shorter in (
                [chat(text) if chat else text for text in each] for each in forms
            )
        )
        return best, worst

    def _ask(
        self, model: Any, inputs: Sequence[JudgeInput], progress: Progress
    ) -> dict[str, AnswerPair]:
        """Return the answers by key."""
        questions = [question for each in inputs for question in (each.best, each.worst)]
        texts = [question.prompt for question in questions]
        if self.method == "likelihood":
            prompts = [Prompt(q.prompt, q.answers, q.shortened_prompts) for q in questions]
            scored: Scored = model.score(prompts, progress)
            answers = [_logprobs(scores) for scores in scored.options]
            cut = [used != text for used, text in zip(scored.prompts, texts, strict=True)]
        else:
            used = fitting_prompts(model, [q.prompts for q in questions], self.max_tokens)
            if self.method == "logprobs":
                answers = model.letter_responses(used, progress)
            else:
                answers = model.respond(used, self.max_tokens, progress)
            cut = [*map(ne, used, texts)]
        pairs = zip(answers[::2], answers[1::2], cut[::2], cut[1::2], strict=True)
        return {
            each.key: AnswerPair(best, worst, best_cut or worst_cut)
            for each, (best, worst, best_cut, worst_cut) in zip(inputs, pairs, strict=True)
        }


@dataclass(frozen=True, slots=True)
class JudgeInput:
    """A presentation and the inputs of a model for its two questions."""

    presentation: Presentation
    best: RenderedQuestion
    worst: RenderedQuestion
    key: str
    """Key in the journal: readable, with a digest of the inputs."""

    @property
    def repeat(self) -> int:
        """Number of the call, from 0."""
        return self.presentation.repeat


def _key(presentation: Presentation, best: RenderedQuestion, worst: RenderedQuestion) -> str:
    digest = hashlib.sha256(json.dumps([[q.prompt, *q.answers] for q in (best, worst)]).encode())
    call = f"{presentation.order}.{presentation.repeat}"
    name = f"{presentation.question.tuple_id} {presentation.prompt.name}"
    return f"{name} {call} {digest.hexdigest()[:16]}"


def _logprobs(scores: Sequence[OptionScore]) -> tuple[float | None, ...]:
    return tuple(score.logprob if math.isfinite(score.logprob) else None for score in scores)


def open_judge(
    model: Any,
    options: ModelOptions | None = None,
    *,
    repeats: int = 1,
    choose_by: str | None = None,
    answer: str = "letter",
    chat_template: bool = False,
    max_tokens: int = 1024,
) -> Judge:
    """Return the judge with a model; raise InputError if it is unavailable or unsuitable.

    model: a name, or an object as for `giccs.evaluate`. repeats: number of calls per prompt of a model on a
    server, each with the next seed, so that stored answers are not reused. choose_by: the method, by default
    the first that the model supports; the server of a chat model may get a test request. answer: ``letter``,
    or ``sentence``, whose likelihood depends more on its own words than on the question.
    """
    options = options or ModelOptions()
    models = [_opened(model, replace(options, seed=options.seed + n)) for n in range(repeats)]
    check_server_options(models, options)
    name = models[0].name
    reason = no_choice_reason(models[0], "judging", choose_by, answer) or no_chat_template_reason(
        models[0], chat_template=chat_template
    )
    if reason:
        raise InputError(Problem(name, None, reason))
    method = choice_method(models[0], choose_by, answer)
    if repeats > 1 and (method == "likelihood" or not isinstance(models[0], ServedModel)):
        message = "repeated calls have equal answers; omit --repeats"
        raise InputError(Problem(name, None, message))
    return Judge(models, method, answer, chat_template, max_tokens)


def _opened(model: Any, options: ModelOptions) -> Any:
    if is_path(model):
        return open_model(os.fspath(model), options)
    return model_of_object(model, options=options)
