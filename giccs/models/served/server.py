"""A server: its address, key, prices, and the usage of requests."""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from threading import Lock
from typing import Any
from urllib.parse import urlsplit

from bws.base.problems import InputError, Problem

OFFICIAL = "https://api.openai.com/v1"
MILLION = 1_000_000
CENT = Decimal("0.01")
NO_KEY = "none"
"""Placeholder for a missing key, because the protocol requires one."""
SECRET = 16
"""Minimum length of a key."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of time, retries and size."""

    seconds: float = 300.0
    """Per attempt: timeout without data, and from the first to the last byte of the body."""
    retries: int = 6
    pause: float = 0.5
    """Delay in seconds before a request is repeated after an invalid answer; doubled each time."""
    largest: int = 16 * 2**20
    """Maximum size of an answer in bytes."""


@dataclass(frozen=True, slots=True)
class Server:
    """Address and key of a server."""

    base_url: str
    """Without credentials, query and trailing slash."""
    key: str = field(repr=False)

    @property
    def official(self) -> bool:
        """Whether it is OpenAI's server."""
        return self.base_url == OFFICIAL

    @property
    def loopback(self) -> bool:
        """Whether it is the local machine."""
        return _loopback(urlsplit(self.base_url).hostname or "")

    def without_key(self, text: str) -> str:
        """Return `text` with the key redacted, in case a server echoes it.

        Short keys ("EMPTY", for a server that accepts anything) are not secret and may be words.
        """
        return text.replace(self.key, "[key]") if len(self.key) >= SECRET else text


def find_server(name: str, base_url: str | None) -> Server:
    """Return the server at `base_url`, or ``OPENAI_BASE_URL``, or OpenAI's, with ``OPENAI_API_KEY``.

    Raises InputError for an invalid address, or if the key would be sent unencrypted.
    """

    def refused(message: str) -> InputError:
        return InputError(Problem(name, None, message))

    source = "--base-url" if base_url else "OPENAI_BASE_URL"
    address = _address(name, source, base_url or os.environ.get("OPENAI_BASE_URL") or OFFICIAL)
    key = os.environ.get("OPENAI_API_KEY", "").strip()
    if not (key.isascii() and key.isprintable()):
        raise refused("OPENAI_API_KEY contains invalid characters; set it again")
    server = Server(address, key or NO_KEY)
    if not key and server.official:
        message = "requires a key for OpenAI's server; set OPENAI_API_KEY, or --base-url to another server"
        raise refused(message)
    if key and address.startswith("http://") and not server.loopback:
        raise refused(
            f"the key would be sent to {address} unencrypted; use https, or unset OPENAI_API_KEY to send "
            "no key"
        )
    return server


def _address(name: str, source: str, text: str) -> str:
    """Return a normalised address; raise InputError, without repeating the address, if it is invalid."""
    address = f"the address of the server ({source})"
    try:
        parts = urlsplit(text.strip())
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        raise InputError(Problem(name, None, f"{address} is invalid")) from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        message = f"{address} must begin with http:// or https:// and a host"
        raise InputError(Problem(name, None, message))
    if parts.username is not None or parts.query or parts.fragment:
        message = f"{address} must not contain user, password, query or fragment"
        raise InputError(Problem(name, None, f"{message}; set the key in OPENAI_API_KEY"))
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return f"{parts.scheme}://{host}{port}{parts.path.rstrip('/')}"


def _loopback(host: str) -> bool:
    """Return whether a host is the local machine.

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
    """US dollars per million tokens."""

    read: Decimal
    completion: Decimal

    def of(self, prompt_tokens: int, completion_tokens: int) -> Decimal:
        """Return the price of tokens.

        >>> Price(Decimal("0.50"), Decimal("1.50")).of(51_200, 1_100)
        Decimal('0.02725')
        """
        return (self.read * prompt_tokens + self.completion * completion_tokens) / MILLION


PAPER = {
    "gpt-3.5-turbo-0125": Price(Decimal("0.5"), Decimal("1.5")),
    "gpt-4-0125-preview": Price(Decimal(10), Decimal(30)),
}
"""Prices at OpenAI's server according to L-CSTS (Table 8), for dated models with constant prices."""


def find_price(
    name: str, model: str, server: Server, stated_price: tuple[float, float] | None
) -> Price | None:
    """Return the stated price, or else a known one, or None."""
    if stated_price is None:
        return PAPER.get(model) if server.official else None
    if not all(0 <= amount < float("inf") for amount in stated_price):
        message = (
            f"invalid price {stated_price[0]}, {stated_price[1]}; expected US dollars per million tokens, "
            "0 or more"
        )
        raise InputError(Problem(name, None, message))
    read, completion = (Decimal(str(amount)) for amount in stated_price)
    return Price(read, completion)


class Usage:
    """Counts of one call, updated by several threads."""

    def __init__(self, price: Price | None = None) -> None:
        self._price = price
        self._lock = Lock()
        self.requests = self.cached = self.sent = self.untold = 0
        self.prompt_tokens = self.completion_tokens = 0

    def add(self, usage: Any, *, generates: bool = True) -> Decimal | None:
        """Add the usage reported for a request, and return its price; None if a number is unknown.

        Missing numbers are counted as unknown; that of output tokens only if the request generates tokens.
        """
        usage = usage if isinstance(usage, dict) else {}
        read, completion = usage.get("prompt_tokens"), usage.get("completion_tokens")
        if completion is None and not generates:
            completion = 0
        with self._lock:
            self.sent += 1
            if not (_is_count(read) and _is_count(completion)):
                self.untold += 1
                return None
            self.prompt_tokens += read
            self.completion_tokens += completion
        return self.price_of(read, completion)

    def add_cached(self, n: int) -> None:
        """Count answers that were stored by another process."""
        with self._lock:
            self.cached += n

    def price_of(self, prompt_tokens: int, completion_tokens: int) -> Decimal:
        """Return the price of tokens in US dollars; 0 without a known price."""
        return self._price.of(prompt_tokens, completion_tokens) if self._price else Decimal(0)

    @property
    def cost(self) -> Decimal | None:
        """US dollars; None without a price, or if the server did not report all tokens."""
        if not self.sent:
            return Decimal(0)
        if self._price is None or self.untold:
            return None
        return self._price.of(self.prompt_tokens, self.completion_tokens)

    def document(self) -> Mapping[str, Any]:
        """Return the counts for results; tokens and cost exclude cached answers."""
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
            parts.append(f"the server did not report the tokens of {self.untold:,}")
        elif self.cost is None:
            parts.append("no known price")
        else:
            parts.append(f"{format_cost(self.cost)} USD")
        return "; ".join(parts)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**53


def format_cost(cost: Decimal) -> str:
    """Return an amount with two decimals; below one with up to six.

    >>> format_cost(Decimal("0.02725")), format_cost(Decimal("0.000123")), format_cost(Decimal(0))
    ('0.03', '0.000123', '0.00')
    """
    return f"{cost:.2f}" if cost >= CENT or not cost else f"{cost:.6f}"
