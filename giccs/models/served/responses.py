"""Requests for the details of a chat model's answers, and the test of what its server supports.

Reasoning models reject some settings: OpenAI's reject a temperature and log-probabilities. Other servers
return the tokens of the reasoning first, so that the first token is no answer. A test request finds out.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from giccs.models.abilities import Response
from giccs.models.served.requests import largest_input
from giccs.models.served.server import OFFICIAL

TOP_TOKENS = 20
"""Number of the most likely tokens per position; OpenAI permits no more."""
LETTER_TOKEN = re.compile(r"""[\s(*"']*([A-Z])[\s).:*"']*""")
"""A token that is a letter, possibly with a space or punctuation."""


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """A prompt to a model on a server: everything that the answer depends on, and nothing else."""

    base_url: str
    model: str
    prompt: str
    max_tokens: int
    seed: int | None = None
    temperature: float = 0.0

    @property
    def messages(self) -> list[dict[str, str]]:
        """The conversation: a single user message."""
        return [{"role": "user", "content": self.prompt}]

    @property
    def body(self) -> dict[str, Any]:
        """The body of the request. OpenAI's own server uses a newer name for the limit, unknown to other
        servers."""
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
        """SHA-256 of the request, independent of the order of its parts."""
        parts = {**asdict(self), "messages": self.messages}
        del parts["prompt"]
        text = json.dumps(parts, sort_keys=True, ensure_ascii=True)
        return hashlib.sha256(text.encode("ascii")).hexdigest()

    @property
    def largest_usage(self) -> tuple[int, int]:
        """Upper bounds of input and output tokens."""
        return largest_input(self.prompt), self.max_tokens

    def send(self, client: Any) -> Any:
        """Return the raw response of OpenAI's client."""
        return client.chat.completions.with_raw_response.create(**self.body)

    def read(self, document: Mapping[str, Any]) -> tuple[str, str]:
        """Return (the answer, its problem).

        A refusal of the model is its answer. The answer is empty if a filter stopped the model, or if it used
        up its tokens before the answer.
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
        return "", "without text"


@dataclass(frozen=True, slots=True)
class Support:
    """Settings that a model on a server accepts."""

    temperature: bool
    """Whether a temperature of 0 is accepted."""
    letters: bool
    """Whether the log-probabilities of the first token include the letter of an answer."""


@dataclass(frozen=True, slots=True)
class ResponseRequest(ChatRequest):
    """A prompt whose answer is stored with its end, its reasoning, and the likelihoods of letters."""

    letters: bool = False
    has_temperature: bool = True

    @property
    def body(self) -> dict[str, Any]:
        """The body of the request."""
        body = ChatRequest.body.fget(self)  # type: ignore[attr-defined]
        if not self.has_temperature:
            del body["temperature"]
        return {**body, "logprobs": True, "top_logprobs": TOP_TOKENS} if self.letters else body

    @property
    def key(self) -> str:
        """SHA-256 of the request; its answers are not those of `ChatRequest`."""
        parts = {"base_url": self.base_url, "stored": "response", **self.body}
        text = json.dumps(parts, sort_keys=True, ensure_ascii=True)
        return hashlib.sha256(text.encode("ascii")).hexdigest()

    def read(self, document: Mapping[str, Any]) -> tuple[str, str]:
        """Return (the `Response` as JSON, its problem).

        Raises ValueError if letters are requested and the server returns no log-probabilities.
        """
        choice = _choice(document)
        message = choice.get("message")
        if not isinstance(message, dict):
            return "", "without a choice"
        content, refusal = message.get("content"), message.get("refusal")
        finish = choice.get("finish_reason")
        end = "length" if finish == "length" else "stop"
        if finish == "content_filter" or (isinstance(refusal, str) and refusal):
            end = "refusal"
        text = content if isinstance(content, str) and content else refusal
        if not isinstance(text, str):
            if end == "stop" and not isinstance(content, str):
                return "", "without text"
            text = ""
        reasoning = message.get("reasoning_content") or message.get("reasoning")
        response = Response(
            _whole(text),
            end,
            _whole(reasoning) if isinstance(reasoning, str) else "",
            letter_logprobs(choice) if self.letters else {},
        )
        return json.dumps(asdict(response)), ""


class ProbeRequest:
    """A test request, which tries several settings until the server accepts them."""

    prompt = "Reply with the letter A only."
    max_tokens = 16

    def __init__(self, base_url: str, model: str, seed: int | None) -> None:
        self._variants = [
            ResponseRequest(base_url, model, self.prompt, self.max_tokens, seed, 0.0, *settings)
            for settings in ((True, True), (False, True), (False, False))
        ]
        self._accepted = self._variants[0]

    @property
    def key(self) -> str:
        """SHA-256 of the request."""
        return hashlib.sha256(f"probe {self._variants[0].key}".encode("ascii")).hexdigest()

    @property
    def largest_usage(self) -> tuple[int, int]:
        """Upper bounds of input and output tokens."""
        return largest_input(self.prompt), self.max_tokens

    def send(self, client: Any) -> Any:
        """Return the raw response of OpenAI's client to the first settings that the server accepts."""
        import openai

        for variant in self._variants[:-1]:
            self._accepted = variant
            try:
                return variant.send(client)
            except (openai.BadRequestError, openai.UnprocessableEntityError):
                continue
        self._accepted = self._variants[-1]
        return self._accepted.send(client)

    def read(self, document: Mapping[str, Any]) -> tuple[str, str]:
        """Return (the `Support` as JSON, the problem of the answer)."""
        choice = _choice(document)
        if not choice:
            return "", "without a choice"
        accepted = self._accepted
        letters = accepted.letters and "A" in _found_letters(choice)
        return json.dumps(asdict(Support(accepted.has_temperature, letters))), ""


def read_response(text: str) -> Response:
    """Return the response stored as JSON."""
    return Response(**json.loads(text))


def read_support(text: str) -> Support:
    """Return the support stored as JSON."""
    return Support(**json.loads(text))


def letter_logprobs(choice: Mapping[str, Any]) -> dict[str, float]:
    """Return ln p of each letter among the most likely first tokens of an answer.

    Several tokens of one letter ("A", " A", "(A") are added. Raises ValueError without log-probabilities.

    >>> tokens = [{"token": "A", "logprob": -1.0}, {"token": " A", "logprob": -1.0}]
    >>> first = {"token": "A", "logprob": -1.0, "top_logprobs": tokens}
    >>> round(letter_logprobs({"logprobs": {"content": [first]}})["A"], 2)  # -1 + ln 2
    -0.31
    """
    content = (choice.get("logprobs") or {}).get("content")
    first = content[0] if isinstance(content, list) and content else {}
    tokens = first.get("top_logprobs") if isinstance(first, dict) else None
    if not isinstance(tokens, list):
        raise ValueError(
            "the server returned no log-probabilities of an answer, although it did in a test request; "
            "use --choose-by generation"
        )
    probabilities: dict[str, float] = {}
    for token in tokens:
        text, logprob = token.get("token"), token.get("logprob")
        if not isinstance(logprob, int | float) or not logprob <= 1e-3:
            raise ValueError(f"the log-probability of a token is {logprob!r}; expected at most 0")
        if match := LETTER_TOKEN.fullmatch(str(text)):
            probabilities[match[1]] = probabilities.get(match[1], 0.0) + math.exp(min(logprob, 0.0))
    return {letter: math.log(p) for letter, p in probabilities.items() if p > 0}


def _found_letters(choice: Mapping[str, Any]) -> Mapping[str, float]:
    try:
        return letter_logprobs(choice)
    except ValueError:
        return {}


def _choice(document: Mapping[str, Any]) -> Mapping[str, Any]:
    choices = document.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    return choice if isinstance(choice, dict) else {}


def _whole(text: str) -> str:
    """Return a text with half surrogate pairs replaced."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
