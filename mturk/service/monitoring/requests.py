"""Request ids, request logging and request counts."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Container
from contextvars import ContextVar
from http import HTTPMethod
from typing import TYPE_CHECKING, Literal

from starlette.types import ASGIApp, Message, Receive, Scope, Send
from structlog.contextvars import bind_contextvars, get_contextvars

from mturk.service.store.schema import new_id

if TYPE_CHECKING:
    from mturk.service.monitoring.metrics import Metrics

log = logging.getLogger("mturk.requests")
HEALTH_PATH = "/healthz"
ID_HEADER = b"x-request-id"
ID_PATTERN = re.compile(rb"[A-Za-z0-9._-]{1,64}")
UNMATCHED = "unmatched"
"""Name of requests to unknown addresses, so that clients cannot create label values."""
METHODS = frozenset(HTTPMethod)
_request_fields: ContextVar[dict[str, str]] = ContextVar("noted")


def request_id() -> str:
    """Return the id of the current request; empty outside a request."""
    return str(get_contextvars().get("request_id", ""))


def annotate_request(**fields: str) -> None:
    """Add fields to the log line of the current request: `operation` of the API, or `outcome`.

    Values are logged and counted; they must be fixed names, never client input.
    """
    _request_fields.get({}).update(fields)


class ObservedApp:
    """ASGI middleware that assigns an id to each request, logs it and, with `metrics`, counts it.

    kind: kind of requests outside the API.
    trusted: addresses of proxies whose X-Request-ID is accepted.
    """

    def __init__(
        self, app: ASGIApp, kind: Literal["page", "frame"], metrics: Metrics | None,
        trusted: Container[str] = (),
    ) -> None:  # fmt: skip
        self.app, self.kind, self.metrics, self.trusted = app, kind, metrics, trusted

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request, and log it after the whole response has been sent."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        began, status = time.perf_counter(), 500
        request_fields: dict[str, str] = {}
        current_id = _trusted_id(scope, self.trusted) or new_id()
        # Handler threads see both: a pool thread runs in a copy of the context.
        bind_contextvars(request_id=current_id)
        _request_fields.set(request_fields)

        async def answer(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = [*message.get("headers", ()), (ID_HEADER, current_id.encode())]
                message = {**message, "headers": headers}
            await send(message)

        try:
            await self.app(scope, receive, answer)
        finally:
            self._log_request(scope, request_fields, status, time.perf_counter() - began)

    def _log_request(
        self, scope: Scope, request_fields: dict[str, str], status: int, seconds: float
    ) -> None:
        kind, name = self._kind_and_name(scope, request_fields)
        probe = name == HEALTH_PATH
        level = logging.DEBUG if probe else logging.INFO
        if log.isEnabledFor(level):
            fields = {
                "operation" if kind == "api" else kind: name,
                "method": scope["method"] if scope["method"] in METHODS else "other", "status": status,
                "milliseconds": round(seconds * 1000, 1), **request_fields,
            }  # fmt: skip
            log.log(level, "answered", extra=fields)
        if self.metrics and not probe:
            self.metrics.count_request(
                kind, name, status, seconds, request_fields.get("outcome", "")
            )

    def _kind_and_name(self, scope: Scope, request_fields: dict[str, str]) -> tuple[str, str]:
        """Return (kind, name); the name of a page is its route pattern, which contains no values."""
        if "operation" in request_fields:
            return "api", request_fields["operation"]
        return self.kind, getattr(scope.get("route"), "path", "") or UNMATCHED


def _trusted_id(scope: Scope, trusted: Container[str]) -> str:
    """Return the id set by a trusted proxy; empty if absent or invalid."""
    if (scope.get("client") or ("",))[0] not in trusted:
        return ""
    values = [value for name, value in scope["headers"] if name == ID_HEADER]
    return values[0].decode() if len(values) == 1 and ID_PATTERN.fullmatch(values[0]) else ""
