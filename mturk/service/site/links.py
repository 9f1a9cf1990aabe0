"""Links and addresses with signed tokens: sign-in, joining a study, questions and submissions."""

from __future__ import annotations

import functools
import hashlib
import hmac
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs, quote_plus, urlencode, urlsplit

from itsdangerous import (
    BadSignature,
    HMACAlgorithm,
    Serializer,
    Signer,
    URLSafeSerializer,
    base64_encode,
)

from mturk.limits import RECRUITED_PREFIX

NOT_AVAILABLE = "ASSIGNMENT_ID_NOT_AVAILABLE"
"""Assignment id of a preview, as on Mechanical Turk."""
PARTICIPANT_ID = re.compile("[0-9a-fA-F]{24}")
PANEL_ID = re.compile("[A-Za-z0-9_-]{0,64}")


class LinkError(ValueError):
    """An invalid, modified or expired token."""


class ClosedLinkError(LinkError):
    """A recruiting link that was valid: expired, revoked, or of a study that is no longer available."""

    def __init__(self, study: str, text: str) -> None:
        super().__init__(text)
        self.study = study


def worker_link(
    site_url: str, secret: bytes, worker_id: str, *, expires: float | None = None
) -> str:
    """Return a worker's personal link; anybody who has it can work under this id.

    `expires` is in seconds since the epoch; None: the link does not expire. Raises ValueError for ids
    reserved for recruiting links.
    """
    if worker_id.upper().startswith(RECRUITED_PREFIX):
        raise ValueError(
            f"worker id {worker_id!r} starts with {RECRUITED_PREFIX}, reserved for recruited participants"
        )
    return f"{site_url}/enter?{urlencode({'token': _sign(secret, 'enter', [worker_id, expires])})}"


def read_worker_token(secret: bytes, token: str, now: float) -> str:
    """Return the worker's id; raise LinkError if the token is invalid or expired."""
    worker_id, expires = _verify(secret, "enter", token, 2)
    if expires is not None and now >= expires:
        raise LinkError("the personal link has expired")
    return str(worker_id)


def study_link(site_url: str, secret: bytes, name: str, *, expires: float | None = None) -> str:
    """Return a study's recruiting link, to which the panel appends the participant.

    `expires` is in seconds since the epoch; None: the link does not expire.
    On Prolific: ``?PROLIFIC_PID={{%PROLIFIC_PID%}}&STUDY_ID={{%STUDY_ID%}}&SESSION_ID={{%SESSION_ID%}}``.
    """
    return f"{site_url}/join/{_sign(secret, 'join', [name, expires])}"


def read_study_token(secret: bytes, token: str, now: float) -> str:
    """Return the study's name; raise LinkError if the token is invalid, ClosedLinkError if it has expired."""
    name, expires = _verify(secret, "join", token, 2)
    if expires is not None and now >= expires:
        raise ClosedLinkError(str(name), "the recruiting link has expired")
    return str(name)


def link_token(link: str) -> str:
    """Return the token of a personal or recruiting link; raise LinkError for other addresses.

    >>> link_token("https://work.example.org/join/WyJwIl0.x?PROLIFIC_PID=5f")
    'WyJwIl0.x'
    """
    parts = urlsplit(link)
    if parts.path == "/enter" and (tokens := parse_qs(parts.query).get("token")):
        return tokens[0]
    if parts.path.startswith("/join/") and parts.path.removeprefix("/join/"):
        return parts.path.removeprefix("/join/")
    raise LinkError("expected a link with /enter?token=... or /join/...")


def check_link(secret: bytes, token: str) -> None:
    """Raise LinkError unless a token was signed for a personal or recruiting link, expired or not."""
    serializers = [_serializer(secret, purpose) for purpose in ("enter", "join")]
    if not any(serializer.loads_unsafe(token)[0] for serializer in serializers):
        raise LinkError("the link was not created with this database")


def panel_id(parameters: Mapping[str, str], name: str) -> str:
    """Return a panel's id of a study or session, empty if absent.

    Raises LinkError unless it consists of up to 64 ASCII letters, digits, ``_`` or ``-``.
    """
    value = parameters.get(name, "")
    if not PANEL_ID.fullmatch(value):
        raise LinkError(f"{name} is invalid")
    return value


def recruited_worker(participant: str) -> str:
    """Return the worker id of a participant; raise LinkError unless it is 24 hexadecimal digits.

    >>> recruited_worker("5f3c1a2b4d5e6f708192a3b4")
    'APROLIFIC5F3C1A2B4D5E6F708192A3B4'
    """
    if not PARTICIPANT_ID.fullmatch(participant):
        raise LinkError("PROLIFIC_PID is not 24 hexadecimal digits")
    return RECRUITED_PREFIX + participant.upper()


