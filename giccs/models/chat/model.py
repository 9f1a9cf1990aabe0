"""A model behind an OpenAI-compatible server, which answers prompts one by one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from threading import Event
from typing import TYPE_CHECKING, Any

from bws.problems import InputError, Problem
from giccs.caching import cache_folder
from giccs.models.chat.address import Server, find_server
from giccs.models.chat.cache import Cache
from giccs.models.chat.request import Answer, Request
from giccs.models.chat.threads import in_threads
from giccs.models.chat.usage import Usage, find_price
from giccs.progress import Progress, silent

if TYPE_CHECKING:
    from giccs.models import ModelOptions
    from giccs.models.chat.wire import Limits

__all__ = ["ChatModel", "open_chat"]

FILE = "chat-answers.sqlite"

Numbered = Mapping[Request, int]
"""Requests, each with the number of the first prompt that it is for."""


def open_chat(name: str, rest: str, options: ModelOptions) -> ChatModel:
    """Return the model that its server calls `rest`; nothing is sent yet.

    InputError with one sentence on what to do where the server cannot be asked as it is set.
    """
    if not rest.strip():
        raise InputError(Problem(name, None, "names no model; write chat:NAME"))
    if find_spec("openai") is None:
        message = "needs openai; install it with: pip install 'giccs[chat]'"
        raise InputError(Problem(name, None, message))
    if options.concurrency < 1:
        message = f"{options.concurrency} requests at a time are none; 1 or more are allowed"
        raise InputError(Problem(name, None, message))
    return ChatModel(name, rest, find_server(name, options.base_url), options)


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
        self._model, self._server, self._limits = model, server, limits
        self._threads = options.concurrency
        self._seed = options.seed or None
        self._price = find_price(name, model, server, options.price)
        self._usage = Usage(self._price)
        self._answered_by: list[str] = []

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
        distinct = {request: n for n, request in reversed([*enumerate(requests, start=1)])}
        cache = Cache(cache_folder() / FILE)
        try:
            answers = dict(progress(self._answers(distinct, cache), "asking", len(distinct)))
            self._answered_by = sorted({answer.model for answer in answers.values()})
        finally:
            cache.close()
        return [answers[request.key].text for request in requests]

    def environment(self) -> Mapping[str, Any]:
        """Return the client, and of the last call of `generate` who answered and what it took."""
        from importlib.metadata import version

        return {
            "openai": version("openai"),
            "answered_by": self._answered_by,
            **self._usage.document(),
        }

    def usage(self) -> str:
        """Return in a line what the last call of `generate` took."""
        return str(self._usage)

    def _request(self, prompt: str, max_tokens: int) -> Request:
        return Request(self._server.base_url, self._model, prompt, max_tokens, self._seed)

    def _answers(self, requests: Numbered, cache: Cache) -> Iterator[tuple[str, Answer]]:
        """Yield (key of a request, answer): those that are known, then the others as they come."""
        known = cache.find([request.key for request in requests])
        self._usage = Usage(self._price)
        self._usage.requests, self._usage.cached = len(requests), len(known)
        yield from known.items()
        unknown = {request: n for request, n in requests.items() if request.key not in known}
        if unknown:
            yield from self._ask(unknown, cache)

    def _ask(self, requests: Numbered, cache: Cache) -> Iterator[tuple[str, Answer]]:
        """Yield the server's answers, each kept before it is seen."""
        from giccs.models.chat.wire import Failure, Limits, Wire

        stop, usage, in_order = Event(), self._usage, sorted(requests, key=requests.__getitem__)
        wire = Wire(self._server, self._threads, self._limits or Limits(), stop)

        def ask(request: Request) -> Answer:
            try:
                answer = wire.answer(request, usage)
            except Failure as error:
                raise Failure(f"prompt {requests[request]}: {error}") from None
            cache.keep(request.key, answer)
            return answer

        kept = usage.cached
        try:
            for place, answer in in_threads(ask, in_order, self._threads, stop):
                kept += 1
                yield in_order[place].key, answer
        except Failure as error:
            so_far = (
                f"{kept} of {usage.requests} answers are kept, and the next run goes on from them"
            )
            raise InputError(Problem(self.name, None, f"{error}; {so_far}")) from None
        finally:
            wire.close()
