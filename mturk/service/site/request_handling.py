"""Whether a request to the site is let through: form, session, rate, token; and what a refusal looks like."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from dataclasses import replace
from urllib.parse import parse_qsl

from starlette.concurrency import run_in_threadpool
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from mturk.service.rules.work import WorkError
from mturk.service.site import texts
from mturk.service.site.links import LinkError
from mturk.service.site.sessions import (
    Session,
    csrf_matches,
    has_cookie,
    read_session,
    write_session,
)
from mturk.service.site.visit import RefusedError, Site, Visit

__all__ = ["BODY_BYTES", "FIELDS", "BodyError", "Handler", "answering", "read_fields", "visit_of"]

BODY_BYTES = 1_000_000
FIELDS = 1_000


class BodyError(ValueError):
    """A body that is not a form, too large, or holds files; `status` is what HTTP calls it."""

    def __init__(self, status: int, key: str) -> None:
        super().__init__(key)
        self.status = status
        self.key = key
        """Which text says it (texts.py)."""


async def read_fields(request: Request) -> list[tuple[str, str]]:
    """Return a form's fields, (name, value) each; BodyError where it is none or too large."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind not in ("", "application/x-www-form-urlencoded", "multipart/form-data"):
        raise BodyError(415, "error.not_a_form")
    body = await _read(request)
    return await _multipart(request, body) if kind == "multipart/form-data" else _urlencoded(body)


async def _read(request: Request) -> bytes:
    body = bytearray()
    try:
        async for chunk in request.stream():
            body += chunk
            if len(body) > BODY_BYTES:
                raise BodyError(413, "error.too_large")
    except ClientDisconnect:  # who went away reads no answer; it is no failure of ours
        raise BodyError(400, "error.not_a_form") from None
    return bytes(body)


def _urlencoded(body: bytes) -> list[tuple[str, str]]:
    text = body.decode("utf-8", "replace")
    if text.count("&") >= FIELDS:
        raise BodyError(413, "error.too_large")
    return parse_qsl(text, keep_blank_values=True, errors="replace")


async def _multipart(request: Request, body: bytes) -> list[tuple[str, str]]:
    async def once() -> AsyncGenerator[bytes]:
        yield body

    parser = MultiPartParser(
        request.headers, once(), max_files=FIELDS, max_fields=FIELDS, max_part_size=BODY_BYTES
    )
    try:
        form = await parser.parse()
    except (MultiPartException, KeyError):  # KeyError: no boundary
        raise BodyError(400, "error.not_a_form") from None
    try:
        items = form.multi_items()
        if any(not isinstance(value, str) and (value.filename or value.size) for _, value in items):
            raise BodyError(422, "error.files")
        return [(name, value) for name, value in items if isinstance(value, str)]
    finally:
        await form.close()


log = logging.getLogger("mturk.site")
STATUS = {
    "NotYours": 404, "Unknown": 404, "NotEligible": 403, "Blocked": 403, "Expired": 410,
}  # fmt: skip
"""What HTTP calls a WorkError; all others are 409."""
Fields = Sequence[tuple[str, str]]
Handler = Callable[[Visit], Response]


def answering(site: Site, handler: Handler) -> Callable[[Request], Awaitable[Response]]:
    """Return the endpoint around a handler: session, rate, form token, error pages, cookie."""

    async def endpoint(request: Request) -> Response:
        fields: list[tuple[str, str]] = []
        fault: BodyError | None = None
        if request.method == "POST":
            try:
                fields = await read_fields(request)
            except BodyError as error:
                fault = error
        return await run_in_threadpool(_answer, site, request, fields, fault, handler)

    return endpoint


def _answer(
    site: Site, request: Request, fields: Fields, fault: BodyError | None, handler: Handler
) -> Response:  # fmt: skip
    visit = visit_of(site, request, fields)
    before = read_session(request.cookies, site.secret, secure=site.secure)
    if before is None and has_cookie(request.cookies, secure=site.secure):
        log.warning("session cookie refused")
    response = _within_rate(visit) or _handled(visit, fault, handler)
    if visit.session != before:
        write_session(response, visit.session, site.secret, secure=site.secure)
    return response


def visit_of(site: Site, request: Request, fields: Fields = ()) -> Visit:
    """Return the request with its session and language; `?lang=` chooses one."""
    session = read_session(request.cookies, site.secret, secure=site.secure) or Session()
    asked = request.query_params.get("lang")
    if asked in texts.LANGUAGES:
        session = replace(session, language=asked)
    accepted = request.headers.get("accept-language", "")
    language = session.language or texts.choose_language(accepted)
    return Visit(site, request, session, language, fields)


def _within_rate(visit: Visit) -> Response | None:
    """Return the page that says to wait, or None where there is no need to."""
    if visit.session.worker is None:
        seconds = visit.site.by_address.wait(visit.address)
    else:
        seconds = visit.site.by_worker.wait(visit.session.worker)
    return _too_often(visit, seconds) if seconds else None


def _too_often(visit: Visit, seconds: int) -> Response:
    """Return the page that says how long to wait."""
    log.warning("too many requests")
    response = visit.refuse(429, "error.often", n=seconds)
    response.headers["Retry-After"] = str(seconds)
    return response


def _handled(visit: Visit, fault: BodyError | None, handler: Handler) -> Response:
    try:
        if fault:
            raise RefusedError(fault.status, fault.key)
        if visit.request.method == "POST":
            _check_csrf(visit)
        return handler(visit)
    except LinkError as error:
        return _refused(visit, RefusedError(403, "error.link", str(error)))
    except WorkError as error:
        status = STATUS.get(error.code, 409)
        return _refused(visit, RefusedError(status, f"error.{error.code}", error.code))
    except RefusedError as error:
        return _refused(visit, error)


def _check_csrf(visit: Visit) -> None:
    if not csrf_matches(visit.session, visit.site.secret, visit.field("csrf")):
        raise RefusedError(403, "error.csrf", "form token missing or wrong")


def _refused(visit: Visit, refusal: RefusedError) -> Response:
    """Log what was refused, and answer it; who is refused over and over has to wait."""
    if refusal.status == 401:
        return visit.go("/work/")
    log.warning("refused: %s", refusal)
    seconds = visit.site.by_refusals.wait(visit.address) if refusal.status in (403, 404) else 0
    return _too_often(visit, seconds) if seconds else visit.refuse(refusal.status, refusal.key)
