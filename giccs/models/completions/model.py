"""A model behind a server that says how likely the tokens of a text are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import count
from typing import TYPE_CHECKING, Any

from bws.problems import InputError, Problem
from giccs.models.causal.records import OptionScore, Prompt, Scored, checked
from giccs.models.completions.request import Request
from giccs.models.completions.scoring import option_scores
from giccs.models.completions.tokens import FILE, read_kept
from giccs.models.served import Asker, open_server
from giccs.models.served.address import Server
from giccs.models.served.request import Answer
from giccs.progress import Progress, silent

if TYPE_CHECKING:
    from giccs.models import ModelOptions
    from giccs.models.served.wire import Limits

__all__ = ["CompletionsModel", "open_completions"]

Read = tuple[str, tuple[OptionScore, ...]]
"""The text that was read for a prompt, and how likely its options are."""


def open_completions(name: str, rest: str, options: ModelOptions) -> CompletionsModel:
    """Return the model that its server calls `rest`; nothing is sent yet.

    InputError with one sentence on what to do where the server cannot be asked as it is set.
    """
    return CompletionsModel(name, rest, open_server(name, rest, options), options)


class CompletionsModel:
    """A model behind a server's ``/v1/completions``. Answers are kept, so that none is paid for twice."""

    def __init__(
        self,
        name: str,
        model: str,
        server: Server,
        options: ModelOptions,
        limits: Limits | None = None,
    ) -> None:
        self.name = name
        self._model, self._server = model, server
        self._asker = Asker(name, model, server, options, FILE, limits)

    @property
    def identity(self) -> Mapping[str, Any]:
        """Return what the likelihoods depend on, as far as it can be known from here."""
        return {
            "kind": "completions",
            "base_url": self._server.base_url,
            "served_model": self._model,
        }

    def score(self, prompts: Sequence[Prompt], progress: Progress = silent) -> Scored:
        """Return how likely each option of each prompt is.

        A prompt for which the server has no room is replaced by the first of `shorter` that fits with all
        its options. Equal texts are sent once, and those that were answered before not at all. InputError
        names prompts for which none fits, and says what is wrong where the server's answers are no use.
        """
        checked(self.name, prompts)
        texts = [(prompt.text, *prompt.shorter) for prompt in prompts]
        blank = (n for n, several in enumerate(texts) if not all(map(str.strip, several)))
        self._refuse([(n, "is empty, and a server wants a text") for n in blank])
        self._asker.forget()
        found: dict[int, Read] = {}
        for level in count():
            left = [n for n in range(len(prompts)) if n not in found]
            if not left:
                break
            none_fits = (n for n in left if level == len(texts[n]))
            why = "is too long for the server's model where it is shortest"
            self._refuse([(n, why) for n in none_fits])
            found |= self._round({n: (texts[n][level], prompts[n].options) for n in left}, progress)
        read = [found[n] for n in range(len(prompts))]
        cut = sum(text != prompt.text for (text, _), prompt in zip(read, prompts, strict=True))
        return Scored(tuple(text for text, _ in read), tuple(scores for _, scores in read), cut)

    def environment(self) -> Mapping[str, Any]:
        """Return the client, and of the last call of `score` who answered and what it took."""
        return self._asker.environment()

    def usage(self) -> str:
        """Return in a line what the last call of `score` took."""
        return str(self._asker.usage)

    def _round(
        self, asked: Mapping[int, tuple[str, tuple[str, ...]]], progress: Progress
    ) -> dict[int, Read]:
        """Return what was found for each (text, its options); what is too long is left out."""
        requests = {
            n: [self._request(one) for one in (text.rstrip(), *(text + o for o in options))]
            for n, (text, options) in asked.items()
        }
        too_long: set[str] = set()
        numbered = [(n + 1, request) for n, several in requests.items() for request in several]
        answers = self._asker.answers(numbered, progress, "scoring", too_long)
        found: dict[int, Read] = {}
        problems: list[tuple[int, str]] = []
        for n, several in requests.items():
            if any(request.key in too_long for request in several):
                continue
            text, options = asked[n]
            try:
                found[n] = text, _scores([answers[one.key] for one in several], options)
            except ValueError as error:
                problems.append((n, str(error)))
        self._refuse(problems)
        return found

    def _request(self, text: str) -> Request:
        return Request(self._server.base_url, self._model, text)

    def _refuse(self, problems: Sequence[tuple[int, str]]) -> None:
        if problems:
            raise InputError(
                [Problem(self.name, None, f"prompt {n + 1}: {why}") for n, why in problems]
            )


def _scores(answers: Sequence[Answer], options: Sequence[str]) -> tuple[OptionScore, ...]:
    alone, *wholes = (read_kept(answer.text) for answer in answers)
    return option_scores(alone, wholes, options)
