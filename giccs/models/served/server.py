"""A server: its address, the key for it, prices, and what requests to it used and cost."""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from threading import Lock
from typing import Any
from urllib.parse import urlsplit

from bws.problems import InputError, Problem

__all__ = ["OFFICIAL", "Price", "Server", "Usage", "find_price", "find_server"]

OFFICIAL = "https://api.openai.com/v1"
MILLION = 1_000_000
CENT = Decimal("0.01")
NO_KEY = "none"
"""What is sent for a key where there is none: the protocol wants something."""
SECRET = 16
"""Letters that a key has at least."""


@dataclass(frozen=True, slots=True)
class Server:
    """Where requests go."""

    base_url: str
    """Without credentials, query and last slash."""
    key: str = field(repr=False)

    @property
    def official(self) -> bool:
        """Is it OpenAI's own?"""
        return self.base_url == OFFICIAL

    @property
    def loopback(self) -> bool:
        """Is it this machine?"""
        return _loopback(urlsplit(self.base_url).hostname or "")

    def without_key(self, text: str) -> str:
        """Return `text` with the key blotted out, should a server send it back.

        What is short ("EMPTY", for a server that wants anything) is no secret, and may be a word.
        """
        return text.replace(self.key, "[key]") if len(self.key) >= SECRET else text


def find_server(name: str, base_url: str | None) -> Server:
    """Return the server at `base_url`, else at ``OPENAI_BASE_URL``, else OpenAI's, with ``OPENAI_API_KEY``.

    InputError where the address is none, or where the key would be read by others on the way.
    """

    def refused(message: str) -> InputError:
        return InputError(Problem(name, None, message))

    address = _address(name, base_url or os.environ.get("OPENAI_BASE_URL") or OFFICIAL)
    key = os.environ.get("OPENAI_API_KEY", "").strip()
    if not (key.isascii() and key.isprintable()):
        raise refused("OPENAI_API_KEY has characters that no key has; set it anew")
    server = Server(address, key or NO_KEY)
    if not key and server.official:
        message = (
            "needs a key for OpenAI's server; set OPENAI_API_KEY, or --base-url to another server"
        )
        raise refused(message)
    if key and address.startswith("http://") and not server.loopback:
        raise refused(
            f"the key would go to {address} unencrypted; use https, or unset OPENAI_API_KEY, "
            "in which case no key is sent"
        )
    return server


def _address(name: str, text: str) -> str:
    """Return an address in one form; InputError, which does not repeat the address, where it is none."""
    try:
        parts = urlsplit(text.strip())
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        raise InputError(Problem(name, None, "the address of the server cannot be read")) from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        message = "the address of the server must begin with http:// or https:// and a host"
        raise InputError(Problem(name, None, message))
    if parts.username is not None or parts.query or parts.fragment:
        message = (
            "the address of the server must have no user, password, query or fragment; "
            "a key belongs into OPENAI_API_KEY"
        )
        raise InputError(Problem(name, None, message))
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return f"{parts.scheme}://{host}{port}{parts.path.rstrip('/')}"


def _loopback(host: str) -> bool:
    """Tell whether a host is this machine.

    >>> [_loopback(host) for host in ("localhost", "127.0.0.1", "::1", "localhost.example.org")]
    [True, True, True, False]
    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


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
