"""Request handling of the site: form parsing, session, rate limits, CSRF token, error pages."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from dataclasses import replace
from urllib.parse import parse_qsl

from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from mturk.service.rules.work import WorkError
from mturk.service.site import texts
from mturk.service.site.links import ClosedLinkError, LinkError
from mturk.service.site.sessions import (
    Session,
    has_cookie,
    read_session,
    write_session,
)
from mturk.service.site.visit import RefusedError, Site, Visit
from mturk.service.threads import run_in_request_thread

MAX_BODY_BYTES = 1_000_000
MAX_FIELDS = 1_000


class BodyError(ValueError):
    """A request body that is not a form, too large or contains files; `status` is the HTTP status."""

    def __init__(self, status: int, key: str) -> None:
        super().__init__(key)
        self.status = status
        self.key = key
        """Key of the message in texts.py."""


async def read_fields(request: Request) -> list[tuple[str, str]]:
    """Return a form's fields as (name, value) pairs; raise BodyError if the body is invalid."""
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
            if len(body) > MAX_BODY_BYTES:
                raise BodyError(413, "error.too_large")
    except ClientDisconnect:  # the client does not read the response; not an error of the server
        raise BodyError(400, "error.not_a_form") from None
    return bytes(body)


def _urlencoded(body: bytes) -> list[tuple[str, str]]:
    text = body.decode("utf-8", "replace")
    if text.count("&") >= MAX_FIELDS:
        raise BodyError(413, "error.too_large")
    return parse_qsl(text, keep_blank_values=True, errors="replace")


async def _multipart(request: Request, body: bytes) -> list[tuple[str, str]]:
    async def body_stream() -> AsyncGenerator[bytes]:
        yield body

    parser = MultiPartParser(
        request.headers,
        body_stream(),
        max_files=MAX_FIELDS,
        max_fields=MAX_FIELDS,
        max_part_size=MAX_BODY_BYTES,
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
STATUS_BY_CODE = {
    "NotYours": 404, "Unknown": 404, "NotEligible": 403, "Blocked": 403, "Expired": 410, "Bound": 403,
    "Excluded": 403, "Spelling": 403, "Taken": 403,
}  # fmt: skip
"""HTTP status per code of WorkError; 409 for all others."""
Fields = Sequence[tuple[str, str]]
Handler = Callable[[Visit], Response]


def create_endpoint(
    site: Site, handler: Handler, *, needs_form_token: bool = True
) -> Callable[[Request], Awaitable[Response]]:
    """Wrap a handler as an endpoint: session, rate limits, CSRF token, error pages, cookie.

    Without `needs_form_token`, the handler checks the CSRF token itself.
    """

    async def endpoint(request: Request) -> Response:
        fields: list[tuple[str, str]] = []
        body_error: BodyError | None = None
        if request.method == "POST":
            try:
                fields = await read_fields(request)
            except BodyError as error:
                body_error = error
        return await run_in_request_thread(
            _respond, site, request, fields, body_error, handler, needs_form_token
        )

    return endpoint


def _respond(
    site: Site, request: Request, fields: Fields, body_error: BodyError | None, handler: Handler,
    needs_form_token: bool,
) -> Response:  # fmt: skip
    old_session = read_session(request.cookies, site.secret, secure=site.secure)
    visit = _create_visit(site, request, old_session, fields)
    if old_session is None and has_cookie(request.cookies, secure=site.secure):
        log.warning("session cookie refused")
    response = _check_rate(visit) or _run_handler(visit, body_error, handler, needs_form_token)
    if visit.session != old_session:
        write_session(response, visit.session, site.secret, secure=site.secure)
    return response


def create_visit(site: Site, request: Request, fields: Fields = ()) -> Visit:
    """Return the request with its session and language; `?lang=` sets the language."""
    session = read_session(request.cookies, site.secret, secure=site.secure)
    return _create_visit(site, request, session, fields)


def _create_visit(site: Site, request: Request, session: Session | None, fields: Fields) -> Visit:
    session = session or Session()
    requested_language = request.query_params.get("lang")
    if requested_language in texts.languages():
        session = replace(session, language=requested_language)
    accepted = request.headers.get("accept-language", "")
    language = session.language or texts.choose_language(accepted)
    return Visit(site, request, session, language, fields)


def _check_rate(visit: Visit) -> Response | None:
    """Return an error page if the rate limit is exceeded, else None."""
    if visit.session.worker is None:
        seconds = visit.site.by_address.wait(visit.address)
    else:
        seconds = visit.site.by_worker.wait(visit.session.worker)
    return _too_many_requests(visit, seconds) if seconds else None


def _too_many_requests(visit: Visit, seconds: int) -> Response:
    """Return the error page with the waiting time."""
    log.warning("too many requests")
    response = visit.error_page(429, "error.often", n=seconds)
    response.headers["Retry-After"] = str(seconds)
    return response


def _run_handler(
    visit: Visit, body_error: BodyError | None, handler: Handler, needs_form_token: bool
) -> Response:
    try:
        if body_error:
            raise RefusedError(body_error.status, body_error.key)
        _drop_ended_session(visit)
        if visit.request.method == "POST" and needs_form_token and not visit.has_form_token:
            raise RefusedError(403, "error.csrf", "form token missing or wrong")
        return handler(visit)
    except ClosedLinkError as error:
        return _refuse(visit, RefusedError(403, "error.closed", str(error)))
    except LinkError as error:
        return _refuse(visit, RefusedError(403, "error.link", str(error)))
    except WorkError as error:
        status = STATUS_BY_CODE.get(error.code, 409)
        return _refuse(visit, RefusedError(status, f"error.{error.code}", error.code))
    except RefusedError as error:
        return _refuse(visit, error)


def _drop_ended_session(visit: Visit) -> None:
    """Sign out a worker whose session was ended on the server; the cookie alone is not enough."""
    session = visit.session
    if session.worker is not None and not visit.site.participants.is_open(session.nonce):
        visit.sign_out()
        visit.change_session(pending=session.pending)


def _refuse(visit: Visit, refusal: RefusedError) -> Response:
    """Log a refused request and return its error page; repeated refusals are rate-limited."""
    if refusal.status == 401:
        return visit.redirect("/work/")
    log.warning("refused: %s", refusal)
    seconds = visit.site.by_refusals.wait(visit.address) if refusal.status in (403, 404) else 0
    return (
        _too_many_requests(visit, seconds)
        if seconds
        else visit.error_page(refusal.status, refusal.key)
    )
