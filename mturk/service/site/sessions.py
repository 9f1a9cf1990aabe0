"""Who is looking: the signed cookie, and the token that every form of this session must carry."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

from itsdangerous import BadData, URLSafeTimedSerializer
from starlette.responses import Response

__all__ = ["Session", "csrf_matches", "csrf_token", "has_cookie", "read_session", "write_session"]

LASTS = 30 * 24 * 3600
"""Seconds without a visit after which one must enter again."""
SALT = "mturk.session"


@dataclass(frozen=True, slots=True)
class Session:
    """What the cookie says. It is signed, not secret: a worker may read his own."""

    nonce: str = field(default_factory=lambda: secrets.token_urlsafe(16))
    """Makes the form token; new on every entering."""
    worker: str | None = None
    """Who has entered."""
    pending: str | None = None
    """Who has shown a valid link, but has not been through the start page."""
    study: str | None = None
    """The study by whose recruiting link the worker came."""
    before: int = 0
    """How many assignments the worker had submitted when joining the study."""
    language: str | None = None
    """The language chosen on the page; None: the browser's."""
    group: str | None = None
    """The HIT group of which the worker accepted last."""
    automatic: bool = False
    """Accept the next HIT of the same group after each submission."""


def read_session(cookies: Mapping[str, str], secret: bytes, *, secure: bool) -> Session | None:
    """Return the session of a cookie that was signed here and is not too old, else None."""
    cookie = cookies.get(_name(secure), "")
    try:
        return Session(**URLSafeTimedSerializer(secret, salt=SALT).loads(cookie, max_age=LASTS))
    except (BadData, TypeError):  # TypeError: the fields of another version
        return None


def write_session(response: Response, session: Session, secret: bytes, *, secure: bool) -> None:
    """Set the cookie. Lax, not Strict: people come by links from elsewhere."""
    value = URLSafeTimedSerializer(secret, salt=SALT).dumps(asdict(session))
    response.set_cookie(
        _name(secure), str(value), max_age=LASTS, path="/", secure=secure, httponly=True,
        samesite="lax",
    )  # fmt: skip


def has_cookie(cookies: Mapping[str, str], *, secure: bool) -> bool:
    """Say whether the browser sent a session at all, be it valid or not."""
    return _name(secure) in cookies


def csrf_token(session: Session, secret: bytes) -> str:
    """Return what a form of this session must carry."""
    return hmac.new(secret, f"mturk.csrf:{session.nonce}".encode(), hashlib.sha256).hexdigest()


def csrf_matches(session: Session, secret: bytes, given: str) -> bool:
    """Say whether a form's token is this session's, in constant time."""
    return hmac.compare_digest(csrf_token(session, secret).encode(), given.encode())


def _name(secure: bool) -> str:
    return "__Host-mturk-worker" if secure else "mturk-worker"