def own_id(worker_id: str) -> str:
    """Return the id by which workers know themselves: for recruited workers, that of Prolific.

    >>> own_id("APROLIFIC5F3C1A2B4D5E6F708192A3B4"), own_id("AANNA1")
    ('5f3c1a2b4d5e6f708192a3b4', 'AANNA1')
    """
    participant = worker_id.removeprefix(RECRUITED_PREFIX)
    return worker_id if participant == worker_id else participant.lower()


def worker_id_of(text: str) -> str:
    """Return the worker id for a worker id or an id at Prolific.

    >>> worker_id_of("5f3c1a2b4d5e6f708192a3b4"), worker_id_of("AANNA1")
    ('APROLIFIC5F3C1A2B4D5E6F708192A3B4', 'AANNA1')
    """
    return recruited_worker(text) if PARTICIPANT_ID.fullmatch(text) else text


def submit_address(
    site_url: str, secret: bytes, *, assignment_id: str, worker_id: str, language: str
) -> str:
    """Return the ``turkSubmitTo`` of an assignment; its token authenticates the submission."""
    if assignment_id == NOT_AVAILABLE:
        return f"{site_url}/submit/preview"
    return f"{site_url}/submit/{_sign(secret, 'submit', [assignment_id, worker_id, language])}"


def read_submit_token(secret: bytes, token: str) -> tuple[str, str, str]:
    """Return (assignment id, worker id, language); raise LinkError if the token is invalid."""
    assignment_id, worker_id, language = map(str, _verify(secret, "submit", token, 3))
    return assignment_id, worker_id, language


@dataclass(frozen=True, slots=True)
class QuestionView:
    """A question shown to one worker."""

    hit_id: str
    assignment_id: str
    """NOT_AVAILABLE in a preview."""
    worker_id: str
    language: str

    def parameters(self, site_url: str, secret: bytes) -> dict[str, str]:
        """Return the query parameters of the question's address, as on Mechanical Turk."""
        submit_to = submit_address(
            site_url, secret, assignment_id=self.assignment_id, worker_id=self.worker_id,
            language=self.language,
        )  # fmt: skip
        return {
            "assignmentId": self.assignment_id,
            "hitId": self.hit_id,
            "workerId": self.worker_id,
            "turkSubmitTo": submit_to,
        }

    def query(self, site_url: str, secret: bytes) -> str:
        """Return `parameters` as a query; addresses of the site are quoted once, ids rarely."""
        ids = self.parameters(site_url, secret)
        address, _, token = ids.pop("turkSubmitTo").rpartition("/")
        parts = [
            f"{name}={text if text.isascii() and text.isalnum() else quote_plus(text)}"
            for name, text in ids.items()
        ]
        return f"{'&'.join(parts)}&turkSubmitTo={_quoted(address)}%2F{token}"


_quoted = functools.lru_cache(64)(quote_plus)


def frame_link(frame_url: str, site_url: str, secret: bytes, view: QuestionView) -> str:
    """Return the address of a worker's question frame, which other workers cannot guess."""
    names = [view.hit_id, view.assignment_id, view.worker_id, view.language]
    return f"{frame_url}/question/{_sign(secret, 'frame', names)}?{view.query(site_url, secret)}"


def read_frame_token(secret: bytes, token: str) -> QuestionView:
    """Return the question of the frame; raise LinkError if the token is invalid."""
    return QuestionView(*map(str, _verify(secret, "frame", token, 4)))


class _Hmac(HMACAlgorithm):
    """HMAC-SHA1, the default, by one call."""

    def get_signature(self, key: bytes, value: bytes) -> bytes:
        return hmac.digest(key, value, "sha1")


class _Signer(Signer):
    """Derives each key once."""

    derive_key = functools.cache(Signer.derive_key)


class _Json:
    """JSON without white space, by one encoder."""

    dumps = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
    loads = json.JSONDecoder().decode


class _FastSerializer(URLSafeSerializer):
    """Writes and reads the same tokens as its base in a third of the time, without compression."""

    make_signer = functools.cache(URLSafeSerializer.make_signer)

    def dump_payload(self, obj: Any) -> bytes:
        return base64_encode(Serializer.dump_payload(self, obj))


@functools.cache
def _serializer(secret: bytes, purpose: str) -> URLSafeSerializer:
    arguments = {"digest_method": hashlib.sha1, "algorithm": _Hmac()}
    return _FastSerializer(
        secret, salt=f"mturk.{purpose}", serializer=_Json, signer=_Signer, signer_kwargs=arguments
    )


def _sign(secret: bytes, purpose: str, values: Sequence[Any]) -> str:
    return str(_serializer(secret, purpose).dumps(list(values)))


def _verify(secret: bytes, purpose: str, token: str, length: int) -> list[Any]:
    try:
        values = _serializer(secret, purpose).loads(token)
    except BadSignature:
        raise LinkError(f"the {purpose} token is invalid") from None
    if not isinstance(values, list) or len(values) != length:
        raise LinkError(f"the {purpose} token has an unsupported version")
    return values
