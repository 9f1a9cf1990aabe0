"""Which request was that? Each gets an id, which its answer and its log lines carry; and it is counted."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Container
from contextvars import ContextVar
from http import HTTPMethod
from typing import TYPE_CHECKING, Literal

from starlette.types import ASGIApp, Message, Receive, Scope, Send
from structlog.contextvars import bind_contextvars, clear_contextvars, get_contextvars

from mturk.service.store.schema import new_id

if TYPE_CHECKING:
    from mturk.service.monitoring.metrics import Metrics

__all__ = ["HEALTH", "Observed", "note", "request_id"]

log = logging.getLogger("mturk.requests")
HEALTH = "/healthz"
HEADER = b"x-request-id"
ID = re.compile(rb"[A-Za-z0-9._-]{1,64}")
NOWHERE = "unmatched"
"""The name of requests to addresses that are none of ours: strangers must not make up names."""
METHODS = frozenset(HTTPMethod)
_noted: ContextVar[dict[str, str]] = ContextVar("noted")


def request_id() -> str:
    """Return the id of the request that is being answered; empty outside of one."""
    return str(get_contextvars().get("request_id", ""))


def note(**fields: str) -> None:
    """Tell what only the handler knows: `operation` of the API, `outcome` where there are several.

    It is logged and counted, so the values are names of ours: never what somebody sent.
    """
    _noted.get({}).update(fields)


class Observed:
    """An application whose requests get an id, a log line and, with `metrics`, a place in the counts.

    kind: what its requests are called that are none of the API.
    trusted: addresses of the proxies whose X-Request-ID is taken.
    """

    def __init__(
        self, app: ASGIApp, kind: Literal["page", "frame"], metrics: Metrics | None,
        trusted: Container[str] = (),
    ) -> None:  # fmt: skip
        self.app, self.kind, self.metrics, self.trusted = app, kind, metrics, trusted

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on; what is told of it is told when the whole answer is sent."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        began, status = time.perf_counter(), 500
        noted: dict[str, str] = {}
        own = _given(scope, self.trusted) or new_id()
        # Threads that the handlers run in see both: a pool's thread runs in a copy of the context.
        clear_contextvars()
        bind_contextvars(request_id=own)
        _noted.set(noted)

        async def answer(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = [*message.get("headers", ()), (HEADER, own.encode())]
                message = {**message, "headers": headers}
            await send(message)

        try:
            await self.app(scope, receive, answer)
        finally:
            self._tell(scope, noted, status, time.perf_counter() - began)

    def _tell(self, scope: Scope, noted: dict[str, str], status: int, seconds: float) -> None:
        kind, name = self._place(scope, noted)
        probe = name == HEALTH
        fields = {
            "operation" if kind == "api" else kind: name,
            "method": scope["method"] if scope["method"] in METHODS else "other", "status": status,
            "milliseconds": round(seconds * 1000, 1), **noted,
        }  # fmt: skip
        log.log(logging.DEBUG if probe else logging.INFO, "answered", extra=fields)
        if self.metrics and not probe:
            self.metrics.answered(kind, name, status, seconds, noted.get("outcome", ""))

    def _place(self, scope: Scope, noted: dict[str, str]) -> tuple[str, str]:
        """Return kind and name; a page is named by the pattern of its address, which holds no values."""
        if "operation" in noted:
            return "api", noted["operation"]
        return self.kind, getattr(scope.get("route"), "path", "") or NOWHERE


def _given(scope: Scope, trusted: Container[str]) -> str:
    """Return the id that a trusted proxy gave, where it is one."""
    if (scope.get("client") or ("",))[0] not in trusted:
        return ""
    given = [value for name, value in scope["headers"] if name == HEADER]
    return given[0].decode() if len(given) == 1 and ID.fullmatch(given[0]) else ""
