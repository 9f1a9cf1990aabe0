"""A prompt as it is sent, the name under which its answer is kept, and how that is read."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from giccs.models.served.address import OFFICIAL

__all__ = ["Request"]


@dataclass(frozen=True, slots=True)
class Request:
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
