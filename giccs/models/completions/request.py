"""A text whose tokens are to be weighed: what is sent, and the name under which its answer is kept."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from giccs.models.completions.tokens import read_tokens

__all__ = ["Request"]


@dataclass(frozen=True, slots=True)
class Request:
    """One text to one model of one server. All that the answer may depend on, and nothing else."""

    base_url: str
    model: str
    text: str

    @property
    def body(self) -> dict[str, Any]:
        """What is sent: as by lm-evaluation-harness' ``local-completions``, but text, not token ids.

        One token is written, and dropped: to llama-cpp-python 0 means as many as there is room for, and
        earlier versions of vLLM refuse it.
        """
        return {
            "model": self.model,
            "prompt": self.text,
            "echo": True,
            "logprobs": 1,
            "max_tokens": 1,
            "temperature": 0.0,
        }

    @property
    def key(self) -> str:
        """SHA-256 of the request."""
        parts = {"base_url": self.base_url, **self.body}
        text = json.dumps(parts, sort_keys=True, ensure_ascii=True)
        return hashlib.sha256(text.encode("ascii")).hexdigest()

    def send(self, client: Any) -> Any:
        """Return the raw response of OpenAI's client."""
        return client.completions.with_raw_response.create(**self.body)

    def read(self, document: Mapping[str, Any]) -> tuple[str, str]:
        """Return (the tokens of the text as JSON, what is wrong with the answer).

        ValueError where the server cannot say how likely they are.
        """
        choices = document.get("choices")
        choice = choices[0] if isinstance(choices, list) and choices else None
        if not isinstance(choice, dict):
            return "", "without a choice"
        return json.dumps(asdict(read_tokens(self.text, choice, document.get("usage")))), ""
