"""Chat models: answers to prompts, by an OpenAI-compatible server."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from giccs.models.abilities import GeneratingModel, ServedModel
from giccs.models.served.requests import Asker, open_server
from giccs.models.served.server import OFFICIAL, Server
from giccs.progress import Progress, silent

if TYPE_CHECKING:
    from giccs.models import ModelOptions
    from giccs.models.served.client import Limits

__all__ = ["ChatModel", "open_chat"]

FILE = "chat-answers.sqlite"


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """One prompt to one model of one server. All that the answer may depend on, and nothing else."""

    base_url: str
    model: str
    prompt: str
    max_tokens: int
    seed: int | None = None
    temperature: float = 0.0

    @property
    def messages(self) -> list[dict[str, str]]:
        """The conversation: one message of the user."""
        return [{"role": "user", "content": self.prompt}]

    @property
    def body(self) -> dict[str, Any]:
        """What is sent. OpenAI's own server has a newer name for the limit, which others do not know."""
        limit = "max_completion_tokens" if self.base_url == OFFICIAL else "max_tokens"
        body = {
            "model": self.model,
            "messages": self.messages,
            "temperature": self.temperature,
            limit: self.max_tokens,
        }
        return body if self.seed is None else {**body, "seed": self.seed}

    @property
    def key(self) -> str:
        """SHA-256 of the request, whatever the order in which its parts are written."""
        parts = {**asdict(self), "messages": self.messages}
        del parts["prompt"]
        text = json.dumps(parts, sort_keys=True, ensure_ascii=True)
        return hashlib.sha256(text.encode("ascii")).hexdigest()

    def send(self, client: Any) -> Any:
        """Return the raw response of OpenAI's client."""
        return client.chat.completions.with_raw_response.create(**self.body)

    def read(self, document: Mapping[str, Any]) -> tuple[str, str]:
        """Return (the answer, what is wrong with it).

        A model that refuses answers with its refusal; one that is stopped by a filter, or that has used
        up its tokens before the answer, with nothing.
        """
        choices = document.get("choices")
        choice = choices[0] if isinstance(choices, list) and choices else None
        message = choice.get("message") if isinstance(choice, dict) else None
        if not isinstance(choice, dict) or not isinstance(message, dict):
            return "", "without a choice"
        for answer in (message.get("content"), message.get("refusal")):
            if isinstance(answer, str):
                return answer.encode("utf-16", "surrogatepass").decode("utf-16", "replace"), ""
        if choice.get("finish_reason") in ("content_filter", "length"):
            return "", ""
        return "", "without a text"


def open_chat(name: str, rest: str, options: ModelOptions) -> ChatModel:
    """Return the model that its server calls `rest`; nothing is sent yet.

    InputError with one sentence on what to do where the server cannot be asked as it is set.
    """
    return ChatModel(name, rest, open_server(name, rest, options), options)


class ChatModel(GeneratingModel, ServedModel):
    """A model behind a server. Answers are kept, so that no request is paid for twice."""

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

    def _request(self, prompt: str, max_tokens: int) -> ChatRequest:
        return ChatRequest(self._server.base_url, self._model, prompt, max_tokens, self._seed)
