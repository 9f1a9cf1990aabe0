"""One request to the server, and what may come back: an answer, or anything else.

The client is OpenAI's own; it tries again, with growing waits or as long as the server asks for
(``Retry-After``), where the connection breaks, time runs out, or the server is busy or broken. What it
does not do is done here: an answer that is no answer is asked for again, no redirection is followed, and
what comes back is bounded in size and in time.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from threading import Event
from typing import Any
from urllib.parse import urlsplit

import httpx2
import openai

from giccs.models.served.cache import Answer
from giccs.models.served.requests import Request
from giccs.models.served.server import Server, Usage

__all__ = ["Failure", "Limits", "TooLong", "Wire"]

SHOWN = 300
"""Characters of a server's own words in a message."""
LENGTH = re.compile(
    r"context[ _-]?(length|window|size)|max(imum)?[ _-](model[ _-])?len|max_(input|total|new)_tokens"
    r"|too[ _](long|large)|too many (input )?tokens",
    re.IGNORECASE,
)
"""How servers say that a prompt has more tokens than their model reads: vLLM, SGLang and OpenAI "maximum
context length", "longer than the model's context length", llama-cpp-python "exceed context window", text-
generation-inference "`inputs` tokens + `max_new_tokens` must be <="."""


class Failure(openai.OpenAIError):
    """What ends the work, in words; the client passes it on as it is."""


class TooLong(Failure):
    """The server has no room for the prompt."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How long, how often, how much."""

    seconds: float = 300.0
    """For each try: without a sign of life, and from the first byte of the answer's body to the last."""
    retries: int = 6
    pause: float = 0.5
    """Seconds before an answer that was none is asked for again; twice as long each time."""
    largest: int = 16 * 2**20
    """Bytes of an answer."""


class Wire:
    """The way to one server, open for several threads, until `close`."""

    def __init__(self, server: Server, threads: int, limits: Limits, stop: Event) -> None:
        self._server, self._limits, self._stop = server, limits, stop
        self._http = httpx2.Client(
            timeout=limits.seconds,
            follow_redirects=False,
            trust_env=not server.loopback,  # no proxy stands between a machine and itself
            headers={"Accept-Encoding": "identity"},  # a small packet may hold a large text
            limits=httpx2.Limits(max_connections=threads),
            event_hooks={"request": [self._may_begin], "response": [self._bound]},
        )
        self._client = openai.OpenAI(
            api_key=server.key,
            base_url=server.base_url,
            timeout=limits.seconds,
            max_retries=limits.retries,
            http_client=self._http,
        )

    def close(self) -> None:
        """Break all connections."""
        self._http.close()

    def answer(self, request: Request, usage: Usage) -> Answer:
        """Return what the model answers; Failure, with what is wrong, where all tries were in vain."""
        tries = 0
        while True:
            response = self._send(request, tries)
            tries += response.retries_taken + 1
            found = _read(response.http_response.content)
            text, fault = "", "not with a JSON object"
            if isinstance(found, dict):
                usage.add(found.get("usage"))
                text, fault = _answer(request, found)
            if not fault:
                model = found.get("model")
                called = self._said(model) if isinstance(model, str) else ""
                return Answer(self._server.without_key(text), called)
            if tries > self._limits.retries:
                raise Failure(f"the server answered, but {fault}{_after(tries)}")
            self._stop.wait(self._limits.pause * 2 ** (tries - 1))

    def _send(self, request: Request, tries: int) -> Any:
        """Return the response to a request that has had so many tries before; Failure where there is none."""
        client = self._client.with_options(max_retries=self._limits.retries - tries)
        try:
            return request.send(client)
        except openai.APIStatusError as error:
            kind = TooLong if _is_too_long(error) else Failure
            raise kind(self._refusal(error, tries + _tries(error))) from None
        except openai.APITimeoutError as error:
            within = f"no answer within {self._limits.seconds:g} seconds"
            raise Failure(f"{within}{_after(tries + _tries(error))}") from None
        except openai.APIConnectionError as error:
            after = _after(tries + _tries(error))
            cause = self._said(str(error.__cause__))
            raise Failure(f"the connection failed{after} ({cause})") from None

    def _refusal(self, error: openai.APIStatusError, tries: int) -> str:
        """Return what it means that a server answers with a status other than 200."""
        status, headers = error.status_code, error.response.headers
        if error.response.is_redirect:
            place = urlsplit(headers.get("location", ""))
            where = self._said(f"{place.scheme}://{place.netloc}{place.path}")
            return f"the server sends to {where}, which is not followed; is the address right?"
        said = f"{status}: {self._said(_message(error.body) or error.response.reason_phrase)}"
        if status in (401, 403):
            return f"the server does not accept the key ({said}); set OPENAI_API_KEY"
        if status == 429 or status >= 500:
            wait = headers.get("retry-after")
            asked = f"; it asks to wait: {self._said(wait)}" if wait else ""
            return f"the server was busy or broken{_after(tries)} ({said}{asked})"
        return f"the server refused it ({said})"

    def _said(self, text: str) -> str:
        """Return a server's words in one short line that can be printed, without the key."""
        line = " ".join(self._server.without_key(text).split())
        printable = "".join(letter for letter in line if letter.isprintable())
        return printable if len(printable) <= SHOWN else f"{printable[:SHOWN]}…"

    def _may_begin(self, request: httpx2.Request) -> None:
        if self._stop.is_set():
            raise Failure("not asked: another request had failed")

    def _bound(self, response: httpx2.Response) -> None:
        if response.headers.get("content-encoding", "identity").lower() != "identity":
            raise Failure("the server packs its answers although it was asked not to")
        response.stream = _Bounded(response.stream, response.request, self._limits)


class _Bounded(httpx2.SyncByteStream):
    """The body of an answer, up to a size and for a time: a server may drip without end."""

    def __init__(self, stream: Any, request: httpx2.Request, limits: Limits) -> None:
        self._stream, self._request, self._limits = stream, request, limits

    def __iter__(self) -> Iterator[bytes]:
        size, end = 0, time.monotonic() + self._limits.seconds
        for part in self._stream:
            size += len(part)
            if size > self._limits.largest:
                raise Failure(f"the answer is longer than {self._limits.largest:,} bytes")
            if time.monotonic() > end:
                raise httpx2.ReadTimeout("the answer takes too long", request=self._request)
            yield part

    def close(self) -> None:
        self._stream.close()


def _tries(error: openai.APIError) -> int:
    """Return how often the client had sent a request when it gave up; each tells its number."""
    return int(error.request.headers.get("x-stainless-retry-count", 0)) + 1


def _after(tries: int) -> str:
    return f", {tries} times" if tries > 1 else ""


def _is_too_long(error: openai.APIStatusError) -> bool:
    """Tell whether a request is refused for its length; the statuses are those that servers have for it."""
    said = f"{error.code or ''} {_message(error.body)}"
    return error.status_code in (400, 413, 422) and LENGTH.search(said) is not None


def _answer(request: Request, document: dict[str, Any]) -> tuple[str, str]:
    """Return (the answer, what is wrong with it); Failure where no further try would help."""
    try:
        return request.read(document)
    except ValueError as error:
        raise Failure(str(error)) from None


def _read(content: bytes) -> Any:
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        return None


def _message(body: Any) -> str:
    """Return what an error's body says, in the forms that servers have for it."""
    inner = body.get("error", body) if isinstance(body, dict) else body
    if isinstance(inner, dict):
        inner = inner.get("message") or inner.get("detail") or ""
    return inner if isinstance(inner, str) else ""
