"""Requests to other host names are refused, so that no other name can be given to this machine."""

from __future__ import annotations

from collections.abc import Sequence

from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.types import ASGIApp, Receive, Scope, Send

HOST = b"host"
MAX_ACCEPTED = 64
"""Maximum number of values that are remembered."""


class TrustedHosts:
    """Starlette's `TrustedHostMiddleware`, which parses the header Host only of values that are new."""

    def __init__(self, app: ASGIApp, hosts: Sequence[str]) -> None:
        self._app = app
        self._check = TrustedHostMiddleware(self._accept, allowed_hosts=hosts, www_redirect=False)
        self._accepted: set[bytes] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request to an accepted host on."""
        accepted = scope["type"] == "http" and _host(scope) in self._accepted
        await (self._app if accepted else self._check)(scope, receive, send)

    async def _accept(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and len(self._accepted) < MAX_ACCEPTED:
            self._accepted.add(_host(scope))
        await self._app(scope, receive, send)


def _host(scope: Scope) -> bytes:
    """Return the header Host, with NUL between several ones, which no header contains."""
    return b"\0".join(value for name, value in scope["headers"] if name == HOST)
