"""What may be asked of a server, and what comes of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

__all__ = ["Answer", "Request"]


@dataclass(frozen=True, slots=True)
class Answer:
    """What the server sent back."""

    text: str
    model: str = ""
    """As the server calls the model that answered: more exact, often, than what it was asked for."""


class Request(Protocol):
    """One prompt to one model of one server; equal where the same is sent."""

    @property
    def key(self) -> str:
        """Name under which the answer is kept: a digest of all that it may depend on."""
        ...

    def send(self, client: Any) -> Any:
        """Return the raw response of OpenAI's client."""
        ...

    def read(self, document: Mapping[str, Any]) -> tuple[str, str]:
        """Return (the answer, what is wrong with it, so that it must be asked for again).

        ValueError, in words, where the server will never give the answer, however often it is asked.
        """
        ...
