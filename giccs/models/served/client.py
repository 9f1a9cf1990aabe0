"""A single request to the server, with retries and limits.

OpenAI's client retries with increasing delays, or those requested by the server (``Retry-After``), after
connection errors, timeouts and errors of the server. In addition, this module repeats requests after invalid
answers, follows no redirections, and limits the size and time of answers.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from decimal import Decimal
from threading import Event
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import httpx2
import openai

from giccs.models.served.budget import Account, BudgetError
from giccs.models.served.cache import Answer
from giccs.models.served.server import Limits, Server, Usage

if TYPE_CHECKING:
    from giccs.models.served.requests import Request

MAX_MESSAGE_LENGTH = 300
"""Maximum number of characters of a server's message in an error."""
NOTHING = Decimal(0)
LENGTH = re.compile(
    r"context[ _-]?(length|window|size)|max(imum)?[ _-](model[ _-])?len|max_(input|total|new)_tokens"
    r"|too[ _](long|large)|too many (input )?tokens",
    re.IGNORECASE,
)
"""Messages of servers for prompts that are too long: vLLM, SGLang and OpenAI "maximum context length",
"longer than the model's context length", llama-cpp-python "exceed context window", text-generation-inference
"`inputs` tokens + `max_new_tokens` must be <=".
"""


class Failure(openai.OpenAIError):
    """A fatal error with its message, passed through by the client."""


class Rejected(Failure):
    """The server rejects the content of the request."""


class TooLong(Rejected):
    """The prompt is too long for the server."""


class Wire:
    """Connection to a server, usable by several threads, until `close`."""

    def __init__(
        self, server: Server, threads: int, limits: Limits, stop: Event, account: Account
    ) -> None:
        self._server, self._limits, self._stop, self._account = server, limits, stop, account
        self._http = httpx2.Client(
            timeout=limits.seconds,
            follow_redirects=False,
            trust_env=not server.loopback,  # No proxy for connections to the local machine.
            headers={
                "Accept-Encoding": "identity"
            },  # A small compressed body may expand to a large text.
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
        """Close all connections."""
        self._http.close()

    def answer(self, request: Request, usage: Usage) -> Answer:
        """Return the model's answer; raise Failure with the problem if all attempts failed."""
        self._account.highest_price = usage.price_of(*request.largest_usage)
        try:
            return self._answer(request, usage)
        finally:
            self._account.end()

    def _answer(self, request: Request, usage: Usage) -> Answer:
        tries = 0
        while True:
            response = self._send(request, tries)
            tries += response.retries_taken + 1
            document = _read(response.http_response.content)
            text, fault = "", "not with a JSON object"
            if isinstance(document, dict):
                generates = request.largest_usage[1] > 0
                self._account.end(usage.add(document.get("usage"), generates=generates))
                text, fault = _answer(request, document)
            if not fault:
                model = document.get("model")
                called = self._redacted(model) if isinstance(model, str) else ""
                return Answer(self._server.without_key(text), called)
            if tries > self._limits.retries:
                raise Failure(f"the server answered, but {fault}{_after(tries)}")
            self._stop.wait(self._limits.pause * 2 ** (tries - 1))

    def _send(self, request: Request, tries: int) -> Any:
        """Return the response to a request after the given number of previous attempts; raise Failure without
        one."""
        client = self._client.with_options(max_retries=self._limits.retries - tries)
        try:
            return request.send(client)
        except openai.APIStatusError as error:
            raise _kind(error)(self._refusal(error, tries + _tries(error))) from None
        except openai.APITimeoutError as error:
            within = f"no answer within {self._limits.seconds:g} seconds"
            raise Failure(f"{within}{_after(tries + _tries(error))}") from None
        except openai.APIConnectionError as error:
            after = _after(tries + _tries(error))
            cause = self._redacted(str(error.__cause__))
            raise Failure(f"the connection failed{after} ({cause})") from None

    def _refusal(self, error: openai.APIStatusError, tries: int) -> str:
        """Return the exception for a response with a status other than 200."""
        status, headers = error.status_code, error.response.headers
        if error.response.is_redirect:
            redirect = urlsplit(headers.get("location", ""))
            target = self._redacted(f"{redirect.scheme}://{redirect.netloc}{redirect.path}")
            return f"the server redirects to {target}, which is not followed; check the address"
        message = (
            f"{status}: {self._redacted(_message(error.body) or error.response.reason_phrase)}"
        )
        if status in (401, 403):
            return f"the server rejected the key ({message}); set OPENAI_API_KEY"
        if status == 429 or status >= 500:
            wait = headers.get("retry-after")
            wait_text = f"; requested delay: {self._redacted(wait)}" if wait else ""
            return f"the server was busy or failed{_after(tries)} ({message}{wait_text})"
        return f"the server rejected the request ({message})"

    def _redacted(self, text: str) -> str:
        """Return a server's message as one short printable line, without the key."""
        line = " ".join(self._server.without_key(text).split())
        printable = "".join(letter for letter in line if letter.isprintable())
        return (
            printable
            if len(printable) <= MAX_MESSAGE_LENGTH
            else f"{printable[:MAX_MESSAGE_LENGTH]}…"
        )

    def _may_begin(self, request: httpx2.Request) -> None:
        if self._stop.is_set():
            raise Failure("not sent: another request had failed")
        try:
            self._account.begin()
        except BudgetError as error:
            raise Failure(f"the budget is used up: {error}") from None

    def _bound(self, response: httpx2.Response) -> None:
        if not response.is_success:
            self._account.end(NOTHING)
        if response.headers.get("content-encoding", "identity").lower() != "identity":
            raise Failure("the server compresses its answers although this was disabled")
        response.stream = _Bounded(response.stream, response.request, self._limits)


class _Bounded(httpx2.SyncByteStream):
    """The body of an answer, limited in size and time."""

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
    """Return the number of attempts of the client before it gave up."""
    return int(error.request.headers.get("x-stainless-retry-count", 0)) + 1


def _after(tries: int) -> str:
    return f", {tries} times" if tries > 1 else ""


def _kind(error: openai.APIStatusError) -> type[Failure]:
    """Return whether a request was rejected for its content or its length, by statuses used for this."""
    if error.status_code not in (400, 413, 422):
        return Failure
    message = f"{error.code or ''} {_message(error.body)}"
    return TooLong if LENGTH.search(message) else Rejected


def _answer(request: Request, document: dict[str, Any]) -> tuple[str, str]:
    """Return (the answer, its problem); raise Failure if further attempts are useless."""
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
    """Return the message in the body of an error, in any of the forms used by servers."""
    inner = body.get("error", body) if isinstance(body, dict) else body
    if isinstance(inner, dict):
        inner = inner.get("message") or inner.get("detail") or ""
    return inner if isinstance(inner, str) else ""
