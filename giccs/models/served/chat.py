"""Chat models: answers to prompts from an OpenAI-compatible server."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from giccs.models.abilities import GeneratingModel, LetterModel, Response, ServedModel
from giccs.models.served.requests import Asker, open_server
from giccs.models.served.responses import (
    ChatRequest,
    ProbeRequest,
    ResponseRequest,
    Support,
    read_response,
    read_support,
)
from giccs.models.served.server import Server
from giccs.progress import Progress, silent

if TYPE_CHECKING:
    from giccs.models import ModelOptions
    from giccs.models.served.server import Limits

FILE = "chat-answers.sqlite"


def open_chat(name: str, location: str, options: ModelOptions) -> ChatModel:
    """Return the model with the given name on the server, without sending a request.

    Raises InputError with a remedy if the server settings are invalid.
    """
    return ChatModel(name, location, open_server(name, location, options), options)


class ChatModel(GeneratingModel, LetterModel, ServedModel):
    """A model behind a server, with stored answers, so that no request is paid for twice."""

    name: str

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
        self._seed = options.seed or None
        self._asker = Asker(name, model, server, options, FILE, limits)

    @property
    def identity(self) -> Mapping[str, Any]:
        """Return the settings that determine the answers, as far as they are known."""
        seed = {} if self._seed is None else {"model_seed": self._seed}
        return {
            "kind": "chat",
            "base_url": self._server.base_url,
            "served_model": self._model,
            "temperature": 0.0,
            **seed,
        }

    def generate(
        self, prompts: Sequence[str], max_tokens: int, progress: Progress = silent
    ) -> list[str]:
        """Return the model's answer to each prompt, of at most `max_tokens` tokens, at temperature 0.

        Equal prompts are sent once, and prompts with stored answers are not sent. Raises InputError if a
        prompt has no answer after all retries; earlier answers are stored.
        """
        if max_tokens < 1:
            raise ValueError(f"max_tokens is {max_tokens}; expected 1 or more")
        requests = [self._request(prompt, max_tokens) for prompt in prompts]
        self._asker.forget()
        answers = self._asker.answers([*enumerate(requests, start=1)], progress, "asking")
        return [answers[request.key].text for request in requests]

    def respond(
        self, prompts: Sequence[str], max_tokens: int, progress: Progress = silent
    ) -> list[Response]:
        """Return the model's answer to each prompt, as `generate`, with its end and its reasoning.

        The temperature is 0 if the server accepts it.
        """
        return self._responses(prompts, max_tokens, progress, letters=False)

    def response_settings(self) -> Mapping[str, Any]:
        """Return the temperature, which is None if the server rejects it."""
        return {} if self._support.temperature else {"temperature": None}

    def has_letters(self) -> bool:
        """Return whether the server returns log-probabilities of letters, by a test request."""
        return self._support.letters

    def letter_responses(
        self, prompts: Sequence[str], progress: Progress = silent
    ) -> list[Response]:
        """Return the answer of one token to each prompt, with the likelihoods of letters."""
        return self._responses(prompts, 1, progress, letters=True)

    def _responses(
        self, prompts: Sequence[str], max_tokens: int, progress: Progress, *, letters: bool
    ) -> list[Response]:
        has_temperature = self._support.temperature
        requests = [
            ResponseRequest(
                *(self._server.base_url, self._model, prompt, max_tokens, self._seed),
                letters=letters,
                has_temperature=has_temperature,
            )
            for prompt in prompts
        ]
        self._asker.forget()
        answers = self._asker.answers([*enumerate(requests, start=1)], progress, "asking")
        return [read_response(answers[request.key].text) for request in requests]

    @cached_property
    def _support(self) -> Support:
        probe = ProbeRequest(self._server.base_url, self._model, self._seed)
        answers = self._asker.answers([(1, probe)], silent, "testing")
        return read_support(answers[probe.key].text)

    def environment(self) -> Mapping[str, Any]:
        """Return the client, and model and usage of the last call."""
        return self._asker.environment()

    def usage(self) -> str:
        """Return the usage of the last call as one line."""
        return str(self._asker.usage)

    def _request(self, prompt: str, max_tokens: int) -> ChatRequest:
        return ChatRequest(self._server.base_url, self._model, prompt, max_tokens, self._seed)
