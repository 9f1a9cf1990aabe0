"""Worker sessions: the signed cookie, and the CSRF token of forms."""

from __future__ import annotations

import functools
import hashlib
import hmac
import secrets
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

from itsdangerous import BadData, URLSafeTimedSerializer
from starlette.responses import Response

from mturk.service.rules.admission import Entry
from mturk.service.rules.retention import SESSION_SECONDS

MAX_CLOCK_SKEW_SECONDS = 60
"""Seconds by which the clock of the process that signed a cookie may be ahead."""
SALT = "mturk.session"
CACHED_SESSIONS = 1024
"""Number of parsed cookies that are kept, because each request of a worker sends the same one."""


def new_nonce() -> str:
    """Return a random value of a session or browser."""
    return secrets.token_urlsafe(16)


@dataclass(frozen=True, slots=True)
class Session:
    """Content of the session cookie. It is signed, not encrypted."""

    nonce: str = field(default_factory=new_nonce)
    """Random input of the CSRF token; new at each sign-in."""
    worker: str | None = None
    """Id of the signed-in worker."""
    pending: Entry | None = None
    """Worker of a valid link that has not been confirmed on the start page."""
    study: str | None = None
    """Name of the study whose recruiting link the worker used."""
    participation: int | None = None
    """Number of the participation in the study."""
    browser: str = field(default_factory=new_nonce)
    """Key of the browser, to which participations are bound; kept after signing out."""
    language: str | None = None
    """Language chosen on the page; None: language of the browser."""
    group: str | None = None
    """HIT group that the worker accepted last."""
    automatic: bool = False
    """Whether the next HIT of the group is accepted after each submission."""


def read_session(cookies: Mapping[str, str], secret: bytes, *, secure: bool) -> Session | None:
    """Return the session of a valid, unexpired cookie, else None."""
    try:
        session, signed = _parse_cookie(cookies.get(_cookie_name(secure), ""), secret)
    except (BadData, TypeError):  # TypeError: fields of another version
        return None
    age = time.time() - signed
    return session if -MAX_CLOCK_SKEW_SECONDS <= age <= SESSION_SECONDS else None


@functools.lru_cache(CACHED_SESSIONS)
def _parse_cookie(cookie: str, secret: bytes) -> tuple[Session, float]:
    """Return the session of a cookie, and when it was signed; raise BadData or TypeError."""
    fields, signed = _serializer(secret).loads(cookie, return_timestamp=True)
    pending = fields.pop("pending", None)
    return Session(**fields, pending=Entry(**pending) if pending else None), signed.timestamp()


def write_session(response: Response, session: Session, secret: bytes, *, secure: bool) -> None:
    """Set the session cookie. Lax, not Strict: workers arrive by links from other sites."""
    value = _serializer(secret).dumps(asdict(session))
    response.set_cookie(
        _cookie_name(secure), str(value), max_age=SESSION_SECONDS, path="/", secure=secure, httponly=True,
        samesite="lax",
    )  # fmt: skip


def has_cookie(cookies: Mapping[str, str], *, secure: bool) -> bool:
    """Return whether the browser sent a session cookie, valid or not."""
    return _cookie_name(secure) in cookies


def csrf_token(session: Session, secret: bytes) -> str:
    """Return the CSRF token that forms of this session must contain."""
    return hmac.new(secret, f"mturk.csrf:{session.nonce}".encode(), hashlib.sha256).hexdigest()


def csrf_matches(session: Session, secret: bytes, token: str) -> bool:
    """Compare a form's token with that of the session, in constant time."""
    return hmac.compare_digest(csrf_token(session, secret).encode(), token.encode())


@functools.cache
def _serializer(secret: bytes) -> URLSafeTimedSerializer:
    return URLSafeTimedSerializer(secret, salt=SALT)


def _cookie_name(secure: bool) -> str:
    return "__Host-mturk-worker" if secure else "mturk-worker"
