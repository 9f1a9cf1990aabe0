"""A model behind an OpenAI-compatible server, which answers prompts one by one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from giccs.models.chat.request import Request
from giccs.models.served import Asker, open_server
from giccs.models.served.address import Server
from giccs.progress import Progress, silent

if TYPE_CHECKING:
    from giccs.models import ModelOptions
    from giccs.models.served.wire import Limits

__all__ = ["ChatModel", "open_chat"]

FILE = "chat-answers.sqlite"


def open_chat(name: str, rest: str, options: ModelOptions) -> ChatModel:
    """Return the model that its server calls `rest`; nothing is sent yet.

    InputError with one sentence on what to do where the server cannot be asked as it is set.
    """
    return ChatModel(name, rest, open_server(name, rest, options), options)


class ChatModel:
    """A model behind a server. Answers are kept, so that no request is paid for twice."""

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
        """Return what the answers depend on, as far as it can be known from here."""
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

        Equal prompts are asked once, and those that were answered before not at all. InputError, where
        a prompt is not answered after all tries; what was answered until then is kept.
        """
        if max_tokens < 1:
            raise ValueError(f"max_tokens is {max_tokens}; 1 or more are allowed")
        requests = [self._request(prompt, max_tokens) for prompt in prompts]
        self._asker.forget()
        answers = self._asker.answers([*enumerate(requests, start=1)], progress, "asking")
        return [answers[request.key].text for request in requests]

    def environment(self) -> Mapping[str, Any]:
        """Return the client, and of the last call of `generate` who answered and what it took."""
        return self._asker.environment()

    def usage(self) -> str:
        """Return in a line what the last call of `generate` took."""
        return str(self._asker.usage)

    def _request(self, prompt: str, max_tokens: int) -> Request:
        return Request(self._server.base_url, self._model, prompt, max_tokens, self._seed)
