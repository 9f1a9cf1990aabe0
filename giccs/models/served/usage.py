"""What was asked of a server, and what does it cost?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from threading import Lock
from typing import Any

from bws.problems import InputError, Problem
from giccs.models.served.address import Server

__all__ = ["Price", "Usage", "find_price"]

MILLION = 1_000_000
CENT = Decimal("0.01")


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars for a million tokens."""

    read: Decimal
    written: Decimal

    def of(self, prompt_tokens: int, completion_tokens: int) -> Decimal:
        """Return the price of tokens.

        >>> Price(Decimal("0.50"), Decimal("1.50")).of(51_200, 1_100)
        Decimal('0.02725')
        """
        return (self.read * prompt_tokens + self.written * completion_tokens) / MILLION


PAPER = {
    "gpt-3.5-turbo-0125": Price(Decimal("0.5"), Decimal("1.5")),
    "gpt-4-0125-preview": Price(Decimal(10), Decimal(30)),
}
"""Prices at OpenAI's own server as L-CSTS has them (Table 8): of models of one day, which keep theirs."""


def find_price(
    name: str, model: str, server: Server, said: tuple[float, float] | None
) -> Price | None:
    """Return the price that was said, or else a known one; None where there is none."""
    if said is None:
        return PAPER.get(model) if server.official else None
    if not all(0 <= amount < float("inf") for amount in said):
        message = (
            f"the price {said[0]}, {said[1]} is none; US dollars for a million tokens, 0 or more"
        )
        raise InputError(Problem(name, None, message))
    read, written = (Decimal(str(amount)) for amount in said)
    return Price(read, written)


class Usage:
    """Counts of one call, filled by several threads."""

    def __init__(self, price: Price | None = None) -> None:
        self._price = price
        self._lock = Lock()
        self.requests = self.cached = self.sent = self.untold = 0
        self.prompt_tokens = self.completion_tokens = 0

    def add(self, told: Any) -> None:
        """Count what the server says that one request took; what it does not say is counted as untold."""
        told = told if isinstance(told, dict) else {}
        read, written = told.get("prompt_tokens"), told.get("completion_tokens")
        with self._lock:
            self.sent += 1
            if _is_count(read) and _is_count(written):
                self.prompt_tokens += read
                self.completion_tokens += written
            else:
                self.untold += 1

    @property
    def cost(self) -> Decimal | None:
        """US dollars; None where there is no price, or where the server did not tell all tokens."""
        if not self.sent:
            return Decimal(0)
        if self._price is None or self.untold:
            return None
        return self._price.of(self.prompt_tokens, self.completion_tokens)

    def document(self) -> Mapping[str, Any]:
        """Return the counts for results; tokens and cost are those of what the cache did not hold."""
        return {
            "requests": self.requests,
            "cached": self.cached,
            "prompt_tokens": self.prompt_tokens,
            "completion_tokens": self.completion_tokens,
            "cost_usd": None if self.cost is None else f"{self.cost:f}",
        }

    def __str__(self) -> str:
        parts = [
            f"{self.requests:,} requests, {self.cached:,} from the cache",
            f"{self.prompt_tokens:,} + {self.completion_tokens:,} tokens",
        ]
        if self.untold:
            parts.append(f"the server did not tell the tokens of {self.untold:,}")
        elif self.cost is None:
            parts.append("no price is known")
        else:
            parts.append(f"{_shown(self.cost)} USD")
        return "; ".join(parts)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**53


def _shown(cost: Decimal) -> str:
    """Return an amount to the cent; below one to the millionth.

    >>> _shown(Decimal("0.02725")), _shown(Decimal("0.000123")), _shown(Decimal(0))
    ('0.03', '0.000123', '0.00')
    """
    return f"{cost:.2f}" if cost >= CENT or not cost else f"{cost:.6f}"
