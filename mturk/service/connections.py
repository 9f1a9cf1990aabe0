"""HTTP connections with limits on time and size of a request, so that idle connections do not add up."""

from __future__ import annotations

import asyncio
import ipaddress

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

REQUEST_SECONDS = 30.0
"""Time within which a client must send a request: from connecting, or its first byte, to its end."""
MAX_HEAD_BYTES = 64 * 1024
"""Maximum size of an incomplete request line with headers."""
MAX_WAITING = 500
"""Maximum number of connections without a complete request, far below the number that the server accepts."""
_waiting: dict[str, dict[LimitedProtocol, None]] = {}
"""Connections without a complete request, oldest first, by the address of the client."""


class LimitedProtocol(HttpToolsProtocol):
    """A connection that is closed unless each request arrives in time, with headers of limited size.

    uvicorn limits the time between requests, but not that before the first one or within one. If too many
    connections wait for a request, the oldest one of the client with the most of them is closed, so that a
    client with thousands of them keeps nobody else out.
    """

    _deadline: asyncio.TimerHandle | None = None
    _is_partial = False
    """Whether a request has begun to arrive."""
    _n_head_bytes = 0
    """Bytes received of the current request line and headers."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for the first request."""
        super().connection_made(transport)
        self._network = _network(self.client[0] if self.client else "")
        self._wait()

    def data_received(self, data: bytes) -> None:
        """Stop waiting once a request is complete; begin with the first byte of the next."""
        self._n_head_bytes += len(data)
        super().data_received(data)
        if self._n_head_bytes > MAX_HEAD_BYTES and not self.transport.is_closing():
            self.send_400_response("Request header too large.")
        elif self._is_partial and self._deadline is None:
            self._wait()

    def on_message_begin(self) -> None:
        """Note that a request has begun."""
        self._is_partial = True
        super().on_message_begin()

    def on_body(self, body: bytes) -> None:
        """Bytes of the body are limited by its reader."""
        self._n_head_bytes = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Stop waiting."""
        self._is_partial, self._n_head_bytes = False, 0
        self._stop_waiting()
        super().on_message_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        self._stop_waiting()
        super().connection_lost(exc)

    def _wait(self) -> None:
        self._deadline = self.loop.call_later(REQUEST_SECONDS, self.transport.abort)
        _waiting.setdefault(self._network, {})[self] = None
        if sum(map(len, _waiting.values())) > MAX_WAITING:
            largest_network = max(_waiting, key=lambda network: len(_waiting[network]))
            oldest = next(iter(_waiting[largest_network]))
            oldest._stop_waiting()
            oldest.transport.close()

    def _stop_waiting(self) -> None:
        if self._deadline is None:
            return
        self._deadline.cancel()
        self._deadline = None
        del _waiting[self._network][self]
        if not _waiting[self._network]:
            del _waiting[self._network]


def _network(host: str) -> str:
    """Return the address of a client; for IPv6 its network, in which it may use any address.

    >>> _network("192.0.2.1"), _network("2001:db8::1:2:3:4")
    ('192.0.2.1', '2001:db8::/64')
    """
    return str(ipaddress.ip_interface(f"{host}/64").network) if ":" in host else host
