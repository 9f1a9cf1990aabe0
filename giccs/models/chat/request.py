"""A prompt as it is sent, the name under which its answer is kept, and that answer."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from typing import Any

from giccs.models.chat.address import OFFICIAL

__all__ = ["Answer", "Request"]


@dataclass(frozen=True, slots=True)
class Answer:
    """What the server sent back."""

    text: str
    model: str = ""
    """As the server calls the model that answered: more exact, often, than what it was asked for."""


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
